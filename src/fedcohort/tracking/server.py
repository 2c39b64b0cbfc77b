"""The MLflow server or database of runs, and connections that log little, time out soon and may be concurrent.

MLflow is imported inside functions, because its import takes seconds.
"""

import logging
import os
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fedcohort.errors import DiskError, TrackingError
from fedcohort.host.disk import describe_disk_error, find_unwritable_folder, is_disk_error, write_file_atomically
from fedcohort.host.lock import exclusive_lock
from fedcohort.host.secrets import has_password, make_password_error
from fedcohort.ranges import range_error
from fedcohort.tracking import view
from fedcohort.tracking.compat import is_lock_conflict

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

T = TypeVar("T")
SQLITE_PREFIX = "sqlite:///"
DEFAULT_EXPERIMENT = "fedcohort"  # the default name
MAX_CONFLICT_ATTEMPTS = 5
SWEEP_WAIT_S = 120.0  # seconds for sending and reading after the last job of a sweep
RUNS_PER_REQUEST = 1000  # runs per request
MLFLOW_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # with MLflow's default a run waits for minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


@dataclass(frozen=True)
class ServerLocation:
    """The MLflow server or database that holds runs, and the experiment in it.

    Attributes:
        uri: address of the server or database.
        experiment: name of the experiment.
        artifact_uri: URI of the folder of the files, or None if the server decides.
    """

    uri: str
    experiment: str
    artifact_uri: str | None

    @property
    def database(self) -> Path | None:
        """The SQLite file, or None for a server or another database."""
        return Path(self.uri.removeprefix(SQLITE_PREFIX)) if self.uri.startswith(SQLITE_PREFIX) else None


def locate_server(uri: str | None, experiment: str, logs_folder: Path) -> ServerLocation:
    """Return the server or database that options name.

    Args:
        uri: address of the server or database; None for a SQLite file in `logs_folder`.
        experiment: name of the experiment.
        logs_folder: folder of logs, for the SQLite file and the artifacts of databases.

    Raises:
        OptionError: the address has a password, or is a folder, which MLflow rejects since version 3.13, or the path of
            the SQLite file has a question mark. It is also raised if the name of the experiment is empty or no text.
    """
    uri = uri or f"{SQLITE_PREFIX}{logs_folder.absolute() / 'mlflow.db'}"
    if has_password(uri):
        raise make_password_error("tracking_uri", uri)
    if uri.startswith("file:") or ("://" not in uri and uri != "databricks"):
        allowed_text = "null, sqlite:///<file>, or the address of a server (MLflow >= 3.13 rejects folders of files)"
        raise range_error("tracking_uri", allowed_text, uri)
    if not isinstance(experiment, str) or not experiment:
        raise range_error("experiment", "a text that is not empty", experiment)
    if uri.startswith(SQLITE_PREFIX):
        db_file = Path(uri.removeprefix(SQLITE_PREFIX)).absolute()
        if db_file.is_dir() or "?" in uri:  # the path of a database ends at a question mark
            raise range_error("tracking_uri", "the path of a file (not of a folder) without '?'", uri)
        return ServerLocation(f"{SQLITE_PREFIX}{db_file}", experiment, (db_file.parent / "mlartifacts").as_uri())
    is_remote = uri.startswith(("http:", "https:", "databricks"))
    return ServerLocation(uri, experiment, None if is_remote else (logs_folder.absolute() / "mlartifacts").as_uri())


def list_server_options(location: ServerLocation) -> dict[str, str]:
    """Return the options of a command that name the server and experiment `location`, without default values."""
    default_uri = f"{SQLITE_PREFIX}{Path('logs', 'mlflow.db').absolute()}"
    uri = {} if location.uri == default_uri else {"tracking_uri": location.uri}
    return uri | ({} if location.experiment == DEFAULT_EXPERIMENT else {"experiment": location.experiment})


def list_server_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors by an unreachable server, a full disk or a locked database; they don't end a run."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (MlflowException, SQLAlchemyError, OSError)


@contextmanager
def explain_errors(problem_text: str, remedy_text: str = "check tracking_uri") -> Iterator[None]:
    """Raise errors of MLflow in the `with` block as `TrackingError` with problem and remedy, and those of files."""
    try:
        yield
    except list_server_errors() as error:
        if is_disk_error(error) and error.filename:
            raise DiskError(describe_disk_error(error)) from error
        if "readonly database" in (cause := find_cause(error)):
            remedy_text = "make the file of the database and its folder writable"
        raise TrackingError(f"{problem_text} ({cause}): {remedy_text}") from error


def find_cause(error: BaseException) -> str:
    """Return the message, in one line, of the original exception in `error`, which MLflow wraps in several others."""
    while inner_error := error.__cause__ or error.__context__:
        error = inner_error
    if isinstance(error, OSError) and (folder := find_unwritable_folder(error)):
        return f"{folder} is read-only"
    return " ".join(str(error).split())[:200] or type(error).__name__


