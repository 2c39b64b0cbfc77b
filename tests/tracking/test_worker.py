"""MLflow's process beside the run: what is told to it arrives, whoever dies first."""

import json
import logging
import math
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping

import pytest

from fedcohort.command.sync import sync
from fedcohort.errors import TrackingError
from fedcohort.record import history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.tracking import worker as module
from fedcohort.tracking.courier import Courier
from fedcohort.tracking.tracker import MlflowTracker
from fedcohort.tracking.worker import Desk, Worker, finish_message, start_message
from fedcohort.types import RoundReport
from record.made_up import play, report
from tracking.databases import EXPERIMENT, Logs
from tracking.tracked import DEAD, check, run_info


@pytest.fixture(scope="module", autouse=True)
def one_worker() -> Iterator[None]:
    """The tests share it, as the runs of a process do: its imports take seconds."""
    yield
    MlflowTracker._worker = None


def tracker(logs: Logs, uri: str | None = None, every_s: float = 0, wait_s: float = 600) -> MlflowTracker:
    return MlflowTracker(tracking_uri=uri, experiment=EXPERIMENT, every_s=every_s, wait_s=wait_s, logs=str(logs.path))


def warnings(said: pytest.LogCaptureFixture) -> list[str]:
    """The warnings; that the run waits is said, too, on a slow machine."""
    return [entry.getMessage() for entry in said.records if entry.levelno >= logging.WARNING]


def number(worker: Worker | None = None) -> int:
    found = worker or MlflowTracker._worker
    assert found is not None
    return found._process.pid


def test_runs_one_after_the_other_have_one_worker(logs: Logs) -> None:
    first = tracker(logs)
    first.prepare()
    play([Journal(), first], run_info(logs), last=3, status="interrupted")
    there = number()
    play([Journal(), tracker(logs, every_s=3600)], run_info(logs, start=3))
    check(logs, 6)
    assert number() == there


def test_what_it_has_to_say_is_said_by_the_run(logs: Logs, said: pytest.LogCaptureFixture) -> None:
    play([Journal(), tracker(logs, DEAD)], run_info(logs))
    (warning,) = warnings(said)
    assert f"MLflow at {DEAD} can't be reached ([Errno 111] Connection refused)" in warning


def observe_on_and_on(tracked: MlflowTracker) -> None:
    while True:
        tracked.observe(report(0))


def test_a_deleted_experiment_ends_the_run_by_name(logs: Logs) -> None:
    logs.client().delete_experiment(logs.client().create_experiment(EXPERIMENT))
    journal, tracked = Journal(), tracker(logs)
    for watcher in (journal, tracked):
        watcher.start(run_info(logs))
    with pytest.raises(TrackingError, match=r"'selectors' is deleted .* logger.experiment"):
        observe_on_and_on(tracked)  # until the answer is there
    tracked.finish("failed")


def test_a_deleted_experiment_costs_a_short_run_nothing(logs: Logs, said: pytest.LogCaptureFixture) -> None:
    logs.client().delete_experiment(logs.client().create_experiment(EXPERIMENT))
    journal, tracked = Journal(), tracker(logs)
    for watcher in (journal, tracked):
        watcher.start(run_info(logs))
    tracked.finish("finished")
    (warning,) = warnings(said)
    assert "'selectors' is deleted" in warning
    assert f"fedcohort sync {run_info(logs).folder}` sends what is missing" in warning


