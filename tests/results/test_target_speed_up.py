"""Speed-ups: the case, the bounds, and what censored pairs and noise do."""

import math

import numpy as np
import pytest

from fedcohort.results.difference import run_t_test
from fedcohort.results.target import (
    EXACT_RATIO,
    RATIO_LOWER_BOUND,
    RATIO_UPPER_BOUND,
    RESTRICTED_RATIO,
    Cost,
    SpeedUp,
    judge_speed_up,
    measure_speed_up,
)
from fedcohort.results.verdict import FASTER, NOT_SETTLED, TARGET_UNREACHED, Rules
from results.statistics_cases import approx_nested, load_case

UNMET_COST = Cost(60.0, is_met=False)


def costs(*values: float | None) -> dict[int, Cost]:
    """Return costs by seed; None for a run that ended at 60 without the target."""
    return {seed: UNMET_COST if value is None else Cost(value, is_met=True) for seed, value in enumerate(values)}


def test_the_speed_up_of_a_case_by_hand() -> None:
    inputs, expected = load_case(6)
    base, method = ({int(s): Cost(*cost) for s, cost in inputs[condition].items()} for condition in ("base", "own"))
    result = measure_speed_up(base, method)
    assert (result.n, result.n_unmet, result.bound) == (expected["n"], expected["untold"], expected["bound"])
    assert [result.ratio, result.low, result.high, result.p] == approx_nested(
        [expected[k] for k in ("ratio", "low", "high", "p")]
    )
    mirrored = measure_speed_up(method, base)
    assert (mirrored.ratio, mirrored.low, mirrored.bound) == (
        approx_nested(1 / result.ratio),
        approx_nested(1 / result.high),
        RATIO_UPPER_BOUND,
    )


@pytest.mark.parametrize(
    ("base", "method", "bound", "median"),
    [
        (costs(40, 40, 50), costs(20, 30, 50), EXACT_RATIO, 4 / 3),
        (costs(None, None, 50), costs(20, 30, 40), RATIO_LOWER_BOUND, math.inf),
        (costs(20, 30, 40), costs(None, None, 50), RATIO_UPPER_BOUND, 0.0),
        (costs(None, 30), costs(20, None), RESTRICTED_RATIO, math.nan),
        (costs(None, None), costs(None, None), EXACT_RATIO, 1.0),
    ],
)
def test_the_bound_and_the_median_by_hand(
    base: dict[int, Cost], method: dict[int, Cost], bound: str, median: float
) -> None:
    result = measure_speed_up(base, method)
    assert result.bound == bound
    assert result.median == pytest.approx(median, nan_ok=True)


def test_uninformative_pairs_pull_the_estimate_to_one() -> None:
    result = measure_speed_up(costs(40, 44, 48), costs(20, 21, 25))
    censored = measure_speed_up(costs(40, 44, 48, None), costs(20, 21, 25, None))
    assert 1 < censored.ratio < result.ratio
    assert judge_speed_up(result, result.p, Rules()) == FASTER
    assert judge_speed_up(censored, censored.p, Rules()) == NOT_SETTLED
    unmet = measure_speed_up(costs(40, None, None), costs(20, None, None))
    assert judge_speed_up(unmet, 0.01, Rules()) == TARGET_UNREACHED
    without_cost = measure_speed_up({0: Cost(0.0, is_met=True), 1: Cost(0.0, is_met=True)}, costs(1, 1))
    assert math.isnan(without_cost.ratio)


def test_evaluation_noise_is_rarely_a_speed_up() -> None:
    """Equal mean curves, three times the noise, the target at 95 % of the baseline's level: 2,000 comparisons."""
    rng = np.random.default_rng(3)
    n, rounds, window = 5, 60, 10
    curve = 0.8 * (1 - np.exp(-np.arange(1, rounds + 1) / 12))
    level = rng.normal(0, 0.01, (2, 2000, n, 1))
    noise = rng.normal(0, 0.01, (2, 2000, n, rounds)) * np.array([1.0, 3.0])[:, None, None, None]
    values = curve + level + noise
    target = 0.95 * values[0, ..., -window:].mean(axis=(-1, -2))
    means = np.lib.stride_tricks.sliding_window_view(values, window, axis=-1).mean(axis=-1)
    met = means >= target[:, None, None]
    crossing = np.where(met.any(axis=-1), met.argmax(axis=-1) + window, np.inf)  # rounds, from 1
    censored_rounds = np.minimum(crossing, rounds)  # all runs have one budget
    logs = np.log(censored_rounds[0]) - np.log(censored_rounds[1])
    _, p = run_t_test(logs + rng.normal(0, 1e-12, logs.shape))
    faster = (p < 0.05) & (logs.mean(axis=-1) >= math.log(1.05))
    assert faster.mean() <= 0.08
    pair = [
        {
            s: Cost(float(censored_rounds[condition, 0, s]), bool(np.isfinite(crossing[condition, 0, s])))
            for s in range(n)
        }
        for condition in (0, 1)
    ]
    result: SpeedUp = measure_speed_up(*pair)
    assert math.log(result.ratio) == pytest.approx(logs[0].mean())
