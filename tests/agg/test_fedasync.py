"""FedAsync's closed forms; tests/round/test_in_flight.py has a race of two clients."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from agg_harness import make_late, make_update
from config_options import make_component


@pytest.mark.parametrize(("staleness", "expected"), [(0, [0.6, 1.2]), (3, [0.3, 0.6])])
def test_the_model_moves_by_alpha_times_the_weight_of_the_staleness(staleness: int, expected: list[float]) -> None:
    """From 0 towards y = (1, 2) by .6 (1 + s)^-.5. The late client started at (4, 4), so that its update is y - 4."""
    agg, offset = make_component("agg", "fedasync"), 4.0 if staleness else 0.0
    updates = [make_update(0, [1 - offset, 2 - offset])]
    arrived = make_late(agg, updates, [staleness], np.array([(1 + staleness) ** -0.5]))
    arrived = replace(arrived, sent_offset={6: torch.full((2,), 4.0, dtype=torch.float64)}.__getitem__)
    np.testing.assert_allclose(agg.direction(None, arrived)[0].displacement.numpy(), expected, rtol=1e-12)


def test_arrivals_of_one_step_are_mixed_in_by_time() -> None:
    """Client 1 comes first: (1 - a) a y_1 + a y_0 with a = .6 is .24 y_1 + .6 y_0."""
    agg = make_component("agg", "fedasync")
    arrived = make_late(agg, [make_update(0, [1, 0]), make_update(1, [0, 1])], [0, 0], np.ones(2))
    direction, _ = agg.direction(None, replace(arrived, end_s=np.array([2.0, 1.0])))
    np.testing.assert_allclose(direction.displacement.numpy(), [0.6, 0.24], rtol=1e-12)
    np.testing.assert_allclose(direction.weights, [0.6, 0.24], rtol=1e-12)