@pytest.mark.parametrize("moment", ["rounds", "end"])
def test_a_worker_that_dies_is_replaced(
    logs: Logs, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    facts = run_info(logs)
    journal, tracked = Journal(), tracker(logs)
    for watcher in (journal, tracked):
        watcher.start(facts)
    first = number()
    if moment == "rounds":
        os.kill(first, signal.SIGKILL)
    for step in range(7):
        for watcher in (journal, tracked):
            watcher.observe(report(step))
    journal.finish("finished")
    if moment == "end":  # while the run waits for it
        heard = Worker.hear

        def kill(self: Worker, until: float) -> Iterator[Mapping[str, object]]:
            if self._process.pid == first:
                os.kill(first, signal.SIGKILL)
            return heard(self, until)

        monkeypatch.setattr(Worker, "hear", kill)
    tracked.finish("finished")
    assert not warnings(said)
    assert number() != first
    check(logs, 6)


def test_workers_that_die_again_and_again_are_given_up_and_the_next_resume_sends_the_rest(
    logs: Logs, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    play([Journal(), Courierless(logs)], run_info(logs))  # it was begun, and is RUNNING
    assert logs.only_run().info.status == "RUNNING"
    with monkeypatch.context() as patched:
        patched.setattr(MlflowTracker, "_worker", None)
        patched.setattr(module, "__name__", "this")  # python -m this: it says a poem and goes
        patched.setattr(Worker, "hear", lambda self, until: iter(()))
        tracked = tracker(logs)
        tracked.start(run_info(logs))
        for step in range(7):
            tracked.observe(report(step))
        tracked.finish("finished")
    (warning,) = warnings(said)
    assert warning.startswith("the process that sends to MLflow has died; ")
    assert f"fedcohort sync {run_info(logs).folder}` sends what is missing" in warning
    tracker(logs).catch_up(run_info(logs).folder)
    ended = check(logs, 6).info.end_time
    assert ended == history.last_ms(run_info(logs).folder)
    monkeypatch.setattr(MlflowTracker, "start", None)  # nothing is missing: nothing is begun
    tracker(logs).catch_up(run_info(logs).folder)


class Courierless(Observer):
    """A tracker whose process was killed when it had begun."""

    def __init__(self, logs: Logs) -> None:
        self.courier = logs.tracker()

    def start(self, info: RunInfo) -> None:
        self.courier.start(info)

    def observe(self, report: RoundReport) -> None: ...

    def finish(self, status: str) -> None: ...


def test_a_finished_run_is_sent_by_a_resume(logs: Logs) -> None:
    """Whatever it was tracked by, or not at all."""
    play([Journal()], run_info(logs))
    assert not logs.runs()
    tracker(logs).catch_up(run_info(logs).folder)
    check(logs, 6)
    tracker(logs).catch_up(logs.path)  # the folder of a run without a journal


def test_a_worker_that_cant_be_started_costs_the_run_nothing(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(MlflowTracker, "_worker", None)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    tracked = tracker(logs)
    tracked.prepare()
    play([Journal(), tracked], run_info(logs))
    (warning,) = warnings(said)
    assert "no process for MLflow can be started (Resource temporarily unavailable)" in warning
    sync(run_info(logs).folder)
    check(logs, 6, "KILLED")


def test_the_rounds_of_a_run_that_was_killed_are_sent(logs: Logs) -> None:
    journal, facts, worker = Journal(), run_info(logs), MlflowTracker._worker or Worker()
    MlflowTracker._worker = None  # it ends here
    journal.start(facts)
    assert worker.tell(start_message("a", facts.folder, logs.place(), 3600, 60), math.inf)
    for step in range(4):
        journal.observe(report(step))
        worker.poke()
    worker._process.communicate()  # closes the pipe, as death does, and waits
    assert worker._process.returncode == 0
    check(logs, 3, "RUNNING")


def test_the_end_of_a_run_waits_no_longer_than_it_may(
    logs: Logs, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a worker that is stopped nothing comes, as of one that waits for a server; `sync` sends the rest."""
    monkeypatch.setattr(MlflowTracker, "_worker", None)
    journal, tracked = Journal(), tracker(logs, wait_s=0.01)
    for watcher in (journal, tracked):
        watcher.start(run_info(logs))
    stopped = MlflowTracker._worker
    os.kill(number(), signal.SIGSTOP)
    for step in range(7):
        for watcher in (journal, tracked):
            watcher.observe(report(step))
    for watcher in (journal, tracked):
        watcher.finish("finished")
    (warning,) = warnings(said)
    assert f"MLflow at {logs.uri} did not take the rest of this run within logger.wait_s=0.01 seconds; " in warning
    assert f"fedcohort sync {run_info(logs).folder}` sends what is missing" in warning
    assert stopped is not None
    assert stopped._process.returncode == -signal.SIGKILL
    sync(run_info(logs).folder)
    check(logs, 6, "KILLED")


def test_a_send_that_never_ends_is_given_up(
    logs: Logs, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal().start(run_info(logs))
    monkeypatch.setattr(Courier, "_send", lambda self: threading.Event().wait())
    Courier(run_info(logs), logs.place(), 0, wait_s=0.01).start()
    (warning,) = warnings(said)
    assert "can't be reached (sending (logger.wait_s) took longer than 0.01 s)" in warning
    assert "fedcohort sync" in warning


def test_the_worker_of_a_killed_run_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_S", 0)
    read, write = os.pipe()

    def wait() -> None:
        os.close(write)
        module._end_after(read)

    os.write(write, b"not read yet\n")
    os.close(os.dup(write))
    child = os.fork()
    if child == 0:
        wait()
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_worker_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "__name__", "this")  # python -m this: it says a poem and goes
    worker = Worker()
    worker._process.wait()
    assert not worker.tell(finish_message("a", "finished"), math.inf)
    worker.poke()


def test_answers_to_another_run_are_no_answers(logs: Logs) -> None:
    """A process that was forked, and killed, may leave some behind."""
    tracked = tracker(logs)
    tracked._run = "mine"
    tracked._pass_on([{"run": "other", "done": True}, {"run": "other", "refused": "no"}])
    assert (tracked._ended, tracked._refused) == (False, "")
    tracked._pass_on([{"run": "mine", "done": True}])
    assert tracked._ended


@pytest.mark.parametrize(
    ("error", "answer"),
    [(TrackingError("it is deleted"), "it is deleted"), (TypeError("a bug"), "(TypeError: a bug)")],
)
def test_what_goes_wrong_in_it_is_told_and_it_goes_on(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, error: Exception, answer: str
) -> None:
    def fail(self: Courier) -> None:
        raise error

    monkeypatch.setattr(Courier, "start", fail)
    Journal().start(run_info(logs))
    reading, writing = os.pipe()
    desk = Desk(writing)
    desk.take(json.dumps(start_message("a", run_info(logs).folder, logs.place(), 0, 60)).encode())
    desk.take(b"")
    desk.work()
    desk.take(json.dumps(finish_message("a", "finished")).encode())
    first, last = (json.loads(line) for line in os.read(reading, 10_000).splitlines())
    assert answer in first.get("refused", first.get("text"))
    assert last == {"run": "a", "done": True}
