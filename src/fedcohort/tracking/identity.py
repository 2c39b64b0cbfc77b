"""The MLflow run of a folder: created once, and found again after a kill at any point.

`mlflow.json` gets a random key before the run is created with this key as a tag. A kill between the two leaves a run
that is found by its tag. A folder that is deleted and created again gets a new key, and therefore a new run.
"""

import json
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from fedcohort.errors import TrackingError
from fedcohort.host.lock import exclusive_lock
from fedcohort.record import metadata
from fedcohort.record.folder import write_atomically
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import record
from fedcohort.tracking.server import ServerLocation, find_or_create_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from mlflow import MlflowClient
    from mlflow.entities import Run

TRACKED_FILE = "mlflow.json"
LOCK_FILE = ".mlflow.lock"
RUN_KEY_TAG = "fedcohort.startup.run"


@dataclass(frozen=True)
class TrackedRun:
    """The record, in a run folder's `mlflow.json`, of the run at one MLflow server or database.

    Attributes:
        tracking_uri: address of the server or database.
        experiment: name of the experiment.
        artifacts: URI of the folder of the files; None if the server decides.
        key: random key of the run.
        experiment_id: id of the experiment, None until the server has answered.
        run_id: id of the run, None until the server has answered.
        complete: whether all rounds and files were sent, and the run has ended.
    """

    tracking_uri: str
    experiment: str
    artifacts: str | None
    key: str
    experiment_id: str | None = None
    run_id: str | None = None
    complete: bool = False

    @property
    def server_location(self) -> ServerLocation:
        """The tracking server and the experiment of the run."""
        return ServerLocation(self.tracking_uri, self.experiment, self.artifacts)


def load_tracked_run(folder: "Path") -> TrackedRun | None:
    """Return the entry in `mlflow.json` for the server to which the run in `folder` was sent last; None without any."""
    tracked_runs = _read_entries(folder)
    return tracked_runs[0] if tracked_runs else None


def register_server_location(folder: "Path", server_location: ServerLocation) -> None:
    """Record that the run in `folder` is tracked at `server_location`, so that it can be sent later."""
    with exclusive_lock(folder / LOCK_FILE):
        _find_or_add_entry(folder, server_location)


def mark_upload_complete(folder: "Path", server_location: ServerLocation) -> None:
    """Record that the server at `server_location` has all rounds and files of the run in `folder`."""
    with exclusive_lock(folder / LOCK_FILE):
        _write_tracked_run(folder, replace(_find_or_add_entry(folder, server_location), complete=True))


def is_upload_complete(folder: "Path", server_location: ServerLocation) -> bool:
    """Return whether the server at `server_location` has all rounds and files of the run in `folder`."""
    return any(r.complete for r in _read_entries(folder) if r.server_location == server_location)


def _find_or_add_entry(folder: "Path", server_location: ServerLocation) -> TrackedRun:
    """Return the entry of the server at `server_location` in `mlflow.json` in `folder`; it is created if necessary."""
    for tracked_run in _read_entries(folder):
        if tracked_run.server_location == server_location:
            return tracked_run
    tracked_run = TrackedRun(
        server_location.uri, server_location.experiment, server_location.artifact_uri, uuid.uuid4().hex
    )
    _write_tracked_run(folder, tracked_run)
    return tracked_run


