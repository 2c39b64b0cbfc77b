"""Which MLflow run belongs to a folder: made once, found again after a kill at any point.

`mlflow.json` gets a key before the run is created under it, so a kill between the two leaves a run that is found by
its tag; the key is random, so a folder that is deleted and made anew starts a new run.
"""

import json
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from fedcohort.errors import TrackingError
from fedcohort.host.lock import exclusive
from fedcohort.record import card
from fedcohort.record.folder import write_atomically
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import record
from fedcohort.tracking.server import Place, experiment_id

if TYPE_CHECKING:
    from pathlib import Path

    from mlflow import MlflowClient
    from mlflow.entities import Run

NAME = "mlflow.json"
LOCK = ".mlflow.lock"
KEY_TAG = "fedcohort.startup.run"


@dataclass(frozen=True)
class TrackedRun:
    """What `mlflow.json` holds for each place. The ids are None until the server has answered.

    complete: all rounds and files are there, and the run is ended.
    """

    tracking_uri: str
    experiment: str
    artifacts: str | None
    key: str
    experiment_id: str | None = None
    run_id: str | None = None
    complete: bool = False

    @property
    def place(self) -> Place:
        """Where the run is tracked."""
        return Place(self.tracking_uri, self.experiment, self.artifacts)


def load(folder: "Path") -> TrackedRun | None:
    """What the folder knows of the MLflow run that it was sent to last, or None where it was never tracked."""
    known = _known_places(folder)
    return known[0] if known else None


def register(folder: "Path", where: Place) -> None:
    """Write down where the run is to be tracked, so that it can be sent later even if no server ever answers."""
    with exclusive(folder / LOCK):
        _intend(folder, where)


def complete(folder: "Path", where: Place) -> None:
    """Write down that the run is ended at this place, with all that it has."""
    with exclusive(folder / LOCK):
        _write(folder, replace(_intend(folder, where), complete=True))


def is_complete(folder: "Path", where: Place) -> bool:
    """Whether the place has the whole run, as far as it was ended."""
    return any(known.complete for known in _known_places(folder) if known.place == where)


def _intend(folder: "Path", where: Place) -> TrackedRun:
    """The identity at this place, written down. The run is another one at each place, the same when it comes back."""
    for known in _known_places(folder):
        if known.place == where:
            return known
    fresh = TrackedRun(where.uri, where.experiment, where.artifacts, uuid.uuid4().hex)
    _write(folder, fresh)
    return fresh


def adopt(client: "MlflowClient", info: RunInfo, where: Place) -> str:
    """The id of the folder's MLflow run: the known one, one that a killed process created, or a new one."""
    with exclusive(info.folder / LOCK):
        experiment = experiment_id(client, where)  # first: a server that is gone leaves mlflow.json as it was
        identity = _intend(info.folder, where)
        run = _find_known(client, identity) or _orphan(client, identity, experiment)
        if run is None:
            run = _create(client, info, identity, experiment)
        _write(
            info.folder, replace(identity, experiment_id=run.info.experiment_id, run_id=run.info.run_id, complete=False)
        )
        describe(client, info, run)
        return str(run.info.run_id)


def describe(client: "MlflowClient", info: RunInfo, run: "Run") -> None:
    """Add the tags, parameters and data set that the run lacks; a parameter that has changed becomes a tag."""
    from mlflow.entities import Param, RunTag

    wanted = record.params(info)
    missing = [Param(key, value) for key, value in wanted.items() if key not in run.data.params]
    changed = {f"changed.{key}": value for key, value in wanted.items() if run.data.params.get(key, value) != value}
    tags = {**record.tags(info, "running"), **changed}
    new = [RunTag(key, value) for key, value in tags.items() if run.data.tags.get(key) != value]
    client.log_batch(run.info.run_id, params=missing, tags=new)
    if run.inputs is None or not run.inputs.dataset_inputs:
        client.log_inputs(run.info.run_id, [record.dataset(info)])


def _find_known(client: "MlflowClient", identity: TrackedRun) -> "Run | None":
    """The run with the known id, or None where it was deleted."""
    from mlflow.exceptions import MlflowException

    if identity.run_id is None:
        return None
    try:
        run = client.get_run(identity.run_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return None
    return run if run.info.lifecycle_stage == "active" else None


def _orphan(client: "MlflowClient", identity: TrackedRun, experiment: str) -> "Run | None":
    found = client.search_runs([experiment], f"tags.`{KEY_TAG}` = '{identity.key}'", max_results=1)
    return found[0] if found else None


def _create(client: "MlflowClient", info: RunInfo, identity: TrackedRun, experiment: str) -> "Run":
    tags = {**record.tags(info, "running"), KEY_TAG: identity.key}
    name = info.name.replace(f"-{info.config_hash}", "")  # the folder's name; pages cut long ones before the seed
    return client.create_run(experiment, card.starts_ms(info.folder)[0], tags, run_name=name)


def _known_places(folder: "Path") -> list[TrackedRun]:
    """The latest first."""
    path = folder / NAME
    if not path.exists():
        return []
    try:
        latest = json.loads(path.read_text())
        earlier = latest.pop("earlier", [])
        return [TrackedRun(**fields) for fields in (latest, *earlier)]
    except (ValueError, TypeError, AttributeError) as error:
        raise TrackingError(
            f"{path} is damaged: without it the run would be in MLflow twice. Remove it once the run is deleted there"
        ) from error


def _write(folder: "Path", latest: TrackedRun) -> None:
    earlier = [asdict(known) for known in _known_places(folder) if known.place != latest.place]
    write_atomically(folder / NAME, json.dumps({**asdict(latest), "earlier": earlier}, indent=1) + "\n")
