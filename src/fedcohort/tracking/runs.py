"""Read the runs of a comparison from MLflow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.errors import OptionError, TrackingError
from fedcohort.ranges import refuse
from fedcohort.record.tags import BUDGET, ROUNDS, SWEEPS
from fedcohort.results.matching.likeness import name_newest
from fedcohort.results.matching.run import Run
from fedcohort.tracking import compat, record, server
from fedcohort.tracking.membership import sweeps

if TYPE_CHECKING:
    from mlflow import MlflowClient, entities

PAGE = 1000  # runs that MLflow is asked for at a time
LAST = "last"  # stands for the newest sweep


@dataclass(frozen=True)
class Query:
    """Which runs to read.

    Attributes:
        tracking_uri: of MLflow.
        sweep: a sweep's id, or `last` for the newest one.
        filter: in MLflow's language; all conditions must hold.
    """

    tracking_uri: str
    experiment: str
    sweep: str | None = None
    filter: str | None = None

    @property
    def conditions(self) -> str:
        """The conditions on a run, in MLflow's language.

        A run is in one sweep or more: their ids are one tag, in which MLflow looks for a part of the text.
        """
        sweep = [f"tags.{SWEEPS} LIKE '%{self.sweep}%'"] if self.sweep else []
        return " and ".join([*sweep, *([self.filter] if self.filter else [])])

    def holds(self, tags: Mapping[str, str]) -> bool:
        """Whether a run with such tags is in the sweep itself, not in one whose id is longer, and no report."""
        return record.REPORT not in tags and (self.sweep is None or self.sweep in sweeps(tags.get(SWEEPS)))


def connect(query: Query) -> "MlflowClient":
    """Return a client. Raises `OptionError` for a database that does not exist, which MLflow would create."""
    where = server.place(query.tracking_uri, query.experiment, Path("logs"))
    if where.database is not None and not where.database.exists():
        raise refuse("tracking_uri", "a database that exists, or the address of a server", query.tracking_uri)
    return server.connect(where)


def resolve(client: "MlflowClient", query: Query) -> Query:
    """Return `query` with the id of the newest sweep where it asks for the last one.

    Raises `OptionError` where there is no sweep.
    """
    if query.sweep != LAST:
        return query
    found = _list_runs(client, _find_experiment(client, query), f"tags.{SWEEPS} LIKE '%'")
    newest = name_newest([_read(run) for run in found if record.REPORT not in run.data.tags])
    if newest is None:
        raise refuse("sweep", f"null: experiment {query.experiment!r} has none", query.sweep)
    return replace(query, sweep=newest)


def read_runs(client: "MlflowClient", query: Query) -> list[Run]:
    """Return the runs that `query` is about, oldest first. Raises `TrackingError` if there are none."""
    from mlflow.exceptions import MlflowException

    experiment = _find_experiment(client, query)
    try:
        found = [run for run in _list_runs(client, experiment, query.conditions) if query.holds(run.data.tags)]
    except MlflowException as error:
        if query.filter and error.error_code == "INVALID_PARAMETER_VALUE":
            raise OptionError(f"filter: MLflow can't read {query.filter!r}: {server.reason(error)}") from error
        raise
    if not found and query.sweep is not None:
        tags = (run.data.tags.get(SWEEPS) for run in _list_runs(client, experiment, ""))
        known = sorted({sweep for tag in tags for sweep in sweeps(tag)})
        if query.sweep not in known:
            allowed = f"one of {', '.join(known)}" if known else f"null: experiment {query.experiment!r} has none"
            raise refuse("sweep", allowed, query.sweep)
    if not found:
        condition = f" with {query.conditions}" if query.conditions else ""
        raise TrackingError(f"no runs in experiment {query.experiment!r}{condition} at {query.tracking_uri}")
    return sorted(map(_read, found), key=lambda run: (run.started_ms, run.name))


def _find_experiment(client: "MlflowClient", query: Query) -> "entities.Experiment":
    experiment = client.get_experiment_by_name(query.experiment)
    if experiment is None:
        known = sorted(each.name for each in client.search_experiments())
        raise refuse("experiment", f"one of {', '.join(known)}", query.experiment)
    return experiment


def _list_runs(client: "MlflowClient", experiment: "entities.Experiment", conditions: str) -> "Iterator[entities.Run]":
    """Yield the runs of the experiment that satisfy the conditions."""
    token: str | None = None
    while True:
        page = client.search_runs([experiment.experiment_id], conditions, max_results=PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


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
    """Return the parameters with the newest budget: a run that was extended keeps its first parameters in MLflow.

    An option that did not exist when the run was logged is null.
    """
    found = {**dict.fromkeys(BUDGET, "null"), **params}
    for name in BUDGET:
        older = tags.get(f"changed.{name}", found[name])  # of a run from before there was the tag
        found[name] = tags.get(name, older)
    if found[ROUNDS] == "null":
        del found[ROUNDS]
    return found
