"""Ctrl-C and SIGTERM, from the first import to the last file; a closed pipe (`| head`) is the third of them.

Before the first round there is nothing to lose: a signal ends the run at once. In the rounds the first one asks for an
end after the round, and another drops the round. While the files of the end are written the first one waits for them,
and each further one gives up the file at work. The exit code is 128 + the number of the first signal.
"""

import enum
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

log = logging.getLogger("fedcohort")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CLUSTERS = (signal.SIGUSR1, signal.SIGUSR2)  # a launcher's own: submitit puts a job back into the queue, and ends it
PIPE = 128 + signal.SIGPIPE
NOTHING = "stopped before a round was trained"


class Stop(KeyboardInterrupt):
    """End now. code: the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Stopped(SystemExit):
    """A signal has ended a run whose rounds are saved.

    Attributes:
        folder: of the run.
    """

    def __init__(self, code: int, folder: Path) -> None:
        super().__init__(code)
        self.folder = folder

    def __reduce__(self) -> tuple[type["Stopped"], tuple[Any, Path]]:
        """Let a process send it to another one."""
        return Stopped, (self.code, self.folder)


class Phase(enum.Enum):
    """What a process is doing when a signal comes; the value is what a signal that waits says."""

    START = ""
    FORKED = "stopping; once more to stop at once"  # the parent of training processes, which know better what they do
    ROUNDS = "finishing the round; once more to drop it"
    FILES = "finishing figures and tracking; once more to leave them out"
    DEAF = "ending"


class Interrupts:
    """The signals of this process, and of the training processes that it forks.

    What the process is doing is told by the methods named after what happens; nobody else writes it.
    """

    def __init__(self) -> None:
        self._phase = Phase.START
        self._shared = mmap.mmap(-1, 2)  # exit code, and whether the round is dropped: forked processes see it too
        self._owner = 0
        self._own = 0  # a forked process keeps to itself what came to it: perhaps it is torch that ends it
        self._seen = False
        self._before: dict[int, Any] | None = None

    @property
    def code(self) -> int:
        """The exit code that a signal asked for, 0 where none came."""
        return self._shared[0] or self._own

    @property
    def waits(self) -> bool:
        """Whether a signal that comes now does nothing until somebody asks with `check`."""
        return self._phase is Phase.DEAF

    def prepares(self) -> None:
        """Nothing is lost yet: a signal ends the run at once."""
        self._phase = Phase.START

    def forks(self) -> None:
        """Training processes may be forked, and know better what they do; each says so of itself when it prepares."""
        self._phase = Phase.FORKED

    def trains(self) -> None:
        """The rounds begin."""
        self._phase = Phase.ROUNDS

    def writes_files(self) -> None:
        """The rounds are over, and the files of the end are written."""
        self._phase = Phase.FILES

    def breaks_off(self) -> None:
        """An error ends the run. If it is a signal's, before the rounds, what is still written is not for another."""
        if self.code and self._phase is Phase.START:
            self._phase = Phase.DEAF

    def note(self, code: int) -> None:
        """All processes are to know of the signal; the first one counts."""
        self._shared[0] = self._shared[0] or code

    def start(self) -> None:
        """Have signals do what this module says, from here on. One that is ignored (`nohup`) stays so."""
        self._shared[:] = b"\0\0"
        self._phase, self._owner, self._own, self._seen = Phase.START, os.getpid(), 0, False
        for number in CLUSTERS:
            if callable(theirs := signal.getsignal(number)):
                signal.signal(number, self._for_owner(theirs))
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        self._before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
        self.listen()

    def listen(self) -> None:
        """Take the signals back: Lightning's own handlers drop the round, or ignore Ctrl-C for good."""
        for number in self._before or ():
            signal.signal(number, self._came)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watch inside, unless somebody outside does."""
        if self._before is not None or threading.current_thread() is not threading.main_thread():
            yield
            return
        self.start()
        try:
            yield
        finally:
            self._give_back(self._before or {})
            self._shared[:], self._own = b"\0\0", 0

    def stop(self) -> None:
        """Prepare for the end of the process: a signal that came has been obeyed, any other ends it at once."""
        self._give_back(dict.fromkeys(self._before or (), signal.SIG_IGN if self.code else signal.SIG_DFL))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Let a signal wait, inside: ask with `check`."""
        before, self._phase = self._phase, Phase.DEAF
        try:
            yield
        finally:
            self._phase = before

    def check(self) -> None:
        """Raise `Stop` for a signal that had to wait, or that somebody's `except` swallowed."""
        if self.code and self._phase is Phase.START:
            raise Stop(self.code)

    def note_closed_pipe(self) -> None:
        """Nobody reads the output any more."""
        if self._before is None:
            raise SystemExit(PIPE)
        self.note(PIPE)
        self.check()

    def _give_back(self, handlers: dict[int, Any]) -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        self._before = None

    @property
    def on_already(self) -> bool:
        """Whether somebody watches."""
        return self._before is not None

    def _for_owner(self, theirs: Callable[[int, Any], Any]) -> Callable[[int, Any], None]:
        """The handler for this process alone: SLURM signals the training processes that it forks, too."""
        owner = os.getpid()

        def handler(number: int, frame: FrameType | None = None) -> None:
            if os.getpid() == owner:
                theirs(number, frame)

        return handler

    def _came(self, number: int, frame: FrameType | None = None) -> None:
        again, self._seen = self._seen or bool(self._shared[1]), True
        self._own = self._own or 128 + number
        if owner := os.getpid() == self._owner:
            self.note(128 + number)
        if self._phase is Phase.DEAF:
            return
        if not again and self._phase is not Phase.START:
            if owner:
                log.warning("%s: %s", signal.Signals(number).name, self._phase.value)
            return
        if self._phase is Phase.FORKED and (children := multiprocessing.active_children()):
            self._shared[1] = 1
            for child in children:
                child.terminate()
            return
        if self._phase is Phase.ROUNDS:
            self._phase = Phase.DEAF
        raise Stop(self.code)


interrupts = Interrupts()


def run_main(main: Callable[[], int]) -> int:
    """`main`'s exit code. Where a signal ended it the process ends here, with that signal's code."""
    interrupts.start()
    try:
        return main()
    except BaseException as error:
        if not interrupts.code or (isinstance(error, SystemExit) and error.code != interrupts.code):
            raise
        if not isinstance(error, SystemExit) and interrupts.code != PIPE:
            sys.stderr.write(f"{NOTHING}\n")
    finally:
        interrupts.stop()
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(interrupts.code)  # the interpreter's own end can take seconds, and half an import may raise in it
