"""A signal does what the run's phase says, and ends the process with 128 + its number."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from fedcohort.host import interrupt
from fedcohort.host.interrupt import (
    CLOSED_PIPE_CODE,
    InterruptHandler,
    RunPhase,
    StoppedBySignal,
    StopSignal,
)

INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.fixture
def interrupts() -> Iterator[InterruptHandler]:
    """A watch of our own, whatever the process that runs the tests does with Ctrl-C."""
    before = signal.signal(INT, signal.default_int_handler)
    interrupts = InterruptHandler()
    with interrupts.handle_signals():
        yield interrupts
    assert signal.getsignal(INT) is signal.default_int_handler
    signal.signal(INT, before)


@pytest.mark.parametrize("number", [INT, TERM])
def test_a_signal_at_start_up_ends_the_run_at_once(interrupts: InterruptHandler, number: signal.Signals) -> None:
    with pytest.raises(StopSignal) as caught:
        signal.raise_signal(number)
    assert caught.value.code == 128 + number


def test_a_signal_to_one_worker_does_not_reach_the_others() -> None:
    """Two processes that are forked with the same object: one of them notes a signal, and the other has none."""
    interrupts = InterruptHandler()
    read_end, write_end = os.pipe()
    if not (child := os.fork()):
        os.read(read_end, 1)  # until the parent watches its signals
        with interrupts.handle_signals():
            interrupts.record_exit_code(143)
            os._exit(interrupts.exit_code)
    with interrupts.handle_signals():
        os.write(write_end, b"1")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 143
        assert interrupts.exit_code == 0
    os.close(read_end)
    os.close(write_end)


class TrainingProcess:
    """A child process that counts how often it is terminated."""

    def __init__(self) -> None:
        self.terminations = 0

    def terminate(self) -> None:
        self.terminations += 1


@pytest.mark.parametrize("line", range(12))
def test_two_signals_at_once_agree_on_the_first(
    interrupts: InterruptHandler, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    """SIGTERM arrives before the `line`-th line of the handler of SIGINT, or after its last line.

    The log names one of them only, the exit code is of this one, and the other one ends the training processes.
    """
    logged: list[str] = []
    monkeypatch.setattr(interrupt.log, "warning", lambda text, *values: logged.append(text % values))
    process = TrainingProcess()
    monkeypatch.setattr(multiprocessing, "active_children", lambda: [process])
    interrupts.enter_phase(RunPhase.PROCESSES_FORKED)
    lines_left = line

    def send_second_signal(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal lines_left
        if frame.f_code.co_name != "_receive_signal":
            return None
        if event == "line" and lines_left >= 0:
            lines_left -= 1
            if lines_left < 0:
                signal.raise_signal(TERM)
        return send_second_signal

    previous_trace = sys.gettrace()
    sys.settrace(send_second_signal)
    try:
        signal.raise_signal(INT)
    finally:
        sys.settrace(previous_trace)
    if lines_left >= 0:
        signal.raise_signal(TERM)
    (message,) = logged
    assert message.startswith(f"{signal.Signals(interrupts.exit_code - 128).name}: stopping")
    assert process.terminations == 1


def test_in_a_round_the_first_signal_waits_and_the_second_aborts(interrupts: InterruptHandler) -> None:
    interrupts.enter_phase(RunPhase.IN_ROUNDS)
    signal.raise_signal(INT)
    assert interrupts.exit_code == 130
    with pytest.raises(StopSignal) as caught:
        signal.raise_signal(TERM)
    assert caught.value.code == 130, "the first one counts"
    signal.raise_signal(INT)  # what the observers still write is not broken off


def test_while_files_are_written_each_further_signal_skips_one(interrupts: InterruptHandler) -> None:
    interrupts.enter_phase(RunPhase.WRITING_FILES)
    signal.raise_signal(TERM)
    for _ in range(2):
        with pytest.raises(StopSignal):
            signal.raise_signal(TERM)


def test_an_error_after_a_signal_is_not_interrupted(interrupts: InterruptHandler) -> None:
    interrupts.enter_failure_phase()
    assert not interrupts.has_pending_signal, "no signal came"
    with pytest.raises(StopSignal):
        signal.raise_signal(TERM)
    interrupts.enter_failure_phase()
    assert interrupts.has_pending_signal
    signal.raise_signal(TERM)


def test_a_held_signal_waits_for_the_next_check(interrupts: InterruptHandler) -> None:
    with interrupts.delay_signals():
        signal.raise_signal(TERM)
    with pytest.raises(StopSignal):
        interrupts.raise_if_interrupted()


def test_a_swallowed_signal_is_found_by_the_next_check(interrupts: InterruptHandler) -> None:
    with suppress(BaseException):
        signal.raise_signal(INT)
    with pytest.raises(StopSignal):
        interrupts.raise_if_interrupted()


def test_a_nested_handler_changes_nothing(interrupts: InterruptHandler) -> None:
    handler = signal.getsignal(TERM)
    with interrupts.handle_signals():
        assert signal.getsignal(TERM) == handler
    assert signal.getsignal(TERM) == handler


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(INT, signal.SIG_IGN)
    interrupts = InterruptHandler()
    with interrupts.handle_signals():
        interrupts.reinstall_handlers()
        assert signal.getsignal(INT) is signal.SIG_IGN
    signal.signal(INT, before)


def test_a_forked_process_holds_its_signal_until_all_processes_have_it(interrupts: InterruptHandler) -> None:
    """torch ends the other processes with SIGTERM where one of them dies: that is no signal of the user's."""

    def child(work: str) -> None:
        pid = os.fork()
        if pid == 0:
            interrupts.enter_phase(RunPhase.IN_ROUNDS)
            signal.raise_signal(TERM)
            if work == "heard":
                interrupts.record_exit_code(interrupts.exit_code)
            os._exit(0 if interrupts.exit_code == 143 else 1)
        assert os.waitpid(pid, 0)[1] == 0

    child("alone")
    assert interrupts.exit_code == 0
    child("heard")
    assert interrupts.exit_code == 143


