"""What the C library and the garbage collector are asked."""

import ctypes
import gc
from typing import Any

import pytest

from fedcohort.host import memory


class Library:
    """A C library that writes down what it is asked; without `mallopt` and `malloc_trim` where it has neither."""

    def __init__(self, *names: str) -> None:
        self.asked: list[tuple[Any, ...]] = []
        for name in names:
            setattr(self, name, lambda *numbers, name=name: self.asked.append((name, *numbers)))


def test_freed_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """By malloc.h M_MMAP_THRESHOLD is -3 and M_TRIM_THRESHOLD -1.

    Blocks below 2^30 bytes come from the heap, and less than 2^31 - 1, the largest int, never goes back to the system.
    """
    library = Library("mallopt")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    memory.keep_freed_memory()
    assert sorted(library.asked) == [("mallopt", -3, 2**30), ("mallopt", -1, 2**31 - 1)]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    memory.keep_freed_memory()
    memory.share_with_children()
    gc.unfreeze()


def test_children_share_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library("malloc_trim")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    memory.share_with_children()
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    assert library.asked == [("malloc_trim", 0)]
    assert frozen > 1000  # objects of the interpreter and of torch
