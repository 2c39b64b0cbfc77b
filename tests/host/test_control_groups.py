"""Limits of control groups in both versions, and of groups above the process's own."""

import math
from pathlib import Path

import pytest

from fedcohort.host import control_groups, memory


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in place of the mount; the process's groups are in `own`."""
    monkeypatch.setattr(control_groups, "MOUNT", tmp_path)
    monkeypatch.setattr(control_groups, "MEMBERSHIP", tmp_path / "own")
    return tmp_path


def test_the_smallest_quota_of_the_group_and_its_parents_applies(groups: Path) -> None:
    """Version 2: 1.5 cores below 4; a file without a quota; none at all."""
    assert control_groups.cpu_quota() == math.inf
    inner = groups / "a" / "b"
    inner.mkdir(parents=True)
    (groups / "own").write_text("0::/a/b\n")
    assert control_groups.cpu_quota() == math.inf
    (inner / "cpu.max").write_text("max 100000\n")
    assert control_groups.cpu_quota() == math.inf
    (inner.parent / "cpu.max").write_text("150000 100000\n")
    (inner / "cpu.max").write_text("400000 100000\n")
    assert control_groups.cpu_quota() == 1.5


def test_limits_of_control_groups_version_1_are_read(groups: Path) -> None:
    """The path that the process knows is the host's; in the container its group is the mount itself."""
    (groups / "own").write_text("4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n")
    for name, text in (
        ("cpu/cpu.cfs_quota_us", "250000"),
        ("cpu/cpu.cfs_period_us", "100000"),
        ("memory/memory.limit_in_bytes", "5000"),
        ("memory/memory.stat", "total_rss 1000\ncache 3000"),
    ):
        (groups / name).parent.mkdir(exist_ok=True)
        (groups / name).write_text(f"{text}\n")
    assert control_groups.cpu_quota() == 2.5
    assert control_groups.memory_left() == 4000
    (groups / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert control_groups.cpu_quota() == math.inf


def test_the_memory_left_by_a_control_group(groups: Path) -> None:
    """Its limit less the memory of its processes; cached files do not count."""
    (groups / "memory.max").write_text("5000\n")
    (groups / "memory.stat").write_text("anon 2000\nfile 2900\n")
    (groups / "own").write_text("0::/job/step\n")
    assert memory.available_bytes() == 3000
    (groups / "memory.max").write_text("max\n")
    assert memory.available_bytes() > 2**20
