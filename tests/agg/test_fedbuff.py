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


def test_without_late_updates_it_is_fedavg() -> None:
    results = [
        aggregate_once(make_component("agg", choice, weighting="used"), UPDATES) for choice in ("fedbuff", "fedavg")
    ]
    assert results[0].tolist() == results[1].tolist()
