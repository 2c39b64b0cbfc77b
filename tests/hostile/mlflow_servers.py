"""Servers that MLflow's client cannot use: they stall, send wrong responses, or end during a run."""

import os
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fedcohort.tracking.server import MLFLOW_SETTINGS
from tracking.databases import database_template

PATIENT, SHORT = 60, 8  # logger.wait_s: for answers that come, and for servers that stall
LIMIT_S = 240.0  # seconds after which a run is ended by force
Talk = Callable[[socket.socket], None]


def answer(status: str, body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def send(data: bytes) -> Talk:
    return lambda connection: connection.sendall(data)


def stall(first: bytes) -> Talk:
    def respond(connection: socket.socket) -> None:
        connection.sendall(first)
        time.sleep(LIMIT_S)

    return respond


def send_slowly(connection: socket.socket) -> None:
    connection.sendall(answer("200 OK", b"{", "Content-Type: application/json", length=10**6))
    while True:
        time.sleep(1)
        connection.sendall(b" ")


def chunks(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        time.sleep(0.05)
        connection.sendall(b"1\r\n \r\n")


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@contextmanager
def run_server(respond: Talk, *, sends_first: bool = False) -> Iterator[int]:
    """Run a server that calls `respond` after a request, or at once with `sends_first`; yield its port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                if sends_first or self.request.recv(65_536):
                    respond(self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def secure(home: Path) -> Iterator[int]:
    """Run a server with a certificate that no client trusts, and yield its port."""
    key, certificate = home / "key.pem", home / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=elsewhere"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def respond(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(65_536)
            secure.sendall(answer("200 OK", b"{}"))

    with run_server(respond, sends_first=True) as port:
        yield port


@contextmanager
def run_short_server(home: Path) -> Iterator[int]:
    """Run MLflow's own server, which ends after some requests, and yield its port."""
    (home / "served.db").write_bytes(database_template())
    environment = {
        **MLFLOW_SETTINGS,
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
            threading.Thread(target=close).start()
        return app(environ, start)

    server = make_server("127.0.0.1", 0, mortal, threaded=True)

    def close() -> None:
        server.shutdown()
        server.server_close()

    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    for name in environment:
        os.environ.pop(name, None)


HTML = answer("200 OK", b"<html><body>Welcome to nginx!</body></html>", "Content-Type: text/html")
JSON = "Content-Type: application/json"
SERVERS: dict[str, tuple[Talk, int]] = {
    "stalls before its answer": (stall(b""), SHORT),
    "stalls in the headers": (stall(b"HTTP/1.1 200 OK\r\nContent-"), SHORT),
    "stalls in mid-answer": (stall(answer("200 OK", b'{"exp', JSON, length=5000)), SHORT),
    "sends a byte a second": (send_slowly, SHORT),
    "sends chunks for ever": (chunks, SHORT),
    "answers 500": (send(answer("500 Internal Server Error", b"oops")), PATIENT),
    "answers 503": (send(answer("503 Service Unavailable", b"", "Retry-After: 3600")), SHORT),
    "answers 401": (send(answer("401 Unauthorized", b"", 'WWW-Authenticate: Basic realm="x"')), PATIENT),
    "answers 403": (send(answer("403 Forbidden", b'{"error_code": "PERMISSION_DENIED"}', JSON)), PATIENT),
    "answers 404, as another version": (send(answer("404 Not Found", b"no such endpoint")), PATIENT),
    "answers 429": (send(answer("429 Too Many Requests", b"", "Retry-After: 3600")), SHORT),
    "is a web page": (send(HTML), PATIENT),
    "answers other JSON": (send(answer("200 OK", b'{"hello": [1, 2]}', JSON)), PATIENT),
    "answers broken JSON": (send(answer("200 OK", b'{"experiment": {', JSON)), PATIENT),
    "closes before its answer ends": (send(answer("200 OK", b'{"exp', JSON, length=5000)), PATIENT),
    "closes without an answer": (send(b""), PATIENT),
    "resets the connection": (reset, PATIENT),
}
