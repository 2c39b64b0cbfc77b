"""Interrupt a block of code that takes longer than a number of seconds."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ALARM_INTERVAL_S = 1.0  # seconds between alarms, as a library may treat the first one as a slow answer, and try again


class _TimeLimitReached(BaseException):
    """An exception of the alarm, which a library's `except Exception` does not catch."""


@contextmanager
def limit_block_time(time_limit_s: float, timed_block_name: str) -> Iterator[None]:
    """Raise `TimeoutError` if the `with` block takes too long.

    Signals reach only the main thread: in another thread there is no limit.

    Args:
        time_limit_s: limit of the wall time in seconds, above 0.
        timed_block_name: name of the block, for the message.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_block_running, limit_message = True, f"{timed_block_name} took longer than {time_limit_s:g} s"

    def raise_time_limit(signal_number: int, stack_frame: FrameType | None) -> None:
        if is_block_running:
            raise _TimeLimitReached(limit_message)  # with the text: messages name the innermost error

    previous_handler = signal.signal(signal.SIGALRM, raise_time_limit)
    signal.setitimer(signal.ITIMER_REAL, time_limit_s, ALARM_INTERVAL_S)
    try:
        yield
    except _TimeLimitReached as error:
        is_block_running = False
        raise TimeoutError(limit_message) from error
    finally:
        is_block_running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
