"""Send a run's journal to MLflow during the run, in a separate process, the follower.

Importing MLflow takes seconds, and sending to a slow server takes minutes, for which a run must not wait. The follower
compares the journal with what MLflow has, and may therefore be killed at any point. The process of a run starts a
follower (`tracking/tracker.py`), and sends it the folder of each run and the status at its end. If a run is killed, the
follower's input ends and the run's lock is free.
"""

import gc
import logging
import os
import select
import shlex
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fedcohort.errors import FedcohortError
from fedcohort.host import memory
from fedcohort.host.commands import format_fedcohort_command
from fedcohort.host.lock import is_locked
from fedcohort.host.time_limit import limit_block_time
from fedcohort.record import metadata
from fedcohort.record.folder import read_status
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import identity, server
from fedcohort.tracking.upload import RunUpload, open_upload

log = logging.getLogger("fedcohort")
MAX_SEND_TIME_SHARE = 0.05  # largest share of the time that is spent on sending to a slow server
MAX_PAUSE_S = 600.0
POLL_RANGE_S = (0.1, 1.0)  # shortest and longest time between two checks of the journal and the lock
NICE_LEVEL = 5  # training has priority
EXIT_DELAY_S = 20.0  # seconds that a follower may run after the process that started it has ended
StatusWaiter = Callable[[float], str | None]  # wait at most these seconds, and return the run's status if it has ended


class RunSender:
    """Sends one run to MLflow: its new rounds at intervals, and its files at the end.

    An unreachable server is no error: the missing rounds are sent later.

    Attributes:
        info: metadata of the run.
        location: server or database that the run is sent to.
        every_s: smallest number of seconds between two sends; 0 sends at each call.
        wait_s: seconds that one send may take.
        next_send_s: time of the next send, on the clock `time.monotonic`.
    """

    def __init__(self, info: RunInfo, location: server.ServerLocation, send_interval_s: float, wait_s: float) -> None:
        self.info, self.location, self.every_s, self.wait_s = info, location, send_interval_s, wait_s
        self.next_send_s = 0.0
        self._upload: RunUpload | None = None
        self._failures = 0

    def start(self) -> None:
        """Find or create the MLflow run, and send its rounds. Raises `TrackingError` if the experiment was deleted."""
        identity.register_server_location(self.info.folder, self.location)
        self._try_action(self._send_rounds)
        if not self._failures:  # importing and connecting takes longer than sending
            self.next_send_s = time.monotonic() + self.every_s

    def observe(self) -> None:
        """Send the new lines of the journal, if a send is due."""
        if time.monotonic() >= self.next_send_s:
            self._try_action(self._send_rounds)

    def finish(self, status: str) -> None:
        """Send the remaining rounds and the files, and end the MLflow run; delete it if the run folder is removed.

        Args:
            status: how the run ended; "dropped" if its folder is removed.
        """

        def end_run() -> None:
            self._send_rounds().end_run(self.info, status)
            identity.mark_upload_complete(self.info.folder, self.location)

        def delete_run() -> None:
            if self._upload is not None:
                self._upload.client.set_terminated(self._upload.run_id, "KILLED")
                self._upload.client.delete_run(self._upload.run_id)

        self._try_action(delete_run if status == "dropped" else end_run)

    def _send_rounds(self) -> RunUpload:
        if self._upload is None:
            self._upload = open_upload(self.info, self.location)
        n_sent_rounds = self._upload.send_rounds()
        if self._failures:
            log.info("MLflow at %s is reachable again: %d rounds sent", self.location.uri, n_sent_rounds)
        return self._upload

    def _try_action(self, send_action: Callable[[], object]) -> None:
        started_s = time.monotonic()
        try:
            with limit_block_time(self.wait_s, "sending (logger.wait_s)"):
                server.retry_after_conflicts(send_action)
            self._failures = 0
        except server.list_server_errors() as error:
            if not self._failures:  # one message for each outage
                log.warning(
                    "MLflow at %s can't be reached (%s). The run continues: its metrics stay in %s, and `%s` "
                    "sends them later.",
                    *(self.location.uri, server.find_cause(error), self.info.folder),
                    format_send_command(self.info.folder),
                )
            self._failures += 1
        self.next_send_s = time.monotonic() + self._choose_pause_s(time.monotonic() - started_s)

    def _choose_pause_s(self, send_duration_s: float) -> float:
        """Return the seconds until the next send: more if sending is slow, and twice as many after each failed send.

        Args:
            send_duration_s: seconds that the last send took.
        """
        if not self._failures:
            return max(self.every_s, send_duration_s / MAX_SEND_TIME_SHARE) if self.every_s else 0.0
        backoff_s = max(self.every_s, send_duration_s / MAX_SEND_TIME_SHARE, 1.0) * 2.0 ** min(self._failures, 10)
        return min(backoff_s, max(MAX_PAUSE_S, send_duration_s / MAX_SEND_TIME_SHARE))