@pytest.mark.parametrize(
    ("phase", "is_stopped"),
    [(RunPhase.BEFORE_ROUNDS, True), (RunPhase.IN_ROUNDS, False), (RunPhase.WRITING_FILES, False)],
)
def test_a_closed_pipe_counts_as_the_first_signal(
    interrupts: InterruptHandler, phase: RunPhase, is_stopped: bool
) -> None:
    interrupts.enter_phase(phase)
    if is_stopped:
        with pytest.raises(StopSignal):
            interrupts.record_closed_pipe()
    else:
        interrupts.record_closed_pipe()
    assert interrupts.exit_code == CLOSED_PIPE_CODE == 141


def test_a_closed_pipe_ends_a_program_without_a_handler() -> None:
    with pytest.raises(SystemExit) as caught:
        InterruptHandler().record_closed_pipe()
    assert caught.value.code == CLOSED_PIPE_CODE


PROGRAM = """import signal, sys
from fedcohort.host.interrupt import interrupts, run_main
sys.exit(run_main(lambda: {}, "stopped"))
"""


@pytest.mark.parametrize(
    ("main", "code", "expected_text"),
    [
        ("7", 7, ""),
        ("signal.raise_signal(signal.SIGTERM)", 143, "stopped"),
        # an import that was broken off raises what it likes
        ("interrupts.record_exit_code(143) or 1 / 0", 143, "stopped"),
        ("interrupts.record_closed_pipe()", 141, ""),
    ],
)
def test_a_program_ends_with_one_line_and_the_signals_code(main: str, code: int, expected_text: str) -> None:
    process = subprocess.run([sys.executable, "-c", PROGRAM.format(main)], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr.strip()) == (code, expected_text)


def test_a_closed_output_ends_a_program_quietly() -> None:
    """As in `fedcohort study report NAME | head`; a broken pipe to another process stays an error."""
    reader, writer = os.pipe()
    os.close(reader)
    for size in (1, 100_000):  # noticed at the end, and while it is written
        program = [sys.executable, "-c", PROGRAM.format(f"sys.stdout.write('x' * {size}) and 0")]
        process = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
        assert (process.returncode, process.stderr) == (141, ""), size
    os.close(writer)
    second = "(_ for _ in ()).throw(BrokenPipeError('a worker'))"
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(second)], capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    assert "BrokenPipeError: a worker" in process.stderr


def test_forked_processes_ignore_the_launchers_signal() -> None:
    """SLURM sends it to the training processes that were forked, too: each would put the job back into the queue."""
    receiver_pids: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _: receiver_pids.append(os.getpid()))
    interrupts = InterruptHandler()
    with interrupts.handle_signals():
        pid = os.fork()
        if pid == 0:
            signal.raise_signal(signal.SIGUSR2)
            os._exit(len(receiver_pids))
        assert os.waitpid(pid, 0)[1] == 0
        signal.raise_signal(signal.SIGUSR2)
    assert receiver_pids == [os.getpid()]
    signal.signal(signal.SIGUSR2, before)


def test_the_end_of_a_run_reaches_another_process_with_its_folder() -> None:
    """A launcher's worker process sends it to the one that started it."""
    stopped = pickle.loads(pickle.dumps(StoppedBySignal(130, Path("runs/a"))))
    assert (stopped.code, stopped.folder) == (130, Path("runs/a"))
