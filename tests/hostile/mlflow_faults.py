"""Faults of MLflow's server or database: a run ends in bounded time with all its files, and the message names the cure.

Each case is a forked child that writes the journal of a made-up run, and a forked process that sends it to MLflow. Some
cases are whole runs.
"""

import json
import logging
import os
import signal
import socket
import socketserver
import sqlite3
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from fedcohort.errors import FedcohortError
from fedcohort.host import messages
from fedcohort.host.lock import try_to_lock
from fedcohort.record.folder import status_of
from fedcohort.record.journal import Journal
from fedcohort.tracking import tracker
from fedcohort.tracking.server import QUIET_AND_QUICK, import_mlflow
from fedcohort.tracking.tracker import MlflowTracker
from forked_follower import Subprocess
from hostile.harness import Answer, Case
from record.made_up import info, play
from run_harness import go
from tracking.databases import template

WORDS = ("rounds=3", "logger=mlflow", "logger.every_s=0", "callback=default", "callback.figures=null")
PATIENT, SHORT = 60, 8  # logger.wait_s: for answers that come, and for servers that stall
LIMIT_S = 240.0
Talk = Callable[[socket.socket], None]


def _answer(status: str, body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def _send(data: bytes) -> Talk:
    return lambda connection: connection.sendall(data)


def _stall(first: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(first)
        time.sleep(LIMIT_S)

    return talk


def _trickle(connection: socket.socket) -> None:
    connection.sendall(_answer("200 OK", b"{", "Content-Type: application/json", length=10**6))
    while True:
        time.sleep(1)
        connection.sendall(b" ")


def _chunks(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        time.sleep(0.05)
        connection.sendall(b"1\r\n \r\n")


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@contextmanager
def _listening(talk: Talk, *, greets: bool = False) -> Iterator[int]:
    """A server that reads a request and does `talk`; greets: that talks first. Yields its port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                if greets or self.request.recv(65_536):
                    talk(self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def _secure(home: Path) -> Iterator[int]:
    """A server with a certificate that no client trusts. Yields its port."""
    key, certificate = home / "key.pem", home / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=elsewhere"]
    subprocess.run([*words, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(65_536)
            secure.sendall(_answer("200 OK", b"{}"))

    with _listening(talk, greets=True) as port:
        yield port


@contextmanager
def _dying(home: Path) -> Iterator[int]:
    """MLflow's own server, which ends after some requests. Yields its port."""
    (home / "served.db").write_bytes(template())
    environment = {
        **QUIET_AND_QUICK,
        "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{home / 'served.db'}",
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": (home / "served").as_uri(),
    }
    os.environ.update(environment)
    from mlflow.server import app  # noqa: PLC0415 - takes seconds
    from werkzeug.serving import make_server  # noqa: PLC0415

    count = {"n": 0}

    def mortal(environ: dict[str, Any], start: Any) -> Any:
        count["n"] += 1
        if count["n"] == 8:
            threading.Thread(target=_close).start()
        return app(environ, start)

    server = make_server("127.0.0.1", 0, mortal, threaded=True)

    def _close() -> None:
        server.shutdown()
        server.server_close()

    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    for name in environment:
        os.environ.pop(name, None)


def _track(home: Path, wait_s: int, uri: str | None) -> None:
    """Track a made-up run of six rounds."""
    logs = home / "logs"
    tracked = MlflowTracker(tracking_uri=uri, experiment="fedcohort", every_s=0, wait_s=wait_s, logs=str(logs))
    tracked.prepare()  # forked before there is a lock, which it would hold, too
    folder = logs / "runs" / "flash-a1b2c3d4-s0"
    folder.mkdir(parents=True)
    lock = try_to_lock(folder / "run.lock")
    play([Journal(), tracked], info(folder))
    if lock is not None:
        lock.close()


def _run(home: Path, wait_s: int, uri: str | None = None, *, whole: bool = False) -> Answer:
    """Track a run in a forked child, ended by force after LIMIT_S seconds; whole: one that is trained."""
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
            if whole:
                go(home / "logs", *WORDS, f"logger.wait_s={wait_s}", f"logger.tracking_uri={uri or 'null'}")
            else:
                _track(home, wait_s, uri)
            code = 0
        except FedcohortError as error:
            os.write(2, f"{error}\n".encode())
            code = 2
        finally:
            os._exit(code)
    end = time.monotonic() + LIMIT_S
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Answer(None, log.read_text())
        time.sleep(0.1)
    return Answer(os.waitstatus_to_exitcode(ended[1]), log.read_text())


def _check_files(home: Path) -> str:
    runs = list((home / "logs" / "runs").iterdir()) if (home / "logs" / "runs").exists() else []
    if len(runs) != 1:
        return f"{len(runs)} runs"
    (path,) = runs
    steps = [json.loads(line)["step"] for line in (path / "journal.jsonl").open()]
    whole = (path / "last.ckpt").exists()
    if steps != list(range(len(steps))) or len(steps) < 4 or (whole and status_of(path)["status"] != "finished"):
        return f"status {status_of(path)}, steps {steps}"
    files = ["clients.parquet", *(["weights.pt", "summary.json"] if whole else [])]
    missing = [name for name in files if not (path / name).exists()]
    return f"{missing[0]} is missing" if missing else ""


def _check_nothing(home: Path) -> str:
    return "a run was started" if (home / "logs" / "runs").exists() else ""


def _on_server(
    talk: Talk, wait_s: int, home: Path, scheme: str = "http", *, greets: bool = False, whole: bool = False
) -> Answer:
    with _listening(talk, greets=greets) as port:
        return _run(home, wait_s, f"{scheme}://127.0.0.1:{port}", whole=whole)


def _with_database(prepare: Callable[[Path], object], home: Path, *, whole: bool = False) -> Answer:
    (home / "logs").mkdir()
    prepare(home / "logs" / "mlflow.db")
    return _run(home, PATIENT, whole=whole)


def _redirect(home: Path) -> Answer:
    def talk(connection: socket.socket) -> None:
        port = connection.getsockname()[1]
        connection.sendall(_answer("302 Found", b"", f"Location: http://127.0.0.1:{port}/again"))

    return _on_server(talk, PATIENT, home)


def _on_port(server: Callable[[Path], AbstractContextManager[int]], scheme: str, home: Path) -> Answer:
    with server(home) as port:
        return _run(home, PATIENT, f"{scheme}://127.0.0.1:{port}")


def _locked(home: Path) -> Answer:
    (home / "logs").mkdir()
    (home / "logs" / "mlflow.db").write_bytes(template())
    with closing(sqlite3.connect(home / "logs" / "mlflow.db")) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        return _run(home, SHORT)


def _of_another_program(database: Path) -> None:
    with closing(sqlite3.connect(database)) as made:
        made.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        made.execute("INSERT INTO alembic_version VALUES ('c0ffee')")
        made.commit()


def _deleted(database: Path) -> None:
    database.write_bytes(template())
    client = MlflowClient(f"sqlite:///{database}")
    client.delete_experiment(client.create_experiment("fedcohort"))


def _no_artifacts(database: Path) -> None:
    database.write_bytes(template())
    (database.parent / "mlartifacts").write_text("a file where the folder of artifacts should be")


def _small_disk(home: Path) -> Answer:
    """The database is on a separate disk, which is full once its tables are made."""
    disk = home / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    try:
        (disk / "mlflow.db").write_bytes(template())
        with suppress(OSError), (disk / "rest").open("wb", buffering=0) as rest:
            while True:
                rest.write(b"\0" * 4096)
        return _run(home, PATIENT, f"sqlite:///{disk / 'mlflow.db'}")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)  # a process may still have the file


HTML = _answer("200 OK", b"<html><body>Welcome to nginx!</body></html>", "Content-Type: text/html")
JSON = "Content-Type: application/json"
SERVERS: dict[str, tuple[Talk, int]] = {
    "stalls before its answer": (_stall(b""), SHORT),
    "stalls in the headers": (_stall(b"HTTP/1.1 200 OK\r\nContent-"), SHORT),
    "stalls in mid-answer": (_stall(_answer("200 OK", b'{"exp', JSON, length=5000)), SHORT),
    "sends a byte a second": (_trickle, SHORT),
    "sends chunks for ever": (_chunks, SHORT),
    "answers 500": (_send(_answer("500 Internal Server Error", b"oops")), PATIENT),
    "answers 503": (_send(_answer("503 Service Unavailable", b"", "Retry-After: 3600")), SHORT),
    "answers 401": (_send(_answer("401 Unauthorized", b"", 'WWW-Authenticate: Basic realm="x"')), PATIENT),
    "answers 403": (_send(_answer("403 Forbidden", b'{"error_code": "PERMISSION_DENIED"}', JSON)), PATIENT),
    "answers 404, as another version": (_send(_answer("404 Not Found", b"no such endpoint")), PATIENT),
    "answers 429": (_send(_answer("429 Too Many Requests", b"", "Retry-After: 3600")), SHORT),
    "is a web page": (_send(HTML), PATIENT),
    "answers other JSON": (_send(_answer("200 OK", b'{"hello": [1, 2]}', JSON)), PATIENT),
    "answers broken JSON": (_send(_answer("200 OK", b'{"experiment": {', JSON)), PATIENT),
    "closes before its answer ends": (_send(_answer("200 OK", b'{"exp', JSON, length=5000)), PATIENT),
    "closes without an answer": (_send(b""), PATIENT),
    "resets the connection": (_reset, PATIENT),
}
DATABASES: dict[str, Callable[[Path], object]] = {
    "is no database": lambda path: path.write_bytes(b"not SQLite at all\n" * 500),
    "is cut off": lambda path: path.write_bytes(template()[: len(template()) // 2]),
    "is another program's": _of_another_program,
    "has a file for its artifacts": _no_artifacts,
}


def cases() -> list[Case]:
    """A server or database a case."""
    found: list[Case] = []
    import_mlflow()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)

    def add(name: str, run: Callable[[Path], Answer]) -> None:
        found.append(Case(name, run, ("fedcohort sync",), accepted=True, check=_check_files))

    for name, (talk, wait_s) in SERVERS.items():
        add(f"a server that {name}", partial(_on_server, talk, wait_s))
    add("a server that speaks SSH", partial(_on_server, _send(b"SSH-2.0-OpenSSH_9.2\r\n"), PATIENT, greets=True))
    add("a server without TLS, by https", partial(_on_server, _send(HTML), PATIENT, scheme="https"))
    add("a server that redirects to itself", _redirect)
    add("a server with an untrusted certificate", partial(_on_port, _secure, "https"))
    add("a server that ends in the middle of the run", partial(_on_port, _dying, "http"))
    add("no server", lambda home: _run(home, PATIENT, "http://127.0.0.1:9"))
    add("an unknown host", lambda home: _run(home, PATIENT, "http://mlflow.invalid:5000"))
    for name, prepare in DATABASES.items():
        add(f"a database that {name}", partial(_with_database, prepare))
    add("an address of a kind that MLflow lacks", lambda home: _run(home, PATIENT, "ftp://127.0.0.1/mlflow"))
    add("no server, a whole run", lambda home: _run(home, PATIENT, "http://127.0.0.1:9", whole=True))
    stalling, _ = SERVERS["stalls in mid-answer"]
    add("a server that stalls in mid-answer, a whole run", partial(_on_server, stalling, SHORT, whole=True))
    deleted = partial(_with_database, _deleted, whole=True)
    found.append(Case("a database with a deleted experiment, a whole run", deleted, ("logger.experiment",)))
    add("a database that another process locks", _locked)
    add("a database on a full disk", _small_disk)
    add("a database that is a device", lambda home: _run(home, SHORT, "sqlite:////dev/full"))
    refused: list[tuple[str, Callable[[Path], Answer]]] = [
        ("a database that is a folder", partial(_with_database, lambda path: path.mkdir())),
        ("a folder of files", lambda home: _run(home, PATIENT, str(home / "mlruns"))),
        ("a password in the address", lambda home: _run(home, PATIENT, "http://me:pw@127.0.0.1")),
    ]
    found += [Case(name, run, ("tracking_uri",), check=_check_nothing) for name, run in refused]
    return found
