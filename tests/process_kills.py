"""Kill a forked child process at a chosen call of a function, without any clean-up."""

import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from fedcohort.record.observer import Observer


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class ExitingObserver(Observer):
    """Observer whose constructor ends the process."""

    def __init__(self) -> None:
        os._exit(9)


def kill_at_call(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, moment: str, work: Callable[[], object]
) -> None:
    """Run `work` in a child that dies before, after, or (for writers) in the middle of the `call`-th owner.name."""
    original = getattr(owner, name)
    count = {"n": 0}

    def count_call(*args: Any, **kwargs: Any) -> Any:
        count["n"] += 1
        if count["n"] != call:
            return original(*args, **kwargs)
        if moment == "before":
            kill_self()
        result = original(*args, **kwargs)
        kill_self()
        return result

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, count_call)
        status = run_in_child(work)
    assert os.WIFSIGNALED(status), f"the child ended without a kill ({status}): {name} was not called {call} times"


def act_at_call(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, calls: int, act: Callable[[], None]
) -> None:
    """Call `act` just before the `calls`-th call of module.name."""
    original = getattr(module, name)
    count = {"n": 0}

    def count_call(*args: object, **kwargs: object) -> object:
        count["n"] += 1
        if count["n"] == calls:
            act()
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, count_call)


def run_in_child(work: Callable[[], object]) -> int:
    """Run `work` in a forked child process, and return its status as given by os.waitpid."""
    return os.waitpid(fork(work), 0)[1]


def fork(work: Callable[[], object]) -> int:
    """Run `work` in a forked child process, and return the id of the process at its start."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
        try:
            work()
        except SystemExit as error:
            os._exit(int(error.code or 0))
        except BaseException:
            traceback.print_exc()
            os._exit(70)
        os._exit(0)
    return pid
