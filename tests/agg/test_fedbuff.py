"""FedBuff's closed forms: updates (1, 0), (0, 2) and (3, 3) of models that are 0, 1 and 3 steps old."""

import numpy as np
import pytest

from agg_harness import aggregate_once, make_late, make_update
from config_options import make_component

UPDATES = [make_update(0, [1, 0], n=1), make_update(1, [0, 2], n=2), make_update(2, [3, 3], n=3)]
POLYNOMIAL = (1 + np.array([0.0, 1.0, 3.0])) ** -0.5


@pytest.mark.parametrize(
    ("discounts", "weighting", "expected"),
    [
        (np.ones(3), "uniform", [1.33333333, 1.66666667]),
        (POLYNOMIAL, "uniform", [0.83333333, 0.97140452]),
        (POLYNOMIAL, "samples", [0.91666667, 1.22140452]),
    ],
)
def test_the_sum_is_divided_by_the_number_of_updates(
    discounts: np.ndarray, weighting: str, expected: list[float]
) -> None:
    """(U_0 + 2^-.5 U_1 + U_2 / 2) / 3, also with factors n_i / mean n of 1/2, 1 and 3/2."""
    agg = make_component("agg", "fedbuff", weighting=weighting)
    direction, _ = agg.direction(None, make_late(agg, UPDATES, [0, 1, 3], discounts))
    np.testing.assert_allclose(direction.displacement.numpy(), expected, rtol=1e-7)


def test_without_late_updates_fedbuff_equals_fedavg() -> None:
    results = [
        aggregate_once(make_component("agg", choice, weighting="used"), UPDATES) for choice in ("fedbuff", "fedavg")
    ]
    assert results[0].tolist() == results[1].tolist()


@pytest.mark.parametrize("choice", ["fedbuff", "refl"])
def test_a_discount_that_is_almost_zero_gives_finite_steps(choice: str) -> None:
    """3^-800 is below the smallest number: fedbuff's step is half of the first update, and refl ignores discounts."""
    discounts = make_component("deadline", "buffered", staleness_exponent=800).discount(np.array([0, 2]))
    agg = make_component("agg", choice)
    updates = [make_update(0, [1.0, 2.0]), make_update(1, [3.0, -1.0])]
    steps = [agg.direction(None, make_late(agg, updates, [0, 2], s))[0] for s in (discounts, np.ones(2))]
    expected = [0.5, 1.0] if choice == "fedbuff" else steps[1].displacement.numpy()
    np.testing.assert_allclose(steps[0].displacement.numpy(), expected, rtol=1e-12)
