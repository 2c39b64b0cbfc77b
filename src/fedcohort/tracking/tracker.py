"""The observer of `logger=mlflow`: it starts the process that sends the run's journal to MLflow."""

import logging
import shlex
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path
from typing import ClassVar

from fedcohort import ranges
from fedcohort.errors import TrackingError
from fedcohort.host.commands import format_fedcohort_command
from fedcohort.record import metadata
from fedcohort.record.history import require_journal
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.tracking import server
from fedcohort.tracking.follow import format_send_command
from fedcohort.tracking.identity import is_upload_complete, register_server_location
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
MAX_SILENT_WAIT_S = 10.0  # seconds of waiting after which a message names the server


class FollowerProcess:
    """The child process that sends journals of runs to MLflow (`tracking/follow.py`).

    Messages go through `connection`, whose other end is its standard input. Processes that are forked from a process
    with a follower may use that follower.
    """

    def __init__(self) -> None:
        """Start the process. Raises `OSError` if the system has no processes or memory left."""
        self.connection, child_connection = Pipe()
        with child_connection:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fedcohort.tracking.follow"],
                stdin=child_connection.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C ends the run, which then ends the follower
            )

    def kill(self) -> None:
        """Kill the process, which may wait for a server that does not answer."""
        self.process.kill()
        self.process.wait()


class MlflowTracker(Observer):
    """An observer whose child process sends the journal to MLflow. At its end, the run waits for this process.

    An unreachable server is no error: the metrics stay in the run folder. A resume or `fedcohort sync` sends what
    MLflow lacks.

    Args:
        tracking_uri: address of the server or database; null for a SQLite file in `logs`.
        experiment: name of the experiment in MLflow.
        every_s: seconds between two sends, 0 to send each round at once.
        wait_s: seconds that one send may take, and that a run waits at its end.
        logs: folder of logs, for the SQLite file and the artifacts of databases.

    Raises:
        OptionError: an option is out of range, or the address has a password or is not supported by MLflow.
    """

    _follower: ClassVar[FollowerProcess | None] = None  # shared by the runs of a process: MLflow's import takes seconds

    def __init__(self, *, tracking_uri: str | None, experiment: str, every_s: float, wait_s: float, logs: str) -> None:
        ranges.number("every_s", every_s, "[0, inf)")
        ranges.number("wait_s", wait_s, "(0, inf)")
        ranges.text("tracking_uri", tracking_uri, allow_null=True)
        ranges.text("logs", logs)
        self._every_s, self._wait_s = every_s, wait_s
        self._place = server.locate_server(tracking_uri, experiment, Path(logs))
        self._folder: Path | None = None  # of the run that is followed, None once that is done
        self._problem = ""

    def opening_line(self) -> str:
        """Return the command or the address that shows the runs."""
        if self._place.uri.startswith("http"):
            return self._place.uri
        server_options = server.list_server_options(self._place)
        return shlex.join([*format_fedcohort_command("ui").split(), *(f"{n}={v}" for n, v in server_options.items())])

    def prepare(self) -> None:
        """Start the uploading process, which imports MLflow while this process imports torch."""
        try:
            MlflowTracker._follower = MlflowTracker._follower or FollowerProcess()
            self._problem = ""
        except OSError as error:
            self._problem = f"no process for MLflow can be started ({error})"

    def start(self, info: RunInfo) -> None:
        """Let the child process send the journal of the run with metadata `info`.

        Raises `IncompatibleConfig` if no journal is written.
        """
        require_journal(info.folder, "logger=mlflow")
        register_server_location(info.folder, self._place)
        self._folder = info.folder
        if not self._begin_upload():  # the follower has died since the last run
            self._begin_upload()

    def observe(self, report: RoundReport) -> None:
        """Log the messages of the uploading process; `report` is not read.

        Raises `TrackingError` if that process reports an error, such as a deleted experiment.
        """
        if self._folder is not None and self._read_messages(0) and self._problem:
            raise TrackingError(self._problem)

    def finish(self, status: str) -> None:
        """Wait at most `wait_s` seconds until MLflow has the run; otherwise name the command that sends the rest.

        Args:
            status: how the run ended, such as "finished".
        """
        run_folder, deadline_s = self._folder, time.monotonic() + self._wait_s
        if run_folder is None:
            return
        command = format_send_command(run_folder)
        if not self._end_upload(status, deadline_s, command) and time.monotonic() < deadline_s and self._begin_upload():
            # the follower was killed, perhaps by the system: try another one
            self._end_upload(status, deadline_s, command)
        if self._folder is not None and MlflowTracker._follower is not None:
            MlflowTracker._follower.kill()
            MlflowTracker._follower = None
            problem_text = f"did not take the rest of this run within logger.wait_s={self._wait_s:g} seconds"
            self._problem = f"MLflow at {self._place.uri} {problem_text}"
        elif self._folder is not None:
            self._problem = self._problem or "the process that sends to MLflow has died"
        self._folder = None
        if self._problem:
            log.warning("%s; `%s` sends what is missing", self._problem, command)

    def catch_up(self, folder: Path) -> None:
        """Send the missing rounds and files of the run in `folder`, which finished before."""
        if (folder / metadata.INFO_FILE).exists() and not is_upload_complete(folder, self._place):
            self.start(metadata.load_info(folder))
            self.finish("finished")

    def _begin_upload(self) -> bool:
        """Send the path of the run's folder to the uploading process, which is started if necessary.

        Return whether this succeeded.
        """
        self.prepare()
        return self._send_message(folder=str(self._folder), every_s=self._every_s, wait_s=self._wait_s)

    def _end_upload(self, status: str, deadline_s: float, send_command: str) -> bool:
        """Send the run's status to the uploading process; return whether it is done with the run, even if it failed.

        Args:
            status: how the run ended, such as "finished".
            deadline_s: time at which to stop waiting, on the clock `time.monotonic`.
            send_command: command that sends the rest, for a message.
        """
        if not self._send_message(status=status):
            return False
        is_uploaded = self._read_messages(min(deadline_s - time.monotonic(), MAX_SILENT_WAIT_S))
        if not is_uploaded and MlflowTracker._follower is not None and time.monotonic() < deadline_s:
            wait_message = "waiting for MLflow at %s, at most %g s (logger.wait_s); `%s` sends the rest later"
            log.info(wait_message, self._place.uri, self._wait_s, send_command)
            is_uploaded = self._read_messages(deadline_s - time.monotonic())
        return is_uploaded

    def _send_message(self, **message: object) -> bool:
        """Send the fields of `message` to the uploading process, and return whether this succeeded."""
        try:
            if MlflowTracker._follower is not None:
                MlflowTracker._follower.connection.send(message)
            return MlflowTracker._follower is not None
        except OSError:
            MlflowTracker._follower = None
            return False

    def _read_messages(self, timeout_s: float) -> bool:
        """Log messages of the uploading process for at most `timeout_s` seconds; return whether the run is done."""
        deadline_s = time.monotonic() + timeout_s
        try:
            while MlflowTracker._follower is not None:
                connection = MlflowTracker._follower.connection
                if not connection.poll(max(0.0, deadline_s - time.monotonic())):
                    return False
                message = connection.recv()
                if isinstance(message, logging.LogRecord):
                    log.handle(message)
                elif message["done"] == str(self._folder):  # a shared pipe may have those of a killed process
                    self._folder, self._problem = None, message["error"]
                    return True
        except (EOFError, OSError):  # the follower has died, perhaps within a message
            MlflowTracker._follower = None
        return False
