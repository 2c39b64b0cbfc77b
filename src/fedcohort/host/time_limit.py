"""A limit on how long a block of code may take, whatever it waits for."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_S = 1.0  # a library may take the first alarm for a slow answer, and try once more


class _OutOfTime(BaseException):
    """Passes through a library's own `except Exception`."""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Raise `TimeoutError` if the block takes longer than `seconds`.

    Signals reach the main thread alone: in another thread there is no limit.

    Args:
        seconds: of wall time, above 0.
        what: is waited for, which the error says.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    armed, text = True, f"{what} took longer than {seconds:g} s"

    def interrupt(number: int, frame: FrameType | None) -> None:
        if armed:
            raise _OutOfTime(text)  # with the text: messages name the innermost error

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    except _OutOfTime as error:
        armed = False
        raise TimeoutError(text) from error
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
