"""Cores that a process may use, not those of the machine."""

import os

import pytest

from fedcohort.host.cores import count_available_cores


def test_a_job_of_a_cluster_uses_the_cores_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(3)), raising=False)
    assert count_available_cores() == 3
