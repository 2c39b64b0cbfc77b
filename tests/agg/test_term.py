"""TERM's closed forms (specs/aggregators.md A13.6)."""

import numpy as np
import pytest

from fair_toy import weights
from yaml_words import make

LN3 = float(np.log(3))


@pytest.mark.parametrize(
    ("tilt", "told", "samples", "expected"),
    [
        (1.0, [0.0, LN3], [1, 1], [0.25, 0.75]),  # 1 : 3
        (1.0, [0.0, LN3], [3, 1], [0.5, 0.5]),  # 3 * 1 : 1 * 3
        (-1.0, [0.0, LN3], [1, 1], [0.75, 0.25]),
        (1.0, [1000.0, 1001.0], [1, 1], [1 / (1 + np.e), np.e / (1 + np.e)]),
        (2.0, [7.0, 7.0], [3, 1], [0.75, 0.25]),  # equal losses: the weights of FedAvg
        (0.0, [1.0, 9.0], [3, 1], [0.75, 0.25]),
    ],
)
def test_the_weights(tilt: float, told: list[float], samples: list[int], expected: list[float]) -> None:
    found = weights(make("agg", "term", tilt=tilt, weighting="samples"), told, samples=samples)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_clients_are_equal_by_default() -> None:
    np.testing.assert_allclose(weights(make("agg", "term", tilt=1.0), [0.0, LN3], samples=[9, 1]), [0.25, 0.75])


@pytest.mark.parametrize("claim", [10.0, 1e3, 1e12])
def test_a_liar_gains_no_more_than_the_docstring_says(claim: float) -> None:
    # honest losses of 1, 2, 3, 2, cap 2, t = .5: e^(.5 * 2 * 2) times any honest weight
    told = [1.0, 2.0, 3.0, 2.0, claim]
    capped = weights(make("agg", "term", tilt=0.5, loss_cap=2.0), told)
    assert (capped[-1] / capped[:-1] <= np.exp(2.0)).all()
    free = weights(make("agg", "term", tilt=0.5), told)
    assert free[-1] > np.exp(2.0) * free[0]


def test_with_a_negative_tilt_nobody_gains_by_claiming_less_than_nothing() -> None:
    agg = make("agg", "term", tilt=-1.0)
    np.testing.assert_array_equal(weights(agg, [-1e9, 1.0, 2.0]), weights(agg, [0.0, 1.0, 2.0]))
