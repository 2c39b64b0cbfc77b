"""REFL's staleness-aware aggregation, by hand: two fresh updates, and three that are 1, 2 and 4 rounds late."""

import numpy as np

from agg_harness import aggregate_once, make_late, make_update
from config_options import make_component

VECTORS = ([1, 0], [3, 2], [2, 1], [2, -1], [-2, -1])
UPDATES = [make_update(k, vector) for k, vector in enumerate(VECTORS)]


def test_the_weights_of_late_updates_in_the_specifications_example() -> None:
    """m = (2, 1), |m|^2 = 5, n = 2: L = |U - m|^2 / 45 = 0, 4/45, 20/45.

    Weights 1, 1 and .65 / (tau + 1) + .35 (1 - exp(-L / L_max)) = .325, .2801109, .3512422.
    """
    agg = make_component("agg", "refl")
    direction, _ = agg.direction(None, make_late(agg, UPDATES, [0, 0, 1, 2, 4], np.linspace(1, 0.2, 5)))
    weights = np.array([1, 1, 0.325, 0.2801109, 0.3512422])
    np.testing.assert_allclose(direction.weights, weights / weights.sum(), rtol=1e-6)
    np.testing.assert_allclose(direction.displacement.numpy(), [1.52476286, 0.57288384], rtol=1e-7)


def test_without_a_fresh_update_only_the_staleness_counts() -> None:
    """.65 / 2 and .65 / 4: two to one."""
    agg = make_component("agg", "refl")
    direction, _ = agg.direction(None, make_late(agg, UPDATES[:2], [1, 3], np.ones(2)))
    np.testing.assert_allclose(direction.weights, [2 / 3, 1 / 3], rtol=1e-12)


def test_without_late_updates_refl_equals_fedavg() -> None:
    results = [
        aggregate_once(make_component("agg", choice, weighting="used"), UPDATES) for choice in ("refl", "fedavg")
    ]
    np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-12)


def test_without_any_deviation_all_weight_on_it_leaves_the_staleness() -> None:
    """b = 1 gives all late updates a weight of 0: 1/2 and 1/3, three to two."""
    agg = make_component("agg", "refl", b=1)
    direction, _ = agg.direction(None, make_late(agg, UPDATES[:2], [1, 2], np.ones(2)))
    np.testing.assert_allclose(direction.weights, [0.6, 0.4], rtol=1e-12)
