"""Read the runs of a comparison from MLflow, with their curves, or from their folders."""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.errors import OptionError, TrackingError
from fedcohort.ranges import did_you_mean, range_error
from fedcohort.record import folder, history, metadata
from fedcohort.record.tags import BUDGET, DONE, ENDED_BY, ROUNDS, SWEEPS
from fedcohort.results.frame import AXES, COSTS
from fedcohort.results.matching.run import Run, name_newest
from fedcohort.tracking import compat, record, server
from fedcohort.tracking.sweeps import parse_sweeps

if TYPE_CHECKING:
    import pandas as pd
    from mlflow import MlflowClient, entities

LAST = "last"  # stands for the newest sweep
MAX_REQUESTS = 4  # concurrent requests to a server


@dataclass(frozen=True)
class Query:
    """A query for the runs of a comparison in MLflow.

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
        in_sweep = f"tags.{SWEEPS} LIKE '%{self.sweep}%'" if self.sweep else None
        return " and ".join(filter(None, (in_sweep, self.filter)))

    def matches(self, tags: Mapping[str, str]) -> bool:
        """Return whether a run with these tags belongs to the sweep, not to one with a longer id, and is no report."""
        return record.REPORT_TAG not in tags and (self.sweep is None or self.sweep in parse_sweeps(tags.get(SWEEPS)))


def connect(query: Query) -> "MlflowClient":
    """Return a client. Raises `OptionError` for a database that does not exist, which MLflow would create."""
    place = server.place(query.tracking_uri, query.experiment, Path("logs"))
    if place.database is not None and not place.database.exists():
        raise range_error("tracking_uri", "a database that exists, or the address of a server", query.tracking_uri)
    return server.connect(place)


def resolve(client: "MlflowClient", query: Query) -> Query:
    """Return the query with the id of the newest sweep in the place of `last`.

    Raises `OptionError` if there is no sweep.
    """
    if query.sweep != LAST:
        return query
    tracked_runs = server.search_runs(client, find_experiment(client, query), f"tags.{SWEEPS} LIKE '%'")
    newest_sweep = name_newest([_read(run) for run in tracked_runs if record.REPORT_TAG not in run.data.tags])
    if newest_sweep is None:
        raise range_error("sweep", f"null: experiment {query.experiment!r} has no sweep", query.sweep)
    return replace(query, sweep=newest_sweep)


def read_runs(client: "MlflowClient", query: Query) -> list[Run]:
    """Return the runs of the query, oldest first. Raises `TrackingError` if there are none."""
    from mlflow.exceptions import MlflowException

    experiment = find_experiment(client, query)
    try:
        tracked_runs = server.search_runs(client, experiment, query.conditions)
        selected_runs = [run for run in tracked_runs if query.matches(run.data.tags)]
    except MlflowException as error:
        if query.filter and error.error_code == "INVALID_PARAMETER_VALUE":
            raise OptionError(f"filter: MLflow can't read {query.filter!r}: {server.root_cause(error)}") from error
        raise
    if not selected_runs and query.sweep is not None:
        tags = (run.data.tags.get(SWEEPS) for run in server.search_runs(client, experiment, ""))
        ids = sorted({sweep for tag in tags for sweep in parse_sweeps(tag)})
        if query.sweep not in ids:
            allowed = f"one of {', '.join(ids)}" if ids else f"null: experiment {query.experiment!r} has no sweep"
            raise OptionError(f"{range_error('sweep', allowed, query.sweep)}{did_you_mean(query.sweep, [LAST, *ids])}")
    if not selected_runs:
        condition_text = f" with {query.conditions}" if query.conditions else ""
        raise TrackingError(f"no runs in experiment {query.experiment!r}{condition_text} at {query.tracking_uri}")
    return sorted(map(_read, selected_runs), key=lambda run: (run.started_ms, run.name))


def find_experiment(client: "MlflowClient", query: Query) -> str:
    """Return the id of the query's experiment. Raises `OptionError` if MLflow has none of this name."""
    experiment = client.get_experiment_by_name(query.experiment)
    if experiment is None:
        names = sorted(experiment.name for experiment in client.search_experiments())
        raise range_error("experiment", f"one of {', '.join(names)}", query.experiment)
    return str(experiment.experiment_id)