def format_send_command(folder: Path) -> str:
    """Return the command that sends the rounds and files of the run in `folder` that MLflow lacks."""
    return f"{format_fedcohort_command('sync')} {shlex.quote(str(folder))}"


def read_end_status(folder: Path) -> str:
    """Return the status with which the run in `folder` ended; "interrupted" if it was killed while it was running."""
    status = str(read_status(folder).get("status", "running"))
    return "interrupted" if status in ("running", "dropped") else status


def follow_run(folder: Path, send_interval_s: float, wait_s: float, wait_for_status: StatusWaiter) -> None:
    """Send the rounds of a run until it has ended.

    Args:
        folder: the run folder.
        send_interval_s: seconds between two sends.
        wait_s: seconds that one send may take.
        wait_for_status: function that waits at most the given seconds, and returns the run's status if the run has
            ended. The run has also ended if its lock is free.

    Raises:
        TrackingError: the experiment was deleted, or `mlflow.json` is damaged.
        ValueError: the run was never tracked.
    """
    tracked_run = identity.load_tracked_run(folder)
    if tracked_run is None:
        raise ValueError(f"{folder} was never tracked: call identity.register_server_location first")
    run_sender = RunSender(metadata.load_info(folder), tracked_run.server_location, send_interval_s, wait_s)
    run_sender.start()
    end_status = None
    while end_status is None:
        min_wait_s, max_wait_s = POLL_RANGE_S
        end_status = wait_for_status(min(max(run_sender.next_send_s - time.monotonic(), min_wait_s), max_wait_s))
        if end_status is None and not is_locked(folder / "run.lock"):
            end_status = wait_for_status(0) or read_end_status(folder)
        if end_status is None:
            run_sender.observe()
    run_sender.finish(end_status)


class _LogForwarder(QueueHandler):
    """A log handler that sends log records to the training process, which logs them to its terminal and its file.

    The handler's queue is the connection to that process.
    """

    def enqueue(self, log_record: logging.LogRecord) -> None:
        with suppress(OSError):  # the run has ended
            self.queue.send(log_record)  # type: ignore[attr-defined]


def serve_runs(message_reader: Connection, message_writer: Connection) -> None:
    """Send the journals of the runs that messages name, one after the other, until no more messages can come.

    Args:
        message_reader: connection for messages: `folder`, `every_s`, `wait_s` at a run's start, `status` at its end.
        message_writer: connection for messages with `done` (the folder) and `error` of each run, and log records.
    """

    def wait_for_status(max_wait_s: float) -> str | None:
        try:
            status: str | None = message_reader.recv()["status"] if message_reader.poll(max_wait_s) else None
        except (EOFError, OSError):  # the run's process has ended; its lock is free once its children have ended, too
            time.sleep(min(max_wait_s, POLL_RANGE_S[0]))
            return None
        return status

    while True:
        try:
            message = message_reader.recv()
        except (EOFError, OSError):
            return
        if "folder" not in message:  # the status of a run that was given up
            continue
        folder, error_text = Path(message["folder"]), ""
        try:
            follow_run(folder, message["every_s"], message["wait_s"], wait_for_status)
        except FedcohortError as error:
            error_text = str(error)
        except Exception as error:  # a defect here must not affect the run
            log.warning(
                "MLflow did not receive the last rounds of this run (%s: %s); `%s` sends what is missing",
                *(type(error).__name__, error, format_send_command(folder)),
            )
        with suppress(OSError):
            message_writer.send({"done": str(folder), "error": error_text})


def _exit_after_parent(input_descriptor: int) -> None:
    """End this process `EXIT_DELAY_S` seconds after the last process that could write to a pipe has ended.

    Args:
        input_descriptor: file descriptor of this process's end of the pipe, its input.
    """
    hangup_poll = select.poll()
    hangup_poll.register(input_descriptor, 0)
    hangup_poll.poll()
    time.sleep(EXIT_DELAY_S)
    os._exit(1)


def main() -> None:
    """Send the journals of runs to MLflow, as a child of the process that trains them."""
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signal_number, signal.SIG_IGN)  # the run decides when it ends
    os.nice(NICE_LEVEL)
    run_connection: Any = Connection(0)
    log.addHandler(_LogForwarder(run_connection))
    log.setLevel(logging.INFO)
    log.propagate = False
    threading.Thread(target=_exit_after_parent, args=(0,), daemon=True).start()
    gc.disable()
    server.import_mlflow()
    memory.enable_garbage_collection()
    serve_runs(run_connection, run_connection)
    os._exit(0)  # the interpreter's exit takes longer than the end of the run


if __name__ == "__main__":
    main()
