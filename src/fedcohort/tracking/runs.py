"""Read the runs of a comparison from MLflow, with their curves, or from their folders."""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.errors import OptionError, TrackingError
from fedcohort.ranges import did_you_mean, join_choices, range_error
from fedcohort.record import folder, history, metadata
from fedcohort.record.tags import BUDGET_TAGS, ENDED_BY_TAG, ROUNDS_DONE_TAG, ROUNDS_TAG, SWEEPS_TAG
from fedcohort.results.frame import COST_COLUMNS, METRICS_BY_COST
from fedcohort.results.matching.tracked_run import Run, name_newest_sweep
from fedcohort.tracking import compat, record, server
from fedcohort.tracking.sweeps import parse_sweeps

if TYPE_CHECKING:
    import pandas as pd
    from mlflow import MlflowClient, entities

LAST_SWEEP = "last"  # stands for the newest sweep
MAX_CONCURRENT_REQUESTS = 4  # concurrent requests to a server


@dataclass(frozen=True)
class RunQuery:
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
    def mlflow_filter(self) -> str:
        """Conditions on a run, in MLflow's language.

        The tag with the sweeps of a run may hold several ids, so that MLflow searches for a part of its text.
        """
        sweep_condition = f"tags.{SWEEPS_TAG} LIKE '%{self.sweep}%'" if self.sweep else None
        return " and ".join(filter(None, (sweep_condition, self.filter)))

    def matches_tags(self, tags: Mapping[str, str]) -> bool:
        """Return whether a run with these `tags` is no report and belongs to the sweep, not to one with a longer id."""
        return record.REPORT_TAG not in tags and (
            self.sweep is None or self.sweep in parse_sweeps(tags.get(SWEEPS_TAG))
        )


def connect(query: RunQuery) -> "MlflowClient":
    """Return a client of the MLflow in `query`.

    Raises `OptionError` for an invalid address, and for a database that does not exist, which MLflow would create.
    """
    server_location = server.locate_server(query.tracking_uri, query.experiment, Path("logs"))
    if server_location.database is not None and not server_location.database.exists():
        raise range_error("tracking_uri", "an existing database, or the address of a server", query.tracking_uri)
    return server.connect(server_location)


def resolve_sweep(mlflow_client: "MlflowClient", query: RunQuery) -> RunQuery:
    """Return `query` with the id of the newest sweep, which `mlflow_client` looks up, in the place of `last`.

    Raises `OptionError` if `last` stands for no sweep, or there is no such experiment.
    """
    if query.sweep != LAST_SWEEP:
        return query
    tracked_runs = server.search_runs(
        mlflow_client, find_experiment(mlflow_client, query), f"tags.{SWEEPS_TAG} LIKE '%'"
    )
    compared_runs = [_convert_mlflow_run(run) for run in tracked_runs if record.REPORT_TAG not in run.data.tags]
    newest_sweep = name_newest_sweep(compared_runs)
    if newest_sweep is None:
        raise range_error("sweep", f"null: experiment {query.experiment!r} has no sweep", query.sweep)
    return replace(query, sweep=newest_sweep)


def read_runs(mlflow_client: "MlflowClient", query: RunQuery) -> list[Run]:
    """Return the runs that satisfy `query`, oldest first, read by `mlflow_client`.

    Raises:
        OptionError: the experiment or sweep does not exist, or MLflow can't read the filter.
        TrackingError: no run satisfies the query.
    """
    from mlflow.exceptions import MlflowException

    experiment_id = find_experiment(mlflow_client, query)
    try:
        tracked_runs = server.search_runs(mlflow_client, experiment_id, query.mlflow_filter)
        selected_runs = [run for run in tracked_runs if query.matches_tags(run.data.tags)]
    except MlflowException as error:
        if query.filter and error.error_code == "INVALID_PARAMETER_VALUE":
            raise OptionError(f"filter: MLflow can't read {query.filter!r}: {server.find_cause(error)}") from error
        raise
    if not selected_runs and query.sweep is not None:
        sweep_tags = (run.data.tags.get(SWEEPS_TAG) for run in server.search_runs(mlflow_client, experiment_id, ""))
        sweep_ids = sorted({s for sweep_tag in sweep_tags for s in parse_sweeps(sweep_tag)})
        if query.sweep not in sweep_ids:
            no_sweep_text = f"null: experiment {query.experiment!r} has no sweep"
            allowed_text = f"one of {', '.join(sweep_ids)}" if sweep_ids else no_sweep_text
            sweep_hint = did_you_mean(query.sweep, [LAST_SWEEP, *sweep_ids])
            raise OptionError(f"{range_error('sweep', allowed_text, query.sweep)}{sweep_hint}")
    if not selected_runs:
        condition_text = f" with {query.mlflow_filter}" if query.mlflow_filter else ""
        raise TrackingError(
            f"no runs in experiment {query.experiment!r}{condition_text} at {query.tracking_uri}: change one of these"
        )
    return sorted(map(_convert_mlflow_run, selected_runs), key=lambda run: (run.started_ms, run.name))