def find_or_create_run(mlflow_client: "MlflowClient", info: RunInfo, server_location: ServerLocation) -> str:
    """Return the id of the MLflow run of a run folder, which is created if MLflow has none.

    A killed process may have created an MLflow run without recording its id. Such a run is found by its key.

    Args:
        mlflow_client: client of MLflow.
        info: metadata of the run.
        server_location: server or database that the run is sent to.

    Raises:
        TrackingError: the experiment was deleted, or `mlflow.json` is damaged.
    """
    with exclusive_lock(info.folder / LOCK_FILE):
        # first: a server that is down leaves mlflow.json unchanged
        experiment_id = find_or_create_experiment(mlflow_client, server_location)
        tracked_run = _find_or_add_entry(info.folder, server_location)
        run = _find_recorded_run(mlflow_client, tracked_run)
        if run is None:
            key_condition = f"tags.`{RUN_KEY_TAG}` = '{tracked_run.key}'"
            runs_with_key = mlflow_client.search_runs([experiment_id], key_condition, max_results=1)
            run = runs_with_key[0] if runs_with_key else _create_run(mlflow_client, info, tracked_run, experiment_id)
        tracked_run = replace(tracked_run, experiment_id=run.info.experiment_id, run_id=run.info.run_id, complete=False)
        _write_tracked_run(info.folder, tracked_run)
        update_mlflow_run(mlflow_client, info, run)
        return str(run.info.run_id)


def update_mlflow_run(mlflow_client: "MlflowClient", info: RunInfo, run: "Run") -> None:
    """Update an MLflow run's tags, and add the parameters and the dataset that it lacks.

    MLflow does not change a parameter. The new value of a changed parameter becomes a tag.

    Args:
        mlflow_client: client of MLflow.
        info: metadata of the run.
        run: the MLflow run.
    """
    from mlflow.entities import Param, RunTag

    params = record.list_params(info)
    missing_params = [Param(k, v) for k, v in params.items() if k not in run.data.params]
    changed_param_tags = {f"changed.{k}": v for k, v in params.items() if run.data.params.get(k, v) != v}
    tags = {**record.list_tags(info, "running"), **changed_param_tags}
    new_tags = [RunTag(k, v) for k, v in tags.items() if run.data.tags.get(k) != v]
    mlflow_client.log_batch(run.info.run_id, params=missing_params, tags=new_tags)
    if run.inputs is None or not run.inputs.dataset_inputs:
        mlflow_client.log_inputs(run.info.run_id, [record.describe_dataset(info)])


def _find_recorded_run(mlflow_client: "MlflowClient", tracked_run: TrackedRun) -> "Run | None":
    """Return the MLflow run that `tracked_run` names by its id; None if it was deleted. `mlflow_client` reads it."""
    from mlflow.exceptions import MlflowException

    if tracked_run.run_id is None:
        return None
    try:
        mlflow_run = mlflow_client.get_run(tracked_run.run_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return None
    return mlflow_run if mlflow_run.info.lifecycle_stage == "active" else None


def _create_run(mlflow_client: "MlflowClient", info: RunInfo, tracked_run: TrackedRun, experiment_id: str) -> "Run":
    tags = {**record.list_tags(info, "running"), RUN_KEY_TAG: tracked_run.key}
    run_name = info.name.replace(f"-{info.config_hash}", "")  # without the hash: pages cut long names before the seed
    return mlflow_client.create_run(experiment_id, metadata.read_start_times(info.folder)[0], tags, run_name=run_name)


def _read_entries(folder: "Path") -> list[TrackedRun]:
    """Return the entries of `mlflow.json` in the run folder `folder`, first that of the latest server."""
    tracked_file = folder / TRACKED_FILE
    if not tracked_file.exists():
        return []
    try:
        latest_fields = json.loads(tracked_file.read_text())
        earlier_entries = latest_fields.pop("earlier", [])
        return [TrackedRun(**run_fields) for run_fields in (latest_fields, *earlier_entries)]
    except (ValueError, TypeError, AttributeError) as error:
        raise TrackingError(
            f"{tracked_file} is damaged. Delete its run in MLflow, so that it is not there twice, then remove the file"
        ) from error


def _write_tracked_run(folder: "Path", latest_entry: TrackedRun) -> None:
    earlier_entries = [
        asdict(entry) for entry in _read_entries(folder) if entry.server_location != latest_entry.server_location
    ]
    write_atomically(
        folder / TRACKED_FILE, json.dumps({**asdict(latest_entry), "earlier": earlier_entries}, indent=1) + "\n"
    )
