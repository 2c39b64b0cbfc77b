"""Store a comparison as a run in MLflow, so that the experiment's page shows its result.

The run has the tag `report` and the comparison's files as artifacts, and its note is the verdict with a link to the
page. There is one report for a sweep, or for a condition on runs. MLflow lists the newest run first and cannot change
the start time of a run: a new report is therefore created, and the older one deleted. The experiment's note begins with
the verdicts and links to the pages.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.record.tags import SWEEPS_TAG
from fedcohort.roles import RunIdentity, find_role
from fedcohort.tracking import server, sweeps, view
from fedcohort.tracking.record import MAX_TAG_LENGTH, REPORT_TAG
from fedcohort.tracking.server import ServerLocation, connect, retry_after_conflicts

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


def publish_report(
    store: ServerLocation, *, name: str, sweep: str | None, subject: str, verdict: str, note: str, files: Sequence[Path]
) -> str:
    """Create the MLflow run of a report and the view of its sweep, and return the run's id.

    The run replaces earlier reports with the same `subject`.

    Raises the exceptions of `server.list_server_errors`, and `TrackingError` if the experiment was deleted.

    Args:
        store: the server or database.
        name: name of the run.
        sweep: sweep whose runs are compared, None for runs of several sweeps.
        subject: what the report compares, the value of the tag `report`: the sweep, or the condition on the runs.
        verdict: the verdict in one line.
        note: the verdict and the tables, in Markdown.
        files: the artifacts, the page first.
    """

    def create_report_run() -> str:
        mlflow_client = connect(store)
        experiment_id = server.find_or_create_experiment(mlflow_client, store)
        sweep_runs = _list_runs_of_sweep(mlflow_client, experiment_id, sweep or "")
        report_runs = _list_reports(mlflow_client, experiment_id)
        earlier_reports = [run for run in report_runs if run.data.tags[REPORT_TAG] == subject]
        now_ms = int(time.time() * 1000)
        report_run_id = str(
            mlflow_client.create_run(experiment_id, now_ms, {REPORT_TAG: subject}, run_name=name).info.run_id
        )
        for file_path in files:
            mlflow_client.log_artifact(report_run_id, str(file_path))
        swept_options, page_name = _list_swept_options([run.data.params for run in sweep_runs]), files[0].name
        report_tags = {
            view.VERDICT_TAG: verdict,
            view.PAGE_TAG: page_name,
            view.SWEEP_TAG: sweep or "",
            view.OPTIONS_TAG: " ".join(f"{o}={','.join(v)}" for o, v in swept_options.items()),
            view.DATE_TAG: time.strftime("%Y-%m-%d %H:%M"),
            view.NOTE_TAG: f"[The page]({view.format_artifact_url(experiment_id, report_run_id, page_name)})\n\n{note}",
            "mlflow.source.name": "fedcohort compare",
            "mlflow.source.type": "LOCAL",
        }
        for tag_name, tag_value in report_tags.items():
            mlflow_client.set_tag(report_run_id, tag_name, tag_value[:MAX_TAG_LENGTH])
        mlflow_client.set_terminated(report_run_id, "FINISHED")
        for run in earlier_reports:
            mlflow_client.delete_run(run.info.run_id)
        if sweep is not None and sweep_runs:
            view.save_sweep_view(mlflow_client, experiment_id, sweep, list(swept_options))
        view.show_reports(mlflow_client, experiment_id, _list_reports(mlflow_client, experiment_id))
        return report_run_id

    return retry_after_conflicts(create_report_run)  # a second attempt replaces the report of the first one


def _list_reports(mlflow_client: "MlflowClient", experiment_id: str) -> "list[Run]":
    """Return the runs of the experiment `experiment_id` that are reports, the newest first, read by `mlflow_client`."""
    return list(server.search_runs(mlflow_client, experiment_id, f"tags.`{REPORT_TAG}` LIKE '%'"))


def _list_runs_of_sweep(mlflow_client: "MlflowClient", experiment_id: str, sweep_id: str) -> "list[Run]":
    """Return the runs of `sweep_id` in the experiment, read by `mlflow_client`; none if it is no valid id."""
    if not sweep_id.replace("-", "").replace("_", "").isalnum():
        return []
    runs = server.search_runs(mlflow_client, experiment_id, f"tags.{SWEEPS_TAG} LIKE '%{sweep_id}%'")
    return [run for run in runs if sweep_id in sweeps.parse_sweeps(run.data.tags.get(SWEEPS_TAG))]


def _list_swept_options(params_by_run: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the options in which runs differ, except the seed, with their values: `{"selector": ["flash", "oort"]}`.

    `params_by_run` has the parameters of each run. The options of a choice (`selector.discount`) are left out if its
    group (`selector`) differs.
    """
    option_names = dict.fromkeys(n for r in params_by_run for n in r)
    values_by_option = {n: list(dict.fromkeys(r[n] for r in params_by_run if n in r)) for n in option_names}
    role_by_name = {n: find_role(n) for n in option_names if len(values_by_option[n]) > 1 and n != "n_params"}
    tracked_names = [
        n for n, role in role_by_name.items() if role.is_tracked and role.identity is not RunIdentity.OTHER_RUN_BY_SEED
    ]
    return {n: values_by_option[n] for n in tracked_names if "." not in n or n.split(".")[0] not in tracked_names}
