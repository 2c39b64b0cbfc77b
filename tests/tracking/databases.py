"""MLflow databases for tests. Creating tables takes seconds, so that they are created once and copied."""

import functools
import logging
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.store.db import utils as mlflow_tables
from sqlalchemy import event
from sqlalchemy.engine import Engine

from fedcohort.record.observer import Observer, RunInfo
from fedcohort.tracking import server
from fedcohort.tracking.follow import RunSender
from fedcohort.types import RoundReport

EXPERIMENT = "selectors"


# MLflow reads all scripts of its migrations for each database, and no test changes them.
mlflow_tables._get_latest_schema_revision = functools.cache(mlflow_tables._get_latest_schema_revision)


@event.listens_for(Engine, "connect")
def _wait_for_no_disk(connection: Connection, record: object) -> None:
    """Disable waiting for the disk at commits, like `os.fsync` in `session_setup.py`."""
    connection.execute("PRAGMA synchronous=OFF")


@functools.cache
def database_template() -> bytes:
    """Return a database with empty tables."""
    with tempfile.TemporaryDirectory() as folder:
        server.connect(server.locate_server(None, EXPERIMENT, Path(folder)))
        return (Path(folder) / "mlflow.db").read_bytes()


class InProcessSender(Observer):
    """The sender as an observer of this process, where a test can inspect and kill it."""

    def __init__(self, place: server.ServerLocation, every_s: float) -> None:
        self.place, self.every_s = place, every_s

    def start(self, info: RunInfo) -> None:
        self.sender = RunSender(info, self.place, self.every_s, wait_s=60)
        self.sender.start()

    def observe(self, report: RoundReport) -> None:
        self.sender.observe()

    def finish(self, status: str) -> None:
        self.sender.finish(status)


@dataclass(frozen=True)
class Logs:
    """A folder of runs with a database."""

    path: Path

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.path / 'mlflow.db'}"

    def place(self, uri: str | None = None) -> server.ServerLocation:
        return server.locate_server(uri, EXPERIMENT, self.path)

    def tracker(self, uri: str | None = None, every_s: float = 0) -> "InProcessSender":
        return InProcessSender(self.place(uri), every_s)

    def client(self) -> MlflowClient:
        return MlflowClient(self.uri)

    def runs(self) -> list[Run]:
        experiment = self.client().get_experiment_by_name(EXPERIMENT)
        return [] if experiment is None else self.client().search_runs([experiment.experiment_id])

    def only_run(self) -> Run:
        (run,) = self.runs()
        return run


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "mlflow.db").write_bytes(database_template())
    return Logs(tmp_path / "logs")


@pytest.fixture
def captured_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Yield the log of the package's logger, which an entry point may detach from the root logger."""
    logger = logging.getLogger("fedcohort")
    level = logger.level
    logger.addHandler(caplog.handler)
    logger.setLevel(logging.INFO)
    propagate, logger.propagate = logger.propagate, False
    yield caplog
    logger.removeHandler(caplog.handler)
    logger.setLevel(level)
    logger.propagate = propagate
