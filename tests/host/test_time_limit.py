"""A limit on time interrupts code that never ends, and does not affect other code."""

import signal
import threading

import pytest

from fedcohort.host import time_limit as module
from fedcohort.host.time_limit import limit_block_time


def test_an_endless_wait_ends_at_the_time_limit() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError, match=r"^sending took longer than 0\.01 s$"), limit_block_time(0.01, "sending"):
        threading.Event().wait()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_library_that_retries_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALARM_INTERVAL_S", 0.01)

    def wait_with_retry() -> None:
        for _ in range(2):
            try:
                threading.Event().wait()
            except BaseException as error:
                last = error
        raise last

    with pytest.raises(TimeoutError), limit_block_time(0.01, "sending"):
        wait_with_retry()


def test_calls_that_end_in_time_are_unaffected() -> None:
    with limit_block_time(1000, "sending"):
        pass
    with pytest.raises(ValueError, match="its own"), limit_block_time(1000, "sending"):
        raise ValueError("its own")
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_code_in_another_thread_has_no_time_limit() -> None:
    run = []

    def work() -> None:
        with limit_block_time(1e-9, "sending"):
            run.append(threading.current_thread())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert run == [thread]