def _read(run: "entities.Run") -> Run:
    tags = run.data.tags
    status = tags.get("status", run.info.status.lower())
    return Run(
        id=run.info.run_id,
        name=run.info.run_name or run.info.run_id,
        status=status,
        started_ms=run.info.start_time or 0,
        params=_update_budget(run.data.params, tags),
        tags=tags,
        metrics={name: compat.read_value(value) for name, value in run.data.metrics.items()},
    )


def _update_budget(params: Mapping[str, str], tags: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters with the newest budget: in MLflow an extended run keeps its first parameters.

    An option that did not exist when the run was logged is null.
    """
    newest_params = {**dict.fromkeys(BUDGET, "null"), **params}
    newest_params |= {name: tags[name] for name in BUDGET if name in tags}
    if newest_params[ROUNDS] == "null":
        del newest_params[ROUNDS]
    return newest_params


def read_curves(client: "MlflowClient", runs: Sequence[Run], metrics: Sequence[str]) -> "pd.DataFrame":
    """Return the rounds of each run that measured one of the metrics, with the cumulative cost until the round.

    NaN means that the round did not measure the metric. A logged NaN, as after divergence, becomes infinite.
    """
    import pandas as pd

    costs = [name for axis in AXES for name in COSTS[axis]]
    names = [*dict.fromkeys([*metrics, *costs])]
    keys = [(run.id, name) for run in runs for name in names if name in run.metrics]

    def read_metric(key: tuple[str, str]) -> list[tuple[str, str, int, int, float]]:
        history = server.retry_after_conflicts(lambda: client.get_metric_history(*key))
        return [(*key, metric.step, metric.timestamp, compat.read_value(metric.value)) for metric in history]

    with ThreadPoolExecutor(MAX_REQUESTS) as executor:
        readings = [reading for history in executor.map(read_metric, keys) for reading in history]
    rows = pd.DataFrame(readings, columns=["run", "name", "round", "time", "value"]).sort_values("time", kind="stable")
    rows["value"] = rows["value"].fillna(math.inf)
    values_by_metric = rows.drop_duplicates(["run", "name", "round"], keep="last").pivot(
        index=["run", "round"], columns="name", values="value"
    )
    values_by_metric = values_by_metric.reindex(columns=names).sort_index()
    is_measured = values_by_metric[list(metrics)].notna().any(axis=1)
    spent = {axis: sum(values_by_metric[name] for name in COSTS[axis]) for axis in AXES}
    return values_by_metric[list(metrics)].assign(**spent)[is_measured].reset_index()[["run", "round", *AXES, *metrics]]


def read_folders(folders: Iterable[Path]) -> list[Run]:
    """Return the runs in `folders` with the parameters and tags that MLflow is sent, the earliest first.

    Raises `CheckpointError` for a folder that holds no run.
    """
    return sorted(map(_read_folder, folders), key=lambda run: (run.started_ms, run.name))


def _read_folder(path: Path) -> Run:
    info, journal, status = metadata.load_info(path), history.read(path), folder.status_of(path)
    run_status = str(status.get("status", "running"))
    end_tags = {DONE: str(journal.steps[-1] if journal.steps else 0), ENDED_BY: ", ".join(status.get("ended_by", []))}
    return Run(
        id=path.name,
        name=info.name,
        status=run_status,
        started_ms=metadata.read_start_times(path)[0],
        params={**record.params(info), "rounds": str(info.rounds)},
        tags={**record.tags(info, run_status), **end_tags},
        metrics=journal.final,
    )
