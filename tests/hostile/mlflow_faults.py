"""Faults of MLflow's server or database: a run ends in bounded time with all its files, and the message names the cure.

Each case is a forked child that writes the journal of a made-up run, and a forked process that sends it to MLflow. Some
cases are whole runs.
"""

import json
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path

from mlflow import MlflowClient

from fedcohort.errors import FedcohortError
from fedcohort.host import messages
from fedcohort.host.lock import try_to_lock
from fedcohort.record.folder import read_status
from fedcohort.record.journal import Journal
from fedcohort.tracking import tracker
from fedcohort.tracking.server import import_mlflow
from fedcohort.tracking.tracker import MlflowTracker
from forked_follower import Subprocess
from hostile import mlflow_servers
from hostile.harness import Answer, Case
from hostile.mlflow_servers import LIMIT_S, PATIENT, SHORT
from record.example_run import make_run_info, replay_run
from run_harness import run_training
from tracking.databases import database_template

OVERRIDES = ("rounds=3", "logger=mlflow", "logger.every_s=0", "callback=default", "callback.figures=null")


def _train_tracked(home: Path, wait_s: int, uri: str | None) -> None:
    """Track a made-up run of six rounds."""
    logs = home / "logs"
    tracked = MlflowTracker(tracking_uri=uri, experiment="fedcohort", every_s=0, wait_s=wait_s, logs=str(logs))
    tracked.prepare()  # forked before there is a lock, which it would hold, too
    folder = logs / "runs" / "flash-a1b2c3d4-s0"
    folder.mkdir(parents=True)
    lock = try_to_lock(folder / "run.lock")
    replay_run([Journal(), tracked], make_run_info(folder))
    if lock is not None:
        lock.close()


def _run(home: Path, wait_s: int, uri: str | None = None, *, is_complete: bool = False) -> Answer:
    """Track a run in a forked child that is killed after LIMIT_S seconds; `is_complete` trains a whole run."""
    log = home / "output"
    pid = os.fork()
    if pid == 0:
        with log.open("w") as file:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
        messages.log_to_terminal()
        vars(tracker)["subprocess"] = Subprocess
        code = 70
        try:
            if is_complete:
                run_training(
                    home / "logs", *OVERRIDES, f"logger.wait_s={wait_s}", f"logger.tracking_uri={uri or 'null'}"
                )
            else:
                _train_tracked(home, wait_s, uri)
            code = 0
        except FedcohortError as error:
            os.write(2, f"{error}\n".encode())
            code = 2
        finally:
            os._exit(code)
    end = time.monotonic() + LIMIT_S
    while (pid_and_status := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Answer(None, log.read_text())
        time.sleep(0.1)
    return Answer(os.waitstatus_to_exitcode(pid_and_status[1]), log.read_text())


def _check_files(home: Path) -> str:
    runs = list((home / "logs" / "runs").iterdir()) if (home / "logs" / "runs").exists() else []
    if len(runs) != 1:
        return f"{len(runs)} runs"
    (path,) = runs
    steps = [json.loads(line)["step"] for line in (path / "journal.jsonl").open()]
    is_complete = (path / "last.ckpt").exists()
    if (
        steps != list(range(len(steps)))
        or len(steps) < 4
        or (is_complete and read_status(path)["status"] != "finished")
    ):
        return f"status {read_status(path)}, steps {steps}"
    files = ["clients.parquet", *(["weights.pt", "summary.json"] if is_complete else [])]
    missing = [name for name in files if not (path / name).exists()]
    return f"{missing[0]} is missing" if missing else ""


def _check_nothing(home: Path) -> str:
    return "a run was started" if (home / "logs" / "runs").exists() else ""


def _run_with_server(
    respond: mlflow_servers.Talk,
    wait_s: int,
    home: Path,
    scheme: str = "http",
    *,
    greets: bool = False,
    is_complete: bool = False,
) -> Answer:
    with mlflow_servers.run_server(respond, sends_first=greets) as port:
        return _run(home, wait_s, f"{scheme}://127.0.0.1:{port}", is_complete=is_complete)


def _with_database(prepare: Callable[[Path], object], home: Path, *, is_complete: bool = False) -> Answer:
    (home / "logs").mkdir()
    prepare(home / "logs" / "mlflow.db")
    return _run(home, PATIENT, is_complete=is_complete)


def _redirect(home: Path) -> Answer:
    def respond(connection: socket.socket) -> None:
        port = connection.getsockname()[1]
        connection.sendall(mlflow_servers.answer("302 Found", b"", f"Location: http://127.0.0.1:{port}/again"))

    return _run_with_server(respond, PATIENT, home)


def _run_with_port(server: Callable[[Path], AbstractContextManager[int]], scheme: str, home: Path) -> Answer:
    with server(home) as port:
        return _run(home, PATIENT, f"{scheme}://127.0.0.1:{port}")


def _lock_database(home: Path) -> Answer:
    (home / "logs").mkdir()
    (home / "logs" / "mlflow.db").write_bytes(database_template())
    with closing(sqlite3.connect(home / "logs" / "mlflow.db")) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        return _run(home, SHORT)


def _create_other_database(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO alembic_version VALUES ('c0ffee')")
        connection.commit()


def _delete_experiment(database: Path) -> None:
    database.write_bytes(database_template())
    client = MlflowClient(f"sqlite:///{database}")
    client.delete_experiment(client.create_experiment("fedcohort"))


def _no_artifacts(database: Path) -> None:
    database.write_bytes(database_template())
    (database.parent / "mlartifacts").write_text("a file where the folder of artifacts should be")


def _small_disk(home: Path) -> Answer:
    """The database is on a separate disk, which is full once its tables are made."""
    mount_point = home / "disk"
    mount_point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount_point)], check=True)
    try:
        (mount_point / "mlflow.db").write_bytes(database_template())
        with suppress(OSError), (mount_point / "rest").open("wb", buffering=0) as remainder:
            while True:
                remainder.write(b"\0" * 4096)
        return _run(home, PATIENT, f"sqlite:///{mount_point / 'mlflow.db'}")
    finally:
        subprocess.run(["umount", "--lazy", str(mount_point)], check=True)  # a process may still have the file


