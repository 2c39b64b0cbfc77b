"""The tracker of a run and the follower that it starts: whichever of them dies first, MLflow gets every round."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fedcohort.command.sync import send_missing_rounds
from fedcohort.errors import OptionError, TrackingError
from fedcohort.host.lock import try_to_lock
from fedcohort.record import history
from fedcohort.record.journal import Journal
from fedcohort.tracking import tracker as module
from fedcohort.tracking.tracker import MlflowTracker
from forked_follower import Subprocess, fork_followers
from process_kills import kill_self, run_in_child
from record.example_run import make_report, replay_run
from tracking.databases import EXPERIMENT, Logs
from tracking.tracked_run import CLOSED_ADDRESS, check_tracked_run, run_info


@pytest.fixture(autouse=True)
def _fork_followers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fork_followers(monkeypatch)
    yield
    if MlflowTracker._follower is not None:
        MlflowTracker._follower.kill()


def tracker(logs: Logs, uri: str | None = None, every_s: float = 0, wait_s: float = 600) -> MlflowTracker:
    new_tracker = MlflowTracker(
        tracking_uri=uri, experiment=EXPERIMENT, every_s=every_s, wait_s=wait_s, logs=str(logs.path)
    )
    new_tracker.prepare()  # forked before there is a lock, which it would hold, too
    return new_tracker


@contextmanager
def hold_lock(logs: Logs) -> Iterator[None]:
    """Hold the lock of the run, as its process does."""
    folder = run_info(logs).folder
    folder.mkdir(parents=True, exist_ok=True)
    lock = try_to_lock(folder / "run.lock")
    assert lock is not None
    yield
    lock.close()


def warnings(captured_log: pytest.LogCaptureFixture) -> list[str]:
    """The warnings that were logged, without the notice that the run waits, which depends on the machine's speed."""
    return [entry.getMessage() for entry in captured_log.records if entry.levelno >= logging.WARNING]


def number() -> int:
    assert MlflowTracker._follower is not None
    return MlflowTracker._follower.process.pid


def test_consecutive_runs_share_one_follower_process(logs: Logs) -> None:
    first = tracker(logs)
    process_count = number()
    with hold_lock(logs):
        replay_run([Journal(), first], run_info(logs), last=3, status="interrupted")
        replay_run([Journal(), tracker(logs, every_s=3600)], run_info(logs, start=3))
    check_tracked_run(logs, 6)
    assert number() == process_count


def test_messages_of_the_follower_appear_in_the_runs_log(logs: Logs, captured_log: pytest.LogCaptureFixture) -> None:
    tracked = tracker(logs, CLOSED_ADDRESS)
    with hold_lock(logs):
        replay_run([Journal(), tracked], run_info(logs))
    (warning,) = warnings(captured_log)
    assert f"MLflow at {CLOSED_ADDRESS} can't be reached ([Errno 111] Connection refused)" in warning


def observe_rounds(tracked: MlflowTracker) -> None:
    while True:
        tracked.observe(make_report(0))


@pytest.mark.parametrize("is_long", [True, False])
def test_a_deleted_experiment_ends_a_long_run_and_only_warns_a_short_one(
    logs: Logs, captured_log: pytest.LogCaptureFixture, is_long: bool
) -> None:
    logs.client().delete_experiment(logs.client().create_experiment(EXPERIMENT))
    journal, tracked = Journal(), tracker(logs)
    with hold_lock(logs):
        for watcher in (journal, tracked):
            watcher.start(run_info(logs))
        if is_long:
            with pytest.raises(TrackingError, match=r"'selectors' is deleted .* logger.experiment"):
                observe_rounds(tracked)  # until the answer is there
        tracked.finish("failed")
    if not is_long:
        (warning,) = warnings(captured_log)
        assert "'selectors' is deleted" in warning
        assert f"fedcohort sync {run_info(logs).folder}` sends what is missing" in warning


