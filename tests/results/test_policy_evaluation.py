"""Estimates of another selector's gain: their exact expectations over all cohorts, and refusals."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from fedcohort.maths.successive_draws import log_probability_of_set
from fedcohort.results.policy_evaluation import (
    DOUBLY_ROBUST_DIFFERENCE,
    ESTIMATORS,
    ComparedRound,
    estimate,
    estimate_gain,
    predict_gains,
)

PAIRS = list(combinations(range(4), 2))
RUN_WEIGHTS, OTHER_WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 1.0, 1.0, 0.0])
GAINS = np.array([0.3, -0.1, 0.7, 0.2, 1.1, -0.4])  # of each pair


def probabilities(weights: np.ndarray) -> np.ndarray:
    """Return the probability of each pair; client 3 of weight zero is in none."""
    log_probabilities = [
        log_probability_of_set(weights[list(pair)], weights.sum() - weights[list(pair)].sum())
        if weights[list(pair)].all()
        else -math.inf
        for pair in PAIRS
    ]
    return np.exp(log_probabilities)


P_RUN, P_OTHER = probabilities(RUN_WEIGHTS), probabilities(OTHER_WEIGHTS)


def expectation(predicted: np.ndarray) -> dict[str, float]:
    """Return the expectation of each estimate of one round over the cohorts of the run's selector."""
    totals = dict.fromkeys(ESTIMATORS, 0.0)
    for i, p in enumerate(P_RUN):
        predictions = np.array([[predicted[i]], [P_RUN @ predicted], [P_OTHER @ predicted]])
        means = estimate(np.array([P_OTHER[i] / p]), GAINS[[i]], predictions) if P_OTHER[i] else None
        values = (
            dict(zip(ESTIMATORS, (m.mean for m in means), strict=True))
            if means
            else {  # the ratio is zero, of which a single round has no self-normalised mean
                ESTIMATORS[0]: 0.0,
                ESTIMATORS[2]: predictions[2, 0],
                DOUBLY_ROBUST_DIFFERENCE: predictions[2, 0] - predictions[1, 0] - (GAINS[i] - predicted[i]),
            }
        )
        for name, value in values.items():
            totals[name] += p * value
    return totals


@pytest.mark.parametrize("predicted", [np.zeros(6), GAINS, np.array([5.0, 0.0, -2.0, 1.0, 1.0, 9.0])])
def test_estimates_are_unbiased_whatever_the_reward_model(predicted: np.ndarray) -> None:
    """Sum over S of P_run(S) rho(S) g(S) = sum over S of P_other(S) g(S), for each reward model."""
    assert P_RUN.sum() == pytest.approx(1)
    assert P_OTHER.sum() == pytest.approx(1)
    truth, totals = float(P_OTHER @ GAINS), expectation(predicted)
    assert totals["inverse propensity"] == pytest.approx(truth)
    assert totals["doubly robust"] == pytest.approx(truth)
    assert totals[DOUBLY_ROBUST_DIFFERENCE] == pytest.approx(truth - float(P_RUN @ GAINS))


def test_the_self_normalised_estimate_of_a_constant_gain_is_exact() -> None:
    means = estimate(np.array([0.1, 3.0, 0.5]), np.full(3, 0.25), np.full((3, 3), math.nan))
    assert means[1].mean == pytest.approx(0.25)
    assert means[0].mean == pytest.approx(0.25 * 3.6 / 3)
    assert math.isnan(means[2].mean)


def test_intervals_are_those_of_the_mean_of_terms() -> None:
    """Of two terms 1 and 3: mean 2, standard error 1, and t(.975, 1) = 12.706."""
    ips = estimate(np.array([1.0, 1.5]), np.array([1.0, 2.0]), np.zeros((3, 2)))[0]
    assert ips.mean == 2.0
    assert ips.half_width == pytest.approx(12.706, abs=1e-3)


def round_of(run: int, x: float, log_ratio: float = 0.0, uncovered: float = 0.0) -> ComparedRound:
    """Return a round whose gain is 1 + 2 x."""
    return ComparedRound(run, 1 + 2 * x, log_ratio, uncovered, np.array([x]), np.array([0.0]), np.array([x + 1]))


def test_the_reward_model_of_a_run_is_fitted_on_the_others() -> None:
    """Run 2 has other gains, which the model of run 2 has not seen: its predictions follow 1 + 2 x."""
    rounds = [round_of(run, x) for run in range(3) for x in np.linspace(-1, 1, 30)]
    rounds = [replace(r, gain=-7.0) if r.run == 2 else r for r in rounds]
    predicted, run_predicted, other_predicted = predict_gains(rounds)[:, 60:]
    x = np.linspace(-1, 1, 30)
    assert predicted == pytest.approx(1 + 2 * x, abs=0.01)
    assert run_predicted == pytest.approx(np.ones(30), abs=0.01)
    assert other_predicted == pytest.approx(3 + 2 * x, abs=0.02)
    assert np.isnan(predict_gains([round_of(0, 0.0), round_of(0, 1.0)])).all()


def test_equal_selectors_have_the_effective_size_of_the_rounds() -> None:
    result = estimate_gain([round_of(run, x) for run in range(2) for x in np.linspace(-1, 1, 30)], {})
    assert result.effective_size == 60
    assert result.reason == ""
    assert result.estimates["inverse propensity"].mean == pytest.approx(result.logged_gain.mean)
    assert set(result.estimates) == set(ESTIMATORS)


@pytest.mark.parametrize(
    ("rounds", "reason"),
    [
        ([], "no overlap: in fewer than two rounds do both selectors draw with known probabilities"),
        ([round_of(0, 0.0, uncovered=0.5)] * 50, "no overlap: 50.0 % of the other selector's cohorts"),
        ([round_of(0, 0.0)] * 19, "the effective sample size is 19.0 of 19 rounds"),
        ([round_of(0, 0.0, -math.inf)] * 50, "the effective sample size is 0.0 of 50 rounds"),
        ([round_of(0, 0.0)] + [round_of(0, 0.0, -20.0)] * 50, "the effective sample size is 1.0 of 51 rounds"),
    ],
)
def test_too_little_overlap_is_refused(rounds: list[ComparedRound], reason: str) -> None:
    result = estimate_gain(rounds, {"the other selector is deterministic": 3})
    assert reason in result.reason
    assert result.estimates == {}
