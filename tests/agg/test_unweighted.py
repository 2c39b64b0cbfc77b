"""Aggregators without weights: the rows that a selector excludes, and the logged weights."""

import numpy as np
import torch

from agg_harness import collect_updates, make_arrived, make_update
from fedcohort.agg.unweighted import Unweighted
from fedcohort.round.arrivals import replace_update_weights


class First(Unweighted):
    def combine(self, updates: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
        return updates[0], np.eye(len(updates))[0]


def test_rows_of_excluded_clients_are_neither_read_nor_weighed() -> None:
    updates = [make_update(k, [float(k)], n=9 - k) for k in range(3)]
    collected = collect_updates(First(), updates)
    assert collected.weights.tolist() == [1 / 3] * 3
    direction, _ = First().direction(None, make_arrived(replace_update_weights(collected, np.array([0.0, 1.0, 4.0]))))
    assert direction.displacement.tolist() == [1.0]
    assert direction.weights is not None
    assert direction.weights.tolist() == [0, 1, 0]
