"""Read the runs of a comparison from MLflow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.errors import OptionError, TrackingError
from fedcohort.ranges import did_you_mean, refuse
from fedcohort.record.tags import BUDGET, ROUNDS, SWEEPS
from fedcohort.results.matching.run import Run, name_newest
from fedcohort.tracking import compat, record, server
from fedcohort.tracking.membership import sweeps

if TYPE_CHECKING:
    from mlflow import MlflowClient, entities

LAST = "last"  # stands for the newest sweep


@dataclass(frozen=True)
class Query:
    """Which runs to read.

    Attributes:
        tracking_uri: address of MLflow.
        experiment: name of the experiment.
        sweep: id of a sweep, or `last` for the newest one.
        filter: additional condition in MLflow's language.
    """

    tracking_uri: str
    experiment: str
    sweep: str | None = None
    filter: str | None = None

    @property
    def conditions(self) -> str:
        """The conditions on a run, in MLflow's language.

        The tag with the sweeps of a run may hold several ids, so that MLflow searches for a part of its text.
        """
        sweep = [f"tags.{SWEEPS} LIKE '%{self.sweep}%'"] if self.sweep else []
        return " and ".join([*sweep, *([self.filter] if self.filter else [])])

    def holds(self, tags: Mapping[str, str]) -> bool:
        """Return whether a run with these tags belongs to the sweep, not to one with a longer id, and is no report."""
        return record.REPORT not in tags and (self.sweep is None or self.sweep in sweeps(tags.get(SWEEPS)))


def connect(query: Query) -> "MlflowClient":
    """Return a client. Raises `OptionError` for a database that does not exist, which MLflow would create."""
    where = server.place(query.tracking_uri, query.experiment, Path("logs"))
    if where.database is not None and not where.database.exists():
        raise refuse("tracking_uri", "a database that exists, or the address of a server", query.tracking_uri)
    return server.connect(where)


def resolve(client: "MlflowClient", query: Query) -> Query:
    """Return the query with the id of the newest sweep in the place of `last`.

    Raises `OptionError` if there is no sweep.
    """
    if query.sweep != LAST:
        return query
    tracked = server.search_runs(client, _find_experiment(client, query), f"tags.{SWEEPS} LIKE '%'")
    newest = name_newest([_read(run) for run in tracked if record.REPORT not in run.data.tags])
    if newest is None:
        raise refuse("sweep", f"null: experiment {query.experiment!r} has none", query.sweep)
    return replace(query, sweep=newest)


def read_runs(client: "MlflowClient", query: Query) -> list[Run]:
    """Return the runs of the query, oldest first. Raises `TrackingError` if there are none."""
    from mlflow.exceptions import MlflowException

    experiment = _find_experiment(client, query)
    try:
        tracked = server.search_runs(client, experiment, query.conditions)
        selected = [run for run in tracked if query.holds(run.data.tags)]
    except MlflowException as error:
        if query.filter and error.error_code == "INVALID_PARAMETER_VALUE":
            raise OptionError(f"filter: MLflow can't read {query.filter!r}: {server.reason(error)}") from error
        raise
    if not selected and query.sweep is not None:
        tags = (run.data.tags.get(SWEEPS) for run in server.search_runs(client, experiment, ""))
        ids = sorted({sweep for tag in tags for sweep in sweeps(tag)})
        if query.sweep not in ids:
            allowed = f"one of {', '.join(ids)}" if ids else f"null: experiment {query.experiment!r} has none"
            raise OptionError(f"{refuse('sweep', allowed, query.sweep)}{did_you_mean(query.sweep, [LAST, *ids])}")
    if not selected:
        condition = f" with {query.conditions}" if query.conditions else ""
        raise TrackingError(f"no runs in experiment {query.experiment!r}{condition} at {query.tracking_uri}")
    return sorted(map(_read, selected), key=lambda run: (run.started_ms, run.name))


def _find_experiment(client: "MlflowClient", query: Query) -> str:
    """Return the id of the experiment."""
    experiment = client.get_experiment_by_name(query.experiment)
    if experiment is None:
        names = sorted(experiment.name for experiment in client.search_experiments())
        raise refuse("experiment", f"one of {', '.join(names)}", query.experiment)
    return str(experiment.experiment_id)


def _read(run: "entities.Run") -> Run:
    tags = run.data.tags
    status = tags.get("status", run.info.status.lower())
    return Run(
        id=run.info.run_id,
        name=run.info.run_name or run.info.run_id,
        status=status,
        started_ms=run.info.start_time or 0,
        params=_params(run.data.params, tags),
        tags=tags,
        metrics={name: compat.read_value(value) for name, value in run.data.metrics.items()},
    )


def _params(params: Mapping[str, str], tags: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters with the newest budget: in MLflow an extended run keeps its first parameters.

    An option that did not exist when the run was logged is null.
    """
    newest = {**dict.fromkeys(BUDGET, "null"), **params}
    for name in BUDGET:
        older = tags.get(f"changed.{name}", newest[name])  # earlier versions did not set the tag
        newest[name] = tags.get(name, older)
    if newest[ROUNDS] == "null":
        del newest[ROUNDS]
    return newest
