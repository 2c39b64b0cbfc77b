"""Dispatch: clients that back off in a run, and a resume in the middle of a back-off."""

import os
from pathlib import Path

import numpy as np
import pytest

from fedcohort.round import round as rounds
from process_kills import act_at_call, kill_self, run_in_child
from round_harness import run_without_files
from run_harness import FinishedRun, run_training, same_bits

K, M = 12, 4
LAP = K // M
SLOW = (
    *("deadline=fixed", "deadline.k=0.7", "device.persistent=true", "device.lam=5"),
    *("rounds=14", "split.limit=300", "eval.every=20", "eval.clients_every=0"),
)


def list_backed_off(run: FinishedRun) -> list[set[int]]:
    """The clients that back off in each round, by the failures in a row before it."""
    failures, return_round, backed_off = np.zeros(K, int), np.zeros(K, int), []
    for round, report in enumerate(run.reports[1:]):
        backed_off.append(set(np.flatnonzero((failures >= 3) & (round < return_round)).tolist()))
        failed_ids = np.setdiff1d(report.cohort, report.arrived)
        failures[report.arrived] = 0
        failures[failed_ids] += 1
        return_round[failed_ids] = round + 1 + LAP * np.minimum(2.0 ** (failures[failed_ids] - 3), 8)
    return backed_off


def test_a_client_that_failed_repeatedly_is_neither_selected_nor_queried_by_powd() -> None:
    run = run_without_files("selector=powd", *SLOW)
    backed_off = list_backed_off(run)
    assert sum(map(len, backed_off)) > 10
    for clients, report in zip(backed_off, run.reports[1:], strict=True):
        queried_ids = set(np.flatnonzero(report.clients["queried"]).tolist())
        assert not clients & (queried_ids | set(report.cohort.tolist()))
        assert report.clients["available"].all()


def test_flash_queries_clients_that_back_off_and_selects_none() -> None:
    run = run_without_files("selector=flash", *SLOW)
    backed_off = list_backed_off(run)
    assert any(backed_off)
    for clients, report in zip(backed_off, run.reports[1:], strict=True):
        assert not clients & set(report.cohort.tolist())
        assert report.clients["queried"].all()


def test_selectors_without_the_flag_select_clients_that_failed_repeatedly() -> None:
    run = run_without_files("selector=round_robin", *SLOW)
    selected = zip(list_backed_off(run), run.reports[1:], strict=True)
    assert any(clients & set(report.cohort.tolist()) for clients, report in selected)


def test_a_run_that_is_killed_in_a_back_off_resumes_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = ("selector=powd", *SLOW)
    uninterrupted = run_training(tmp_path / "whole", *overrides)
    kill_round = next(round for round, clients in enumerate(list_backed_off(uninterrupted)) if clients)
    act_at_call(monkeypatch, rounds, "make_round_report", kill_round + 2, kill_self)  # step 0 is a report too
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path / "killed", *overrides) and None))
    monkeypatch.undo()
    assert same_bits(uninterrupted, run_training(tmp_path / "killed", *overrides, "resume=true"))
