"""What the C library and the garbage collector are asked."""

import ctypes
import gc
import math
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedcohort.errors import OptionError
from fedcohort.host import memory
from fedcohort.startup import run
from process_kills import run_in_child
from run_harness import SMALL, CollectReports, compose_overrides, run_training


class Library:
    """A simulated C library that records its calls; without `mallopt` and `malloc_trim` if it has neither."""

    def __init__(self, *names: str) -> None:
        self.asked: list[tuple[Any, ...]] = []
        for name in names:
            setattr(self, name, lambda *numbers, name=name: self.asked.append((name, *numbers)))


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch, _return_memory_to_system: Callable[[], None]) -> None:
    monkeypatch.setattr(memory, "return_memory_to_system", _return_memory_to_system)


def test_freed_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """By malloc.h M_MMAP_THRESHOLD is -3 and M_TRIM_THRESHOLD -1.

    Blocks below 2^30 bytes come from the heap, and less than 2^31 - 1, the largest int, never goes back to the system.
    """
    library = Library("mallopt")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    memory.reuse_freed_memory()
    assert sorted(library.asked) == [("mallopt", -3, 2**30), ("mallopt", -1, 2**31 - 1)]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    memory.reuse_freed_memory()
    memory.share_memory_with_children()
    gc.unfreeze()


def test_existing_objects_are_frozen_before_forking(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library("malloc_trim")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    memory.share_memory_with_children()
    n_frozen = gc.get_freeze_count()
    gc.unfreeze()
    assert library.asked == [("malloc_trim", 0)]
    assert n_frozen > 1000  # objects of the interpreter and of torch


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library has no malloc_trim")
def test_freed_memory_is_returned_to_the_system() -> None:
    """2,000 blocks of 50 kB below one that stays: they are not at the end of the heap of the C library."""
    blocks = [b"x" * 50_000 for _ in range(2_000)]
    held_bytes = memory.read_resident_bytes()
    last = blocks[-1]
    blocks.clear()
    memory.return_memory_to_system()
    assert held_bytes - memory.read_resident_bytes() > 80_000_000
    assert len(last) == 50_000


def test_the_system_reports_the_memory_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    assert memory.read_resident_bytes() == pytest.approx(int(line.split()[1]) * 1024, rel=0.05)
    monkeypatch.setattr(Path, "read_text", lambda path: Path("/no/such/file").read_bytes())
    assert memory.read_resident_bytes() == math.inf


@pytest.mark.parametrize(("megabytes", "passes"), [(1, 0), (100, 1)])
def test_the_garbage_of_a_run_is_collected_if_it_is_large(
    megabytes: int, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference cycle that holds data is freed explicitly; automatic collections follow the number of objects."""
    gc.collect()
    memory.return_memory_to_system()
    monkeypatch.setitem(memory._RESIDENT_BYTES_BY_TIME, "after collection", memory.read_resident_bytes())
    collected, collect = list[int](), gc.collect
    monkeypatch.setattr(gc, "collect", lambda: collected.append(collect()))
    cycle: list[Any] = [bytes([1]) * (megabytes * 10**6)]
    cycle.append(cycle)
    del cycle
    held_bytes = memory.read_resident_bytes()
    memory.collect_garbage_after_run()
    assert len(collected) == passes
    assert held_bytes - memory.read_resident_bytes() >= 0.9 * megabytes * 10**6 * passes - 50_000, (
        "other objects take some pages"
    )


def test_a_run_returns_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When all is done, and while the data are loaded."""
    statuses = list[str]()
    for name in ("return_memory_to_system", "collect_garbage_after_run"):
        monkeypatch.setattr(
            memory,
            name,
            lambda: statuses.append(CollectReports.latest[-1].status if CollectReports.latest else "loading"),
        )
    run_training(tmp_path, "rounds=1", "selector=random", "data_seed=1234")  # data that no other test has loaded
    assert statuses[-1] == "finished"
    assert statuses.count("finished") == 1
    assert statuses[0] == "loading"


def test_memory_is_not_freed_before_the_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[str]()
    monkeypatch.setattr(memory, "collect_garbage_after_run", lambda: calls.append("freed"))
    composed = compose_overrides(*SMALL, "rounds=1", f"paths.logs={tmp_path}")
    run.run(composed, is_last_run=True)
    assert not calls


def test_collections_wait_for_the_end_of_imports() -> None:
    """What was imported is frozen, in a process that had disabled them; in others nothing changes."""
    n_frozen = gc.get_freeze_count()
    memory.enable_garbage_collection()
    assert gc.get_freeze_count() == n_frozen
    gc.disable()
    try:
        memory.enable_garbage_collection()
        assert gc.isenabled()
        assert gc.get_freeze_count() > n_frozen + 1000
    finally:
        gc.unfreeze()
        gc.enable()


def test_memory_above_the_address_space_limit_is_rejected_with_numbers() -> None:
    """In a child whose limit leaves 1 GB: 0.1 GB pass, 40 GB don't."""

    def run_with_limit() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + 2**30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        memory.require_memory(1e8, "a table", "use fewer rows")
        with pytest.raises(
            OptionError, match=r"a table needs at least 40.0 GB of memory, 1.\d GB are available: use fewer rows"
        ):
            memory.require_memory(4e10, "a table", "use fewer rows")

    assert run_in_child(run_with_limit) == 0


def test_small_memory_requirements_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "read_available_bytes", lambda: 0.0)
    memory.require_memory(memory.MIN_CHECKED_BYTES, "a table", "use fewer rows")