DATABASES: dict[str, Callable[[Path], object]] = {
    "is no database": lambda path: path.write_bytes(b"not SQLite at all\n" * 500),
    "is cut off": lambda path: path.write_bytes(database_template()[: len(database_template()) // 2]),
    "is another program's": _create_other_database,
    "has a file for its artifacts": _no_artifacts,
}


def cases() -> list[Case]:
    """A server or database a case."""
    results: list[Case] = []
    import_mlflow()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)

    def add(name: str, run: Callable[[Path], Answer]) -> None:
        results.append(Case(name, run, ("fedcohort sync",), accepted=True, check=_check_files))

    for name, (respond, wait_s) in mlflow_servers.SERVERS.items():
        add(f"a server that {name}", partial(_run_with_server, respond, wait_s))
    add(
        "a server that speaks SSH",
        partial(_run_with_server, mlflow_servers.send(b"SSH-2.0-OpenSSH_9.2\r\n"), PATIENT, greets=True),
    )
    add(
        "a server without TLS, by https",
        partial(_run_with_server, mlflow_servers.send(mlflow_servers.HTML), PATIENT, scheme="https"),
    )
    add("a server that redirects to itself", _redirect)
    add("a server with an untrusted certificate", partial(_run_with_port, mlflow_servers.secure, "https"))
    add("a server that ends in the middle of the run", partial(_run_with_port, mlflow_servers.run_short_server, "http"))
    add("no server", lambda home: _run(home, PATIENT, "http://127.0.0.1:9"))
    add("an unknown host", lambda home: _run(home, PATIENT, "http://mlflow.invalid:5000"))
    for name, prepare in DATABASES.items():
        add(f"a database that {name}", partial(_with_database, prepare))
    add("an address of a kind that MLflow lacks", lambda home: _run(home, PATIENT, "ftp://127.0.0.1/mlflow"))
    add("no server, a whole run", lambda home: _run(home, PATIENT, "http://127.0.0.1:9", is_complete=True))
    stall_in_answer, _ = mlflow_servers.SERVERS["stalls in mid-answer"]
    add(
        "a server that stalls in mid-answer, a whole run",
        partial(_run_with_server, stall_in_answer, SHORT, is_complete=True),
    )
    deleted = partial(_with_database, _delete_experiment, is_complete=True)
    results.append(Case("a database with a deleted experiment, a whole run", deleted, ("logger.experiment",)))
    add("a database that another process locks", _lock_database)
    add("a database on a full disk", _small_disk)
    add("a database that is a device", lambda home: _run(home, SHORT, "sqlite:////dev/full"))
    refused: list[tuple[str, Callable[[Path], Answer]]] = [
        ("a database that is a folder", partial(_with_database, lambda path: path.mkdir())),
        ("a folder of files", lambda home: _run(home, PATIENT, str(home / "mlruns"))),
        ("a password in the address", lambda home: _run(home, PATIENT, "http://me:pw@127.0.0.1")),
    ]
    results += [Case(name, run, ("tracking_uri",), check=_check_nothing) for name, run in refused]
    return results
