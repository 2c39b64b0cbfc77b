"""The fingerprint of a run's first rounds, on made-up histories, and what counts as a difference."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedcohort.record.history import History
from fedcohort.results.run import Evaluations
from fedcohort.study.compare_code import describe_run_differences
from fedcohort.study.measure import LOSS_METRIC, N_COMPARED_ROUNDS, compute_run_fingerprint
from study.small_study import make_curve

STEPS = list(range(N_COMPARED_ROUNDS + 3))


def history(cohorts: Sequence[Sequence[int]] | None = None, losses: Sequence[float] | None = None) -> History:
    """Make a run of ten rounds that was evaluated in each."""
    values = losses or [2.0 / (1 + step) for step in STEPS]
    cohorts = cohorts or [[], *([step, step + 1] for step in STEPS[1:])]
    losses_by_metric = {LOSS_METRIC: np.array(values)}
    return History(Path(), STEPS, STEPS, losses_by_metric, {LOSS_METRIC: STEPS}, [], [], cohorts, cohorts, {}, {})


BASE = np.array(STEPS, float)
VALUE, SECONDS, BYTES = 0.5 + 0.01 * BASE, 7.0 * BASE, 1e6 * BASE


def curve(
    steps: np.ndarray = BASE, value: np.ndarray = VALUE, virtual_s: np.ndarray = SECONDS, n_bytes: np.ndarray = BYTES
) -> Evaluations:
    return make_curve(steps, value, virtual_s, n_bytes)


def test_the_fingerprint_covers_only_the_first_rounds() -> None:
    """Rounding of the last digits is no change; a client more, or another one that arrives, is one."""
    first = history()
    digest, _, losses = compute_run_fingerprint(first).partition(":")
    assert len(digest) == 12
    assert losses.split(",")[:2] == ["2", "1"]
    assert len(losses.split(",")) == N_COMPARED_ROUNDS + 1
    longer = [*first.cohorts[: N_COMPARED_ROUNDS + 1], [90, 91], [92]]
    assert compute_run_fingerprint(history(longer)) == compute_run_fingerprint(first)
    altered = [*first.cohorts[:N_COMPARED_ROUNDS], [90, 91], *first.cohorts[N_COMPARED_ROUNDS + 1 :]]
    assert compute_run_fingerprint(history(altered)) != compute_run_fingerprint(first)
    assert compute_run_fingerprint(replace(first, arrived=altered)) != compute_run_fingerprint(first)


def test_rounding_errors_are_no_difference() -> None:
    rounded = history(losses=[2.0 / (1 + step) * (1 + 1e-4) for step in STEPS])
    rounded_curve = curve(value=VALUE + 1e-3, virtual_s=SECONDS * (1 + 1e-7))
    assert (
        describe_run_differences(
            (compute_run_fingerprint(history()), curve()), (compute_run_fingerprint(rounded), rounded_curve)
        )
        == ""
    )
    cut_curve = curve().cut_at_horizon(N_COMPARED_ROUNDS, float("nan"))
    assert describe_run_differences(("", curve()), (compute_run_fingerprint(history()), cut_curve)) == ""


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (curve(value=VALUE + np.where(BASE > 2, 0.02, 0.0)), "value from round 3"),
        (curve(virtual_s=1.17 * SECONDS), "virtual_s from round 1"),
        (curve(n_bytes=BYTES + 80), "bytes from round 1"),
        (curve(value=np.where(BASE == 5, np.nan, VALUE)), "value from round 5"),
        (curve(steps=2 * BASE), "evaluated rounds"),
    ],
)
def test_differences_are_named(current: Evaluations, expected: str) -> None:
    assert describe_run_differences(("", curve()), (compute_run_fingerprint(history()), current)) == expected


def test_different_cohorts_and_losses_are_reported() -> None:
    stored = compute_run_fingerprint(history())
    cohorts = compute_run_fingerprint(history([[], *([0] for _ in STEPS[1:])]))
    losses = compute_run_fingerprint(history(losses=[2.1 / (1 + step) for step in STEPS]))
    diverged = compute_run_fingerprint(history(losses=[2.0, 1.0, *(float("nan") for _ in STEPS[2:])]))
    assert describe_run_differences((stored, curve()), (cohorts, curve())) == "cohorts"
    assert describe_run_differences((stored, curve()), (losses, curve())) == LOSS_METRIC
    assert describe_run_differences((stored, curve()), (diverged, curve())) == LOSS_METRIC
    assert describe_run_differences((diverged, curve()), (diverged, curve())) == ""
