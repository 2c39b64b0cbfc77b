"""Cores are those that the process may use: of its affinity, and of what its container is granted."""

import math
import os
from pathlib import Path

import pytest

from fedcohort.host import cores


def test_a_quota_of_the_group_or_one_above_it(tmp_path: Path) -> None:
    """Version 2: 1.5 cores below 4; a file without a quota; none at all."""
    own, inner = tmp_path / "own", tmp_path / "groups" / "a" / "b"
    inner.mkdir(parents=True)
    own.write_text("0::/a/b\n")
    assert cores.quota(tmp_path / "groups", own) == math.inf
    (inner / "cpu.max").write_text("max 100000\n")
    assert cores.quota(tmp_path / "groups", own) == math.inf
    (inner.parent / "cpu.max").write_text("150000 100000\n")
    (inner / "cpu.max").write_text("400000 100000\n")
    assert cores.quota(tmp_path / "groups", own) == 1.5
    assert cores.quota(tmp_path / "groups", tmp_path / "gone") == math.inf


def test_a_quota_of_the_first_version(tmp_path: Path) -> None:
    """The path that the process knows is the host's; in the container its group is the mount itself."""
    own, mount = tmp_path / "own", tmp_path / "groups" / "cpu"
    mount.mkdir(parents=True)
    own.write_text("4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n")
    for name, value in (("quota", "250000"), ("period", "100000")):
        (mount / f"cpu.cfs_{name}_us").write_text(f"{value}\n")
    assert cores.quota(tmp_path / "groups", own) == 2.5
    (mount / "cpu.cfs_quota_us").write_text("-1\n")
    assert cores.quota(tmp_path / "groups", own) == math.inf


def test_parts_of_cores_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "quota", lambda: 0.5)
    assert cores.available() == 1
    monkeypatch.setattr(cores, "quota", lambda: math.inf)
    assert cores.available() == len(os.sched_getaffinity(0))