@pytest.mark.parametrize("moment", ["rounds", "end"])
def test_a_follower_that_dies_is_replaced(
    logs: Logs, captured_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    journal, tracked = Journal(), tracker(logs)
    first = number()
    with hold_lock(logs):
        for watcher in (journal, tracked):
            watcher.start(run_info(logs))
        if moment == "rounds":
            os.kill(first, signal.SIGKILL)
        for step in range(7):
            for watcher in (journal, tracked):
                watcher.observe(make_report(step))
        journal.finish("finished")
        if moment == "end":  # while the run waits for it
            read_messages = tracked._read_messages

            def kill(timeout_s: float) -> bool:
                if MlflowTracker._follower is not None and number() == first:
                    os.kill(first, signal.SIGKILL)
                return read_messages(timeout_s)

            monkeypatch.setattr(tracked, "_read_messages", kill)
        tracked.finish("finished")
    assert not warnings(captured_log)
    assert number() != first
    check_tracked_run(logs, 6)


def test_a_resume_sends_the_rounds_that_killed_followers_left_out(
    logs: Logs, captured_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold_lock(logs), monkeypatch.context() as patched:
        patched.setattr(module, "subprocess", subprocess)
        patched.setattr(sys, "executable", "/bin/true")
        patched.setattr(MlflowTracker, "_follower", None)
        replay_run([Journal(), tracker(logs)], run_info(logs))
    (warning,) = warnings(captured_log)
    assert warning.startswith("the process that sends to MLflow has died; ")
    assert f"fedcohort sync {run_info(logs).folder}` sends what is missing" in warning
    tracked = tracker(logs)
    with hold_lock(logs):
        tracked.catch_up(run_info(logs).folder)
        end_time_ms = check_tracked_run(logs, 6).info.end_time
        assert end_time_ms == history.read_history(run_info(logs).folder).times[-1]
        monkeypatch.setattr(MlflowTracker, "start", None)  # nothing is missing: nothing is begun
        tracked.catch_up(run_info(logs).folder)
    tracked.catch_up(logs.path)  # the folder of a run without a journal


def test_a_follower_that_cannot_be_started_does_not_end_the_run(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, captured_log: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(Subprocess, "Popen", refuse)
    replay_run([Journal(), tracker(logs)], run_info(logs))
    (warning,) = warnings(captured_log)
    assert "no process for MLflow can be started (Resource temporarily unavailable)" in warning
    send_missing_rounds(run_info(logs).folder)
    check_tracked_run(logs, 6, "KILLED")


def test_the_follower_of_a_killed_run_sends_its_rounds_and_ends(logs: Logs) -> None:
    """SIGKILL of a process with a run: nothing tells the follower so but the lock and the end of its input."""
    read_end, write_end = os.pipe()

    def run() -> None:
        os.close(read_end)
        tracked = tracker(logs, every_s=3600)
        os.write(write_end, b".")
        with hold_lock(logs):
            replay_run([Journal(), tracked, Dying()], run_info(logs), last=3)

    run_in_child(run)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:  # the follower holds the other end: this ends when it has ended
        assert file.read() == b"."
    check_tracked_run(logs, 3, "KILLED")


class Dying(Journal):
    """An observer that kills its process after the third round."""

    def start(self, info: object) -> None: ...

    def observe(self, report: Any) -> None:
        if report.step == 3:
            kill_self()


def test_the_end_of_a_run_waits_for_its_follower_at_most_wait_s(
    logs: Logs, captured_log: pytest.LogCaptureFixture
) -> None:
    """A follower that is stopped says nothing, as one that waits for a server; `sync` sends the rest."""
    journal, tracked = Journal(), tracker(logs, wait_s=0.01)
    stopped = MlflowTracker._follower
    assert stopped is not None
    os.kill(number(), signal.SIGSTOP)
    with hold_lock(logs):
        for watcher in (journal, tracked):
            watcher.start(run_info(logs))
        for step in range(7):
            for watcher in (journal, tracked):
                watcher.observe(make_report(step))
        for watcher in (journal, tracked):
            watcher.finish("finished")
    (warning,) = warnings(captured_log)
    assert f"MLflow at {logs.uri} did not take the rest of this run within logger.wait_s=0.01 seconds; " in warning
    assert f"fedcohort sync {run_info(logs).folder}` sends what is missing" in warning
    assert stopped.process.returncode == -signal.SIGKILL
    send_missing_rounds(run_info(logs).folder)
    check_tracked_run(logs, 6, "KILLED")


@pytest.mark.parametrize("uri", ["file:/tmp/mlruns", "file:///tmp/mlruns", "mlruns", "./mlruns"])
def test_a_file_store_as_tracking_uri_is_rejected(tmp_path: Path, uri: str) -> None:
    with pytest.raises(OptionError, match=r"tracking_uri must be null, sqlite:///<file>, .* got '.*mlruns'"):
        MlflowTracker(tracking_uri=uri, experiment="x", every_s=1, wait_s=9, logs=str(tmp_path))


@pytest.mark.parametrize(("every_s", "experiment"), [(-1, "x"), (None, "x"), (True, "x"), (1, ""), (1, None)])
def test_tracker_options_out_of_range_are_rejected(tmp_path: Path, every_s: Any, experiment: Any) -> None:
    with pytest.raises(OptionError, match=r"(every_s|experiment) must be .*got"):
        MlflowTracker(tracking_uri=None, experiment=experiment, every_s=every_s, wait_s=9, logs=str(tmp_path))


@pytest.mark.parametrize(
    ("uri", "experiment", "line"),
    [
        (None, "x", "fedcohort ui tracking_uri=sqlite:////a/logs/mlflow.db experiment=x"),
        ("sqlite:////b c/m.db", "fedcohort", "fedcohort ui 'tracking_uri=sqlite:////b c/m.db'"),
        (f"sqlite:///{Path.cwd()}/logs/mlflow.db", "fedcohort", "fedcohort ui"),
        ("https://mlflow.example", "x", "https://mlflow.example"),
    ],
)
def test_the_opening_line_has_the_command_that_shows_the_runs(
    monkeypatch: pytest.MonkeyPatch, uri: str | None, experiment: str, line: str
) -> None:
    monkeypatch.setattr(module, "format_fedcohort_command", lambda command: f"fedcohort {command}")
    new_tracker = MlflowTracker(tracking_uri=uri, experiment=experiment, every_s=1, wait_s=9, logs="/a/logs")
    assert new_tracker.opening_line() == line


def test_importing_observers_imports_no_slow_library() -> None:
    modules = "fedcohort.tracking.follow, fedcohort.tracking.tracker, fedcohort.record.journal, "
    modules += "fedcohort.report.run_figures, fedcohort.console.progress, fedcohort.console.summary"
    slow = "{'mlflow', 'matplotlib', 'pandas', 'rich', 'pyarrow', 'torch', 'sqlalchemy'}"
    code = f"import sys, {modules}; found = {slow} & sys.modules.keys(); assert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True)
