"""Send the steps of a journal that MLflow lacks, each step once, also after kills.

A metric is sent with the journal's time, which is part of MLflow's primary key, so that sending it again changes
nothing. The steps that MLflow has are read once, from one metric that every round has.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.record import history, manifest
from fedcohort.record.history import MAIN_METRIC, JournalLine
from fedcohort.record.metadata import read_summary
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import ENDED_BY_TAG, ROUNDS_DONE_TAG
from fedcohort.tracking import identity, record
from fedcohort.tracking.server import ServerLocation, connect, retry_after_conflicts

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

LAST_SENT_METRIC = "time/virtual_s"  # the metric that is sent last of a step
MAX_BATCH_METRICS = 1000  # metrics per request, MLflow's limit
UNSENT_METRICS = {"round", "step"}  # metrics that MLflow would make the default axis of every chart
MLFLOW_STATUS = {"running": "RUNNING", "finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
UPLOADED_FILES = ("report.html", "config.yaml", "starts.jsonl", "summary.json", "clients.parquet", "run.log")


class RunUpload:
    """The upload of one run's journal to its MLflow run, which may have some of the rounds already."""

    def __init__(self, mlflow_client: "MlflowClient", run_id: str, folder: Path) -> None:
        self.client = mlflow_client
        self.run_id = run_id
        self._journal = folder / history.JOURNAL_FILE
        self._offset, self._digest = 0, ""
        self._unsent_lines: list[JournalLine] = []
        self._sent_steps = {m.step for m in mlflow_client.get_metric_history(run_id, LAST_SENT_METRIC)}

    def send_rounds(self) -> int:
        """Send the steps that the journal has committed and MLflow lacks, and return their number."""
        unsent_lines, self._offset = history.read_journal_lines(self._journal, self._offset, self._digest)
        self._digest = unsent_lines[-1].digest if unsent_lines else self._digest
        self._unsent_lines += [
            journal_line for journal_line in unsent_lines if journal_line.step not in self._sent_steps
        ]
        n_sent_rounds = 0
        while self._unsent_lines:
            max_metrics_per_step = max(len(journal_line.metrics) for journal_line in self._unsent_lines)
            # MLflow has all metrics of a step or none
            sent_lines = self._unsent_lines[: max(1, MAX_BATCH_METRICS // max_metrics_per_step)]
            log_metrics(self.client, self.run_id, sent_lines)
            self._sent_steps |= {journal_line.step for journal_line in sent_lines}
            del self._unsent_lines[: len(sent_lines)]
            n_sent_rounds += len(sent_lines)
        return n_sent_rounds

    def end_run(self, info: RunInfo, status: str) -> int:
        """Upload the run's files, and end its MLflow run at the time of its last round.

        Args:
            info: metadata of the run.
            status: how the run ended, a key of `MLFLOW_STATUS`.

        Returns:
            The number of uploaded files.
        """
        artifact_files = list(list_artifacts(info.folder))
        for file_path, mlflow_folder in artifact_files:
            self.client.log_artifact(self.run_id, str(file_path), mlflow_folder)
        self.set_status_tags(info, status)
        last_commit_ms = lines[-1].time_ms if (lines := history.read_journal_lines(self._journal)[0]) else None
        self.client.set_terminated(self.run_id, MLFLOW_STATUS[status], last_commit_ms)
        return len(artifact_files)

    def set_status_tags(self, info: RunInfo, status: str) -> None:
        """Set the MLflow tags of the run's status and completed rounds, and the note on its page if it has a summary.

        Args:
            info: metadata of the run, for its folder and budget.
            status: a key of `MLFLOW_STATUS`; a finished run also gets a tag with the limits that ended it.
        """
        from mlflow.entities import RunTag

        status_tags = {"status": status, ROUNDS_DONE_TAG: str(max(self._sent_steps, default=0))}
        if status == "finished":
            budget_use = history.sum_spending(history.read_journal_lines(self._journal)[0])
            status_tags[ENDED_BY_TAG] = ", ".join(info.budget.list_reached_limits(budget_use))
        if summary := read_summary(info.folder):
            status_tags["mlflow.note.content"] = record.write_run_note(summary)
        self.client.log_batch(self.run_id, tags=[RunTag(k, v) for k, v in status_tags.items()])


def open_upload(info: RunInfo, server_location: ServerLocation, *, is_running: bool = True) -> RunUpload:
    """Connect to MLflow, find or create the MLflow run of a run folder, and read the rounds that it has.

    Args:
        info: metadata of the run.
        server_location: server or database that the run is sent to.
        is_running: whether to set the run's status in MLflow to running, as for a run that is resumed.
    """

    def connect_run() -> RunUpload:
        mlflow_client = connect(server_location)
        run_id = identity.find_or_create_run(mlflow_client, info, server_location)
        if is_running:
            mlflow_client.update_run(run_id, MLFLOW_STATUS["running"])
        return RunUpload(mlflow_client, run_id, info.folder)

    return retry_after_conflicts(connect_run)


def log_metrics(mlflow_client: "MlflowClient", run_id: str, sent_lines: Sequence[JournalLine]) -> None:
    """Send the metrics of some rounds in one request; MLflow's client splits a line with more than 1,000 metrics.

    Args:
        mlflow_client: client of MLflow.
        run_id: id of the MLflow run.
        sent_lines: lines of the journal.
    """
    mlflow_client.log_batch(run_id, metrics=[m for journal_line in sent_lines for m in _list_metrics(journal_line)])


def list_artifacts(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield the files of the run in `folder` to upload, each with its folder in MLflow.

    Raises `DamagedFile` if one differs from the folder's manifest.
    """
    for file_name in UPLOADED_FILES:
        manifest.check_file(folder / file_name)
        if (folder / file_name).exists():
            yield folder / file_name, None
    for figure_path in sorted((folder / "figures").glob("*.png")):
        yield figure_path, "figures"


def _list_metrics(line: JournalLine) -> "Iterator[Metric]":
    """Yield the metrics of a journal line, `LAST_SENT_METRIC` last: a round that has it in MLflow is complete."""
    from mlflow.entities import Metric

    if MAIN_METRIC in line.metrics:
        yield Metric(record.FIRST_METRIC_NAME, line.metrics[MAIN_METRIC], line.time_ms, line.step)
    for metric_name in sorted(line.metrics, key=lambda metric_name: (metric_name == LAST_SENT_METRIC, metric_name)):
        if metric_name not in UNSENT_METRICS:
            yield Metric(metric_name, line.metrics[metric_name], line.time_ms, line.step)
