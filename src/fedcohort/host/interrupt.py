"""Handling of Ctrl-C, SIGTERM and a closed pipe (`| head`), from the first import to the last file of a run.

Before the first round a signal ends the run at once. During the rounds, the first signal ends the run after the current
round, and the second drops the round. While the last files are written, the first signal waits for them, and each
further one cancels the current file. The exit code is 128 + the number of the first signal.
"""

import enum
import gc
import logging
import mmap
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from fedcohort.host.standard_output import discard_standard_output, is_output_closed

log = logging.getLogger("fedcohort")

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
CLUSTER_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)  # signals of launchers: submitit requeues a job, and ends it
CLOSED_PIPE_CODE = 128 + signal.SIGPIPE
STOPPED_BEFORE_TRAINING = "stopped before a round was trained"


class StopSignal(KeyboardInterrupt):
    """An exception that ends the process at once.

    Attributes:
        code: exit code of the process.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.code = exit_code


class StoppedBySignal(SystemExit):
    """An exception for a run that a signal ended after its rounds were saved.

    Attributes:
        code: exit code of the process, as of `SystemExit`.
        folder: folder of the run.
    """

    def __init__(self, exit_code: int, folder: Path) -> None:
        super().__init__(exit_code)
        self.folder = folder

    def __reduce__(self) -> tuple[type["StoppedBySignal"], tuple[Any, Path]]:
        """Return the arguments for pickling, so that the exception can be sent to another process."""
        return StoppedBySignal, (self.code, self.folder)


class RunPhase(enum.Enum):
    """An activity of a process when a signal arrives; the value is the message printed if the signal has to wait."""

    BEFORE_ROUNDS = ""  # no round has begun: a signal ends the run at once
    # training processes, which begin with BEFORE_ROUNDS, handle signals
    PROCESSES_FORKED = "stopping; a further signal stops at once"
    IN_ROUNDS = "finishing the round; a further signal drops it"
    WRITING_FILES = "finishing figures and tracking; a further signal leaves them out"
    IGNORING_SIGNALS = "ending"


class InterruptHandler:
    """The handling of signals by this process, and by the training processes that it forks.

    The methods `enter_phase` and `enter_failure_phase` set the process's phase, which decides what a signal does.
    """

    def __init__(self) -> None:
        self._phase = RunPhase.BEFORE_ROUNDS
        # exit code, and whether the round is dropped; shared with forked processes
        self._shared_flags = mmap.mmap(-1, 2)
        self._owner_pid = 0
        # signals to this process only: torch may have sent one to a forked process
        self._received_signals: list[StopSignal] = []
        self._previous_handlers: dict[int, Any] | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of the first signal; 0 without one."""
        return self._shared_flags[0] or (self._received_signals[0].code if self._received_signals else 0)

    @property
    def has_pending_signal(self) -> bool:
        """Whether a signal has no effect before the next call of `raise_if_interrupted`."""
        return self._phase is RunPhase.IGNORING_SIGNALS

    def enter_phase(self, run_phase: RunPhase) -> None:
        """Set the phase of the process, which decides what a signal does, to `run_phase`."""
        self._phase = run_phase

    def enter_failure_phase(self) -> None:
        """Note that an error ends the run; if a signal before the rounds caused it, further signals are ignored."""
        if self.exit_code and self._phase is RunPhase.BEFORE_ROUNDS:
            self._phase = RunPhase.IGNORING_SIGNALS

    def record_exit_code(self, exit_code: int) -> None:
        """Share the `exit_code` of a signal with all processes, unless there was one before."""
        self._shared_flags[0] = self._shared_flags[0] or exit_code

    def install_handlers(self) -> None:
        """Install the signal handlers of this module. A signal that is ignored (`nohup`) stays ignored."""
        self._shared_flags = mmap.mmap(-1, 2)  # new, as a worker shares the old one with all workers of its fork server
        self._phase, self._owner_pid = RunPhase.BEFORE_ROUNDS, os.getpid()
        self._received_signals = []
        for signal_number in CLUSTER_SIGNALS:
            if callable(signal_handler := signal.getsignal(signal_number)):
                signal.signal(signal_number, self._limit_to_owner(signal_handler))
        stop_handlers = ((stop_signal, signal.getsignal(stop_signal)) for stop_signal in STOP_SIGNALS)
        self._previous_handlers = {
            stop_signal: stop_handler
            for stop_signal, stop_handler in stop_handlers
            if stop_handler is not signal.SIG_IGN
        }
        self.reinstall_handlers()

    def reinstall_handlers(self) -> None:
        """Install the handlers again: Lightning's own would drop the present round, or ignore a later Ctrl-C."""
        for signal_number in self._previous_handlers or ():
            signal.signal(signal_number, self._receive_signal)

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Handle signals in the `with` block, unless a caller does already, or this is not the main thread."""
        if self._previous_handlers is not None or threading.current_thread() is not threading.main_thread():
            yield
            return
        self.install_handlers()
        try:
            yield
        finally:
            self._restore_handlers(self._previous_handlers or {})
            self._shared_flags[:], self._received_signals = b"\0\0", []

    def reset_handlers(self) -> None:
        """Prepare for the end of the process: a first signal ends it at once; after one, others are ignored."""
        final_handler = signal.SIG_IGN if self.exit_code else signal.SIG_DFL
        self._restore_handlers(dict.fromkeys(self._previous_handlers or (), final_handler))

    @contextmanager
    def delay_signals(self) -> Iterator[None]:
        """Delay signals in the `with` block until the next call of `raise_if_interrupted`."""
        previous_phase, self._phase = self._phase, RunPhase.IGNORING_SIGNALS
        try:
            yield
        finally:
            self._phase = previous_phase

    def raise_if_interrupted(self) -> None:
        """Raise `StopSignal` for a signal that had to wait, or whose exception was suppressed."""
        if self.exit_code and self._phase is RunPhase.BEFORE_ROUNDS:
            raise StopSignal(self.exit_code)

    def record_closed_pipe(self) -> None:
        """Record that the output's pipe is closed, which ends the run like a signal.

        Raises `SystemExit` or `StopSignal` if the run can end at once.
        """
        if self._previous_handlers is None:
            raise SystemExit(CLOSED_PIPE_CODE)
        self.record_exit_code(CLOSED_PIPE_CODE)
        self.raise_if_interrupted()

    def _restore_handlers(self, handler_by_signal: dict[int, Any]) -> None:
        for signal_number, signal_handler in handler_by_signal.items():
            signal.signal(signal_number, signal_handler)
        self._previous_handlers = None

    @property
    def are_handlers_installed(self) -> bool:
        """Whether the handlers of this module are installed."""
        return self._previous_handlers is not None

    def _limit_to_owner(self, signal_handler: Callable[[int, Any], Any]) -> Callable[[int, Any], None]:
        """Return `signal_handler` for this process only, as SLURM also signals the training processes that it forks."""
        owner_pid = os.getpid()

        def handle_signal_in_owner(signal_number: int, stack_frame: FrameType | None = None) -> None:
            if os.getpid() == owner_pid:
                signal_handler(signal_number, stack_frame)

        return handle_signal_in_owner

    def _receive_signal(self, signal_number: int, stack_frame: FrameType | None = None) -> None:
        # another signal may interrupt this method at any line: the first in the list decides the exit code for both
        stop_signal, is_round_dropped = StopSignal(128 + signal_number), bool(self._shared_flags[1])
        self._received_signals.append(stop_signal)
        first_signal = self._received_signals[0]
        is_repeated_signal = is_round_dropped or stop_signal is not first_signal
        if is_owner_process := os.getpid() == self._owner_pid:
            self.record_exit_code(first_signal.code)
        if self._phase is RunPhase.IGNORING_SIGNALS:
            return
        if not is_repeated_signal and self._phase is not RunPhase.BEFORE_ROUNDS:
            if is_owner_process:
                log.warning("%s: %s", signal.Signals(signal_number).name, self._phase.value)
            return
        if self._phase is RunPhase.PROCESSES_FORKED and (child_processes := multiprocessing.active_children()):
            self._shared_flags[1] = 1
            for child_process in child_processes:
                child_process.terminate()
            return
        if self._phase is RunPhase.IN_ROUNDS:
            self._phase = RunPhase.IGNORING_SIGNALS
        raise StopSignal(self.exit_code)


interrupts = InterruptHandler()


def run_main(run_program: Callable[[], int], stop_message: str) -> int:
    """Return the exit code of a program; end the process with the signal's exit code if a signal ended it.

    A reader of the output that has gone, such as `head`, counts as SIGPIPE.

    Args:
        run_program: function that runs the program and returns its exit code.
        stop_message: text that is printed where a signal ended the program.
    """
    interrupts.install_handlers()
    try:
        exit_code = run_program()
        sys.stdout.flush()
        return exit_code
    except BaseException as error:
        if isinstance(error, BrokenPipeError) and is_output_closed():
            discard_standard_output()
            interrupts.record_exit_code(CLOSED_PIPE_CODE)
        if not interrupts.exit_code or (isinstance(error, SystemExit) and error.code != interrupts.exit_code):
            raise
        if not isinstance(error, SystemExit) and interrupts.exit_code != CLOSED_PIPE_CODE:
            sys.stderr.write(f"{stop_message}\n")
    finally:
        interrupts.reset_handlers()
        gc.freeze()  # the interpreter's exit would collect garbage for a second, in memory that is freed anyway
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(interrupts.exit_code)  # the interpreter's exit can take seconds, and may raise after an incomplete import