def find_experiment(mlflow_client: "MlflowClient", query: RunQuery) -> str:
    """Return the id of the experiment that `query` names, by `mlflow_client`.

    Raises `OptionError` if there is none, and `TrackingError` if it was deleted.
    """
    experiment = mlflow_client.get_experiment_by_name(query.experiment)
    if experiment is None:
        experiment_names = sorted(experiment.name for experiment in mlflow_client.search_experiments())
        raise range_error("experiment", f"one of {join_choices(experiment_names)}", query.experiment)
    if experiment.lifecycle_stage == "deleted":
        raise TrackingError(
            f"the experiment {query.experiment!r} is deleted in MLflow at {query.tracking_uri}: restore it with "
            f"MLFLOW_TRACKING_URI={query.tracking_uri} mlflow experiments restore -x {experiment.experiment_id}, or "
            "name another experiment"
        )
    return str(experiment.experiment_id)


def _convert_mlflow_run(run: "entities.Run") -> Run:
    tags = run.data.tags
    return Run(
        id=run.info.run_id,
        name=run.info.run_name or run.info.run_id,
        status=tags.get("status", run.info.status.lower()),
        started_ms=run.info.start_time or 0,
        params=_update_budget(run.data.params, tags),
        tags=tags,
        metrics={n: compat.read_metric_value(v) for n, v in run.data.metrics.items()},
    )


def _update_budget(params: Mapping[str, str], tags: Mapping[str, str]) -> Mapping[str, str]:
    """Return a run's parameters with the newest budget: in MLflow an extended run keeps its first parameters.

    Args:
        params: parameters of the run in MLflow.
        tags: tags of the run, which have the newest budget.
    """
    newest_params = {**dict.fromkeys(BUDGET_TAGS, "null"), **params}
    newest_params |= {n: tags[n] for n in BUDGET_TAGS if n in tags}
    if newest_params[ROUNDS_TAG] == "null":
        del newest_params[ROUNDS_TAG]
    return newest_params


def read_curves(mlflow_client: "MlflowClient", runs: Sequence[Run], metrics: Sequence[str]) -> "pd.DataFrame":
    """Return a row for each round in which a run measured one of the metrics, with the cumulative costs up to it.

    NaN means that the metric was not measured in the round. A logged NaN, as after divergence, becomes infinity.

    Args:
        mlflow_client: client of MLflow.
        runs: the runs.
        metrics: names of the metrics.
    """
    import pandas as pd

    metric_names = [*dict.fromkeys([*metrics, *[n for c in COST_COLUMNS for n in METRICS_BY_COST[c]]])]
    metric_keys = [(run.id, n) for run in runs for n in metric_names if n in run.metrics]

    def read_metric(metric_key: tuple[str, str]) -> list[tuple[str, str, int, int, float]]:
        metric_history = server.retry_after_conflicts(lambda: mlflow_client.get_metric_history(*metric_key))
        return [(*metric_key, m.step, m.timestamp, compat.read_metric_value(m.value)) for m in metric_history]

    with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as thread_pool:
        metric_readings = [r for metric_history in thread_pool.map(read_metric, metric_keys) for r in metric_history]
    rows = pd.DataFrame(metric_readings, columns=["run", "name", "round", "time", "value"]).sort_values(
        "time", kind="stable"
    )
    rows["value"] = rows["value"].fillna(math.inf)
    curves = rows.drop_duplicates(["run", "name", "round"], keep="last").pivot(
        index=["run", "round"], columns="name", values="value"
    )
    curves = curves.reindex(columns=metric_names).sort_index()
    has_metric = curves[list(metrics)].notna().any(axis=1)
    costs = {c: sum(curves[n] for n in METRICS_BY_COST[c]) for c in COST_COLUMNS}
    return curves[list(metrics)].assign(**costs)[has_metric].reset_index()[["run", "round", *COST_COLUMNS, *metrics]]


def read_folders(folders: Iterable[Path]) -> list[Run]:
    """Return the runs in `folders` with the parameters and tags that are sent to MLflow, the earliest first.

    Raises `CheckpointError` for a folder that holds no run.
    """
    return sorted(map(_read_run_folder, folders), key=lambda run: (run.started_ms, run.name))


def _read_run_folder(run_folder: Path) -> Run:
    info, run_history = metadata.load_info(run_folder), history.read_history(run_folder)
    status_fields = folder.read_status(run_folder)
    run_status = str(status_fields.get("status", "running"))
    rounds_done = run_history.steps[-1] if run_history.steps else 0
    budget_end_tags = {ROUNDS_DONE_TAG: str(rounds_done), ENDED_BY_TAG: ", ".join(status_fields.get("ended_by", []))}
    return Run(
        id=str(run_folder),
        name=info.name,
        status=run_status,
        started_ms=metadata.read_start_times(run_folder)[0],
        params={**record.list_params(info), "rounds": str(info.rounds)},
        tags={**record.list_tags(info, run_status), **budget_end_tags},
        metrics=run_history.last_metrics,
    )
