"""Following a run: when its journal is sent, and how the process that does so ends."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from fedcohort.errors import TrackingError
from fedcohort.host.lock import try_to_lock
from fedcohort.record import history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import follow, identity
from fedcohort.tracking.follow import RunSender
from fedcohort.tracking.upload import open_upload
from record.example_run import make_report, replay_run
from tracking.databases import EXPERIMENT, Logs
from tracking.tracked_run import CLOSED_ADDRESS, check_tracked_run, make_observers, run_info


@pytest.mark.parametrize(("status", "expected"), [("interrupted", "KILLED"), ("failed", "FAILED")])
def test_the_mlflow_status_is_that_of_the_run(logs: Logs, status: str, expected: str) -> None:
    replay_run(make_observers(logs), run_info(logs), last=2, status=status)
    assert check_tracked_run(logs, 2, expected).data.tags["status"] == status


def test_a_resumed_run_has_the_mlflow_status_running(logs: Logs) -> None:
    replay_run(make_observers(logs), run_info(logs), last=3, status="interrupted")
    repeat = make_observers(logs)
    for watcher in repeat:
        watcher.start(run_info(logs, start=3))
    run = logs.only_run()
    assert (run.info.status, run.data.tags["status"]) == ("RUNNING", "running")


def test_without_a_server_the_run_continues_with_one_warning(
    logs: Logs, captured_log: pytest.LogCaptureFixture
) -> None:
    replay_run([Journal(), logs.tracker(CLOSED_ADDRESS)], run_info(logs))
    (warning,) = [entry for entry in captured_log.records if entry.levelno >= logging.WARNING]
    text = warning.getMessage()
    assert f"MLflow at {CLOSED_ADDRESS} can't be reached ([Errno 111] Connection refused)" in text
    assert f"fedcohort sync {run_info(logs).folder}" in text
    assert len(history.read_journal_lines(run_info(logs).folder / "journal.jsonl")[0]) == 7


def test_an_unreachable_server_is_not_tried_every_round(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def refuse(*args: object, **kwargs: object) -> None:
        attempts.append(args)
        raise MlflowException("connection refused")

    monkeypatch.setattr(follow, "open_upload", refuse)
    replay_run(make_observers(logs), run_info(logs, rounds=50))
    assert len(attempts) == 2  # at the start and at the end


def test_pauses_grow_with_failures_and_with_the_time_that_sending_takes(logs: Logs) -> None:
    sender = RunSender(run_info(logs), logs.place(), 1, wait_s=60)
    assert (sender._choose_pause_s(0.01), sender._choose_pause_s(0.5)) == (
        1,
        10,
    )  # at most a twentieth of the time is spent sending
    sender._failures = 1
    assert sender._choose_pause_s(0.01) == 2
    sender._failures = 60
    assert sender._choose_pause_s(0.01) == 600
    assert RunSender(run_info(logs), logs.place(), 0, wait_s=60)._choose_pause_s(0.5) == 0


def test_the_first_rounds_are_sent_without_a_pause(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long importing MLflow and connecting took."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    planned = open_upload

    def slow(*args: Any) -> Any:
        clock[0] += 30
        return planned(*args)

    monkeypatch.setattr(follow, "open_upload", slow)
    journal, tracker = Journal(), logs.tracker(every_s=1)
    for watcher in (journal, tracker):
        watcher.start(run_info(logs))
    for step in range(3):
        clock[0] += 0.6
        for watcher in (journal, tracker):
            watcher.observe(make_report(step))
    run = logs.only_run()
    assert [m.step for m in logs.client().get_metric_history(run.info.run_id, "test/acc")] == [0, 1]


def test_a_deleted_experiment_is_named(logs: Logs) -> None:
    logs.client().delete_experiment(logs.client().create_experiment(EXPERIMENT))
    with pytest.raises(TrackingError, match=r"'selectors' is deleted .* logger.experiment"):
        replay_run(make_observers(logs), run_info(logs))


def test_sending_is_aborted_after_wait_s(
    logs: Logs, captured_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal().start(run_info(logs))
    monkeypatch.setattr(RunSender, "_send_rounds", lambda self: threading.Event().wait())
    RunSender(run_info(logs), logs.place(), 0, wait_s=0.01).start()
    (warning,) = [entry.getMessage() for entry in captured_log.records if entry.levelno >= logging.WARNING]
    assert "can't be reached (sending (logger.wait_s) took longer than 0.01 s)" in warning
    assert "fedcohort sync" in warning


@contextmanager
def hold_running_run(logs: Logs, last: int) -> Iterator[RunInfo]:
    """A run that holds its lock and has committed the rounds up to `last`."""
    facts, journal = run_info(logs), Journal()
    journal.start(facts)
    lock = try_to_lock(facts.folder / "run.lock")
    assert lock is not None
    identity.register_server_location(facts.folder, logs.place())
    for step in range(last + 1):
        journal.observe(make_report(step))
    yield facts
    lock.close()


def test_a_run_is_followed_until_its_lock_is_free(logs: Logs) -> None:
    """One that says nothing then was killed; all rounds that it committed are there."""
    pauses_s: list[float] = []
    with hold_running_run(logs, 3) as facts:

        def wait(seconds: float) -> None:
            pauses_s.append(seconds)
            if len(pauses_s) == 2:  # the run dies
                os.unlink(facts.folder / "run.lock")

        follow.follow_run(facts.folder, 0, 60, wait)
    assert len(pauses_s) == 3, "one more look for a message after the lock was free"
    assert max(pauses_s) <= follow.POLL_RANGE_S[1]
    check_tracked_run(logs, 3, "KILLED")


def serve(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Let a follower in this process read the messages, and return its replies."""
    (source, attempts), (answers, target) = Pipe(duplex=False), Pipe(duplex=False)
    for message in messages:
        attempts.send(message)
    attempts.close()
    follow.serve_runs(source, target)
    target.close()
    received = []
    with suppress(EOFError):
        while True:
            received.append(answers.recv())
    return received


def test_one_follower_serves_runs_one_after_the_other(logs: Logs) -> None:
    """The status of a run that was given up is skipped."""
    with hold_running_run(logs, 6) as facts:
        start = {"folder": str(facts.folder), "every_s": 3600, "wait_s": 60}
        reply = {"done": str(facts.folder), "error": ""}
        end_messages = ({"status": "interrupted"}, {"status": "finished"}, {"status": "failed"})
        assert serve(start, end_messages[0], start, end_messages[1], end_messages[2]) == [reply, reply]
    check_tracked_run(logs, 6)


@pytest.mark.parametrize(
    ("error", "answer"),
    [(TrackingError("it is deleted"), "it is deleted"), (TypeError("a bug"), "(TypeError: a bug)")],
)
def test_an_error_is_reported_and_the_follower_continues(
    logs: Logs, captured_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception, answer: str
) -> None:
    def fail(self: RunSender) -> None:
        raise error

    monkeypatch.setattr(RunSender, "start", fail)
    with hold_running_run(logs, 0) as facts:
        (reply,) = serve({"folder": str(facts.folder), "every_s": 0, "wait_s": 60})
    assert answer in reply["error"] + captured_log.text


def test_a_follower_ends_after_the_process_that_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "EXIT_DELAY_S", 0)
    read_end, write_end = os.pipe()
    os.write(write_end, b"not read yet\n")
    child = os.fork()
    if child == 0:
        os.close(write_end)
        follow._exit_after_parent(read_end)
    os.close(write_end)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
