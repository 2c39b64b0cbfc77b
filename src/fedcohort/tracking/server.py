"""Where runs are tracked, and a connection to it that is quiet, quick to give up, and safe to open eight times at once.

MLflow is imported inside functions: it takes seconds.
"""

import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fedcohort.errors import TrackingError
from fedcohort.host.lock import exclusive
from fedcohort.host.secrets import has_password, refusal
from fedcohort.ranges import refuse
from fedcohort.tracking import view
from fedcohort.tracking.compat import is_locked

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")
SQLITE = "sqlite:///"
EXPERIMENT = "fedcohort"  # where none is named
ATTEMPTS = 5
WAIT_S = 120.0  # for what is sent and read after the last job of a sweep
QUIET_AND_QUICK = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # MLflow's own default keeps a run waiting for minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


@dataclass(frozen=True)
class Place:
    """Where runs are tracked.

    Attributes:
        uri: of the server or database.
        artifacts: the folder where files go, or None where the server decides.
    """

    uri: str
    experiment: str
    artifacts: str | None

    @property
    def database(self) -> Path | None:
        """The SQLite file, or None for a server."""
        return Path(self.uri.removeprefix(SQLITE)) if self.uri.startswith(SQLITE) else None


def place(uri: str | None, experiment: str, logs: Path) -> Place:
    """The place that the options name; null is a SQLite file in `logs`.

    Raises `OptionError` for an address with a password in it, and for a folder of files, which MLflow refuses since
    3.13.
    """
    uri = uri or f"{SQLITE}{logs.absolute() / 'mlflow.db'}"
    if has_password(uri):
        raise refusal("tracking_uri", uri)
    if uri.startswith("file:") or ("://" not in uri and uri != "databricks"):
        allowed = "null, sqlite:///<file>, or the address of a server (MLflow >= 3.13 refuses folders of files)"
        raise refuse("tracking_uri", allowed, uri)
    if not isinstance(experiment, str) or not experiment:
        raise refuse("experiment", "a text that is not empty", experiment)
    if uri.startswith(SQLITE):
        file = Path(uri.removeprefix(SQLITE)).absolute()
        if file.is_dir():
            raise refuse("tracking_uri", "the path of a file, not of a folder (remove or rename it)", uri)
        return Place(f"{SQLITE}{file}", experiment, (file.parent / "mlartifacts").as_uri())
    served = uri.startswith(("http:", "https:", "databricks"))
    return Place(uri, experiment, None if served else (logs.absolute() / "mlartifacts").as_uri())


def options_of(where: Place) -> dict[str, str]:
    """Return the options of a command that name the place, without those that have the command's defaults."""
    uri = {} if where.uri == place(None, EXPERIMENT, Path("logs")).uri else {"tracking_uri": where.uri}
    return uri | ({} if where.experiment == EXPERIMENT else {"experiment": where.experiment})


def failures() -> tuple[type[Exception], ...]:
    """What a server that is gone, a full disk or a locked database raises; a run goes on in spite of them."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (MlflowException, SQLAlchemyError, OSError)


def reason(error: BaseException) -> str:
    """What went wrong at the bottom, in one line: MLflow wraps it in several others."""
    while below := error.__cause__ or error.__context__:
        error = below
    return " ".join(str(error).split())[:200] or type(error).__name__


def preload() -> None:
    """Import MLflow, quiet and quick: it takes seconds."""
    for name, value in QUIET_AND_QUICK.items():
        os.environ.setdefault(name, value)
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401


def connect(where: Place) -> "MlflowClient":
    """A client. A fresh SQLite file gets its tables under a lock, all of them or none."""
    preload()  # outside of the lock
    from mlflow import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.CRITICAL)  # it logs a traceback for what we handle
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    with alone(where):
        if where.database is not None:
            if where.database.exists():
                _try_to_open(where.database)
            else:
                _make_tables(where.database)
        return MlflowClient(tracking_uri=where.uri, registry_uri=where.uri)


def alone(where: Place) -> AbstractContextManager[None]:
    """Keep other processes from creating tables or an experiment in the same SQLite file.

    It does nothing for a server.
    """
    if where.database is None:
        return nullcontext()
    return exclusive(where.database.with_name(f".{where.database.name}.lock"))


def experiment_id(client: "MlflowClient", where: Place) -> str:
    """The experiment, made where it does not exist. Raises `TrackingError` where it was deleted."""
    from mlflow.exceptions import MlflowException

    with alone(where):
        found = client.get_experiment_by_name(where.experiment)
        if found is None:
            try:
                return _create_experiment(client, where)
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
                found = client.get_experiment_by_name(where.experiment)
    if found is None or found.lifecycle_stage not in ("active", "deleted"):
        raise OSError(f"{where.uri} does not answer as MLflow does")
    if found.lifecycle_stage == "deleted":
        raise TrackingError(
            f"the experiment {where.experiment!r} is deleted in MLflow at {where.uri}: restore it there, "
            "or name another one with logger.experiment"
        )
    return str(found.experiment_id)


def _create_experiment(client: "MlflowClient", where: Place) -> str:
    location = where.artifacts and f"{where.artifacts}/{_slug(where.experiment)}"
    experiment_id = str(
        client.create_experiment(where.experiment, artifact_location=location, tags=view.experiment_tags())
    )
    client.set_experiment_tag(experiment_id, "mlflow.note.content", view.experiment_note(experiment_id))
    return experiment_id


def patient(action: Callable[[], T]) -> T:
    """`action`, again where a database was locked by another process; it must be safe to repeat."""
    for attempt in range(ATTEMPTS):
        try:
            return action()
        except failures() as error:
            if not is_locked(error) or attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.1 * 2**attempt * (1 + random.random()))
    raise AssertionError("unreachable")


def _try_to_open(database: Path) -> None:
    """Raise `OSError` for a file that SQLite can't open; MLflow itself tries for minutes."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        what = "a folder" if database.is_dir() else "no database that can be opened"
        raise OSError(str(error) if is_locked(error) else f"{database} is {what} ({error})") from error


def _make_tables(database: Path) -> None:
    """Make the tables in a file beside and rename it: a kill in the middle leaves no half database."""
    from mlflow import MlflowClient

    draft = database.with_name(f".{database.name}.draft")
    draft.unlink(missing_ok=True)
    MlflowClient(tracking_uri=f"{SQLITE}{draft}")  # its connections stay with the file, and write no more
    os.replace(draft, database)


def _slug(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text)
