"""Norm clipping: rows by hand, the bound on each client, and the reduction to FedAvg."""

import numpy as np
import pytest

from agg_harness import ROWS_WITH_ONE_FAR, aggregate_once, collect_updates, make_arrived, make_update
from config_options import make_component
from fedcohort.round.arrivals import replace_update_weights

UPDATES = [make_update(k, row, n=1 + k) for k, row in enumerate(ROWS_WITH_ONE_FAR)]


def test_a_mean_of_clipped_updates() -> None:
    """With M = 2 lengths are 1, 5^.5, 10^.5, 2 and far: all but the first and the fourth are scaled to 2."""
    clipped = np.array([[1, 0], [1.78885438, 0.89442719], [1.8973666, -0.63245553], [2, 0], [1.78885438, 0.89442719]])
    uniform = make_component("agg", "norm_clipping", norm=2.0, weighting="uniform")
    assert aggregate_once(uniform, UPDATES).tolist() == pytest.approx([1.69501507, 0.23127977])
    by_samples = aggregate_once(make_component("agg", "norm_clipping", norm=2.0), UPDATES)
    assert by_samples.tolist() == pytest.approx((np.arange(1, 6) / 15 @ clipped).tolist())


def test_the_median_length_is_that_of_the_clients_that_count() -> None:
    """Of lengths 1, 5^.5, 10^.5, 2 and 111.8 it is 5^.5; without the last two the lengths are 1, 5^.5 and 10^.5."""
    agg = make_component("agg", "norm_clipping")
    assert aggregate_once(agg, UPDATES).tolist() == pytest.approx(
        aggregate_once(make_component("agg", "norm_clipping", norm=5**0.5), UPDATES).tolist()
    )
    collected = replace_update_weights(
        collect_updates(agg, UPDATES), np.array([1.0, 0, 0, 1, 1])
    )  # lengths 1, 2 and 111.8
    weights = agg.direction(None, make_arrived(collected))[0].weights
    assert weights.tolist() == pytest.approx([1 / 3, 0, 0, 1 / 3, 2 / np.hypot(100, 50) / 3])


def test_a_limit_above_all_norms_equals_fedavg() -> None:
    assert aggregate_once(make_component("agg", "norm_clipping", norm=1e9), UPDATES).tolist() == pytest.approx(
        aggregate_once(make_component("agg", "fedavg"), UPDATES).tolist()
    )


def test_false_updates_move_the_mean_by_at_most_their_share_of_the_limit() -> None:
    honest = [make_update(k, [0.0, 0.0]) for k in range(8)]
    false_updates = [make_update(8 + k, [1e6, -1e6]) for k in range(2)]
    displacement = aggregate_once(make_component("agg", "norm_clipping", norm=3.0), [*honest, *false_updates])
    assert float(displacement.norm()) == pytest.approx(2 * 3.0 / 10)
