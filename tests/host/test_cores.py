"""Cores are those that the process may use: of its affinity, and of what its container is granted."""

import math
import os

import pytest

from fedcohort.host import control_groups, cores


def test_fractions_of_cores_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "cpu_quota", lambda: 0.5)
    assert cores.available_cores() == 1
    monkeypatch.setattr(control_groups, "cpu_quota", lambda: math.inf)
    assert cores.available_cores() == len(os.sched_getaffinity(0))
