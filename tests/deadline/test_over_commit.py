"""Ten are wanted and thirteen asked: the round closes with the tenth."""

import math
from pathlib import Path

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.deadline.base import DeadlineOutcome, PaceContext, compute_outcome
from fedcohort.deadline.over_commit import OverCommit
from fedcohort.device.base import Timing
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.types import Population
from round_harness import run_without_files
from run_harness import run_training, same_bits


def timing(finish: np.ndarray) -> Timing:
    none = np.zeros(len(finish))
    return Timing(none, none, finish / 4, none)  # fourths of these times are exact, and so is their sum


def close_round(factor: float, requested: int, finish: np.ndarray) -> DeadlineOutcome:
    deadline = OverCommit(factor)
    state = deadline.init(Population(100, 10, requested, {}))
    return compute_outcome(timing(finish), 4, deadline.close(state, finish, math.inf), deadline.partial_work)


@for_all(
    "factor, requested, selected",
    [(1.3, 10, 13), (1.3, 1, 2), (1.3, 3, 4), (1.1, 30, 33), (1.0, 7, 7), (2.0, 7, 14), (1.3, 100, 130), (1.5, 5, 8)],
)
def test_the_cohort_arrives_out_of_the_larger_selection(factor: float, requested: int, selected: int) -> None:
    assert OverCommit(factor).cohort_size(requested) == selected
    finish = np.random.default_rng(selected).permutation(np.arange(1.0, selected + 1))
    outcome = close_round(factor, requested, finish)
    assert outcome.train_s == requested
    assert outcome.is_in_time.tolist() == (finish <= requested).tolist()
    assert outcome.units_done.tolist() == [
        4 if finish_s <= requested else 0 for finish_s in finish
    ]  # all of the work, or none


@pytest.mark.parametrize(("n_available", "arrived"), [(13, 10), (12, 10), (10, 10), (9, 9), (1, 1), (0, 0)])
def test_with_too_few_available_clients_all_arrive(n_available: int, arrived: int) -> None:
    outcome = close_round(1.3, 10, np.arange(1.0, n_available + 1))
    assert outcome.is_in_time.sum() == outcome.train_s == arrived


def test_a_larger_cohort_is_waited_for_in_the_same_proportion() -> None:
    """26 / 1.3 = 20 clients are waited for, and all of them with a factor of 1."""
    assert close_round(1.3, 10, np.arange(1.0, 27)).is_in_time.sum() == 20
    assert close_round(1.0, 10, np.arange(1.0, 27)).is_in_time.sum() == 26


def test_no_deadline_is_announced() -> None:
    timings = timing(np.arange(1.0, 6))
    assert OverCommit(1.3).announce(5, PaceContext(0, np.arange(5), 4, timings, timings)) == math.inf
    assert [OverCommit(factor).bounded for factor in (1.0, 1.3)] == [False, True]


def test_a_run_selects_more_clients_and_aggregates_the_cohort() -> None:
    """ceil(1.3 x 4) = 6 clients are selected, also by the uniform reference; the first four arrive."""
    for selector in ("random", "oort", "powd"):
        run = run_without_files("deadline=over_commit", f"selector={selector}")
        for report in run.reports[1:]:
            assert (len(report.cohort), len(report.arrived)) == (6, 4)
            assert (6 * report.metrics["select/uniform_overlap"]) % 1 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("selector", ["random", "flash"])
def test_a_factor_of_one_equals_wait_for_all_bit_for_bit(selector: str) -> None:
    overrides = (f"selector={selector}", "rounds=3")
    over_commit = run_without_files("deadline=over_commit", "deadline.factor=1", *overrides)
    wait_for_all = run_without_files(*overrides)
    assert same_bits(over_commit, wait_for_all)
    assert over_commit.cohorts == wait_for_all.cohorts
    assert over_commit.last.metrics["time/virtual_s"] == wait_for_all.last.metrics["time/virtual_s"]


def test_selecting_more_clients_than_exist_is_rejected_by_name(tmp_path: Path) -> None:
    message = (
        "deadline=over_commit selects 13 clients for cohort=10, which exceeds the 12 clients .*: lower deadline.factor"
    )
    with pytest.raises(IncompatibleConfig, match=message):
        run_training(tmp_path, "deadline=over_commit", "cohort=10")
    assert not list(tmp_path.rglob("config.yaml"))
    with pytest.raises(OptionError, match=r"^factor must be a number in \[1, 1e9\], got 1e\+308$"):
        OverCommit(1e308)  # times the cohort is infinite
