"""A limit on the time of a block of code."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_S = 1.0  # seconds between alarms, as a library may treat the first one as a slow answer, and try again


class _OutOfTime(BaseException):
    """Raised by the alarm; a library's `except Exception` does not catch it."""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Raise `TimeoutError` if the block takes longer than `seconds`.

    Signals reach only the main thread: in another thread there is no limit.

    Args:
        seconds: wall time, above 0.
        what: name of the block, for the message.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_running, text = True, f"{what} took longer than {seconds:g} s"

    def interrupt(number: int, frame: FrameType | None) -> None:
        if is_running:
            raise _OutOfTime(text)  # with the text: messages name the innermost error

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    except _OutOfTime as error:
        is_running = False
        raise TimeoutError(text) from error
    finally:
        is_running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
