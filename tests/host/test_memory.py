"""What the C library and the garbage collector are asked."""

import ctypes
import gc
from pathlib import Path
from typing import Any

import pytest

from fedcohort.host import memory
from run_harness import Collect, go


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


def resident() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library has no malloc_trim")
def test_what_was_freed_is_given_back() -> None:
    """2,000 blocks of 50 kB below one that stays: the C library keeps them, as they aren't at its heap's end."""
    blocks = [b"x" * 50_000 for _ in range(2_000)]
    held = resident()
    last = blocks[-1]
    blocks.clear()
    memory.give_back()
    assert held - resident() > 80_000_000
    assert len(last) == 50_000


def test_a_run_gives_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When all is done, and while the data are loaded."""
    said = list[str]()
    monkeypatch.setattr(
        memory, "give_back", lambda: said.append(Collect.latest[-1].status if Collect.latest else "loading")
    )
    go(tmp_path, "rounds=1", "selector=random")
    assert said[-1] == "finished"
    assert said.count("finished") == 1
    assert said[0] == "loading"