def import_mlflow() -> None:
    """Import MLflow, which takes seconds, with settings for few messages and short timeouts."""
    os.environ.update({**MLFLOW_SETTINGS, **os.environ})
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401


def connect(location: ServerLocation) -> "MlflowClient":
    """Return a client of MLflow at `location`. A new SQLite file gets its tables under a lock, all of them or none.

    Raises `OSError` if SQLite cannot open an existing file.
    """
    import_mlflow()  # outside of the lock
    from mlflow import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.CRITICAL)  # it logs a traceback of handled errors
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    with lock_database(location):
        if location.database is not None and location.database.exists():
            _try_to_open_database(location.database)
        elif location.database is not None:
            _make_database_tables(location.database)
        return MlflowClient(tracking_uri=location.uri, registry_uri=location.uri)


def lock_database(location: ServerLocation) -> AbstractContextManager[None]:
    """Return a lock on the SQLite file at `location`, for creating tables or an experiment; else one without effect."""
    if location.database is None:
        return nullcontext()
    return exclusive_lock(location.database.with_name(f".{location.database.name}.lock"))


def find_or_create_experiment(mlflow_client: "MlflowClient", location: ServerLocation) -> str:
    """Return the id of the experiment, which is created if necessary.

    Args:
        mlflow_client: client of MLflow.
        location: server and experiment.

    Raises:
        TrackingError: the experiment was deleted.
        OSError: the address is no server of MLflow.
    """
    from mlflow.exceptions import MlflowException

    with lock_database(location):
        experiment = mlflow_client.get_experiment_by_name(location.experiment)
        if experiment is None:
            try:
                return _create_experiment(mlflow_client, location)
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
                experiment = mlflow_client.get_experiment_by_name(location.experiment)
    if experiment is None or experiment.lifecycle_stage not in ("active", "deleted"):
        raise OSError(f"{location.uri} is not a server of MLflow, as its answer shows: check tracking_uri")
    if experiment.lifecycle_stage == "deleted":
        raise TrackingError(
            f"the experiment {location.experiment!r} is deleted in MLflow at {location.uri}: restore it there, "
            "or name another one with logger.experiment"
        )
    return str(experiment.experiment_id)


def _create_experiment(mlflow_client: "MlflowClient", location: ServerLocation) -> str:
    folder_name = re.sub(r"[^\w.-]", "-", location.experiment)
    artifact_folder = location.artifact_uri and f"{location.artifact_uri}/{folder_name}"
    tags = view.make_experiment_tags()
    experiment_id = str(mlflow_client.create_experiment(location.experiment, artifact_folder, tags))
    mlflow_client.set_experiment_tag(experiment_id, "mlflow.note.content", view.write_experiment_note(experiment_id))
    return experiment_id


def retry_after_conflicts(server_action: Callable[[], T]) -> T:
    """Return the result of `server_action`; in conflicts with other processes call it `MAX_CONFLICT_ATTEMPTS` times."""
    for attempt_number in range(MAX_CONFLICT_ATTEMPTS):
        try:
            return server_action()
        except list_server_errors() as error:
            if not is_lock_conflict(error) or attempt_number == MAX_CONFLICT_ATTEMPTS - 1:
                raise
            time.sleep(0.1 * 2**attempt_number * (1 + random.random()))
    raise AssertionError("unreachable")


def _try_to_open_database(database: Path) -> None:
    """Raise `OSError` if SQLite cannot open the file `database`; MLflow itself would try for minutes."""
    try:
        with closing(sqlite3.connect(database)) as database_connection:
            database_connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        problem_text = "a folder" if database.is_dir() else "no database that can be opened"
        raise OSError(str(error) if is_lock_conflict(error) else f"{database} is {problem_text} ({error})") from error


def _make_database_tables(database: Path) -> None:
    """Create MLflow's tables in a temporary file and rename it to `database`, so that a kill leaves no partial file."""
    from mlflow import MlflowClient

    with write_file_atomically(database) as draft_path:
        MlflowClient(tracking_uri=f"{SQLITE_PREFIX}{draft_path}")  # its connections stay open and write no more


def search_runs(mlflow_client: "MlflowClient", experiment_id: str, mlflow_filter: str) -> "Iterator[Run]":
    """Yield the runs of an experiment that satisfy a condition, page by page.

    Args:
        mlflow_client: client of MLflow.
        experiment_id: id of the experiment.
        mlflow_filter: condition in MLflow's language.
    """
    page_token: str | None = ""
    while page_token is not None:
        run_page = mlflow_client.search_runs(
            [experiment_id], mlflow_filter, max_results=RUNS_PER_REQUEST, page_token=page_token or None
        )
        yield from run_page
        page_token = run_page.token or None
