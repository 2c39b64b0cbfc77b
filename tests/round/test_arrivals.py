"""What arrived, with the holes of uploads that left tensors out."""

import numpy as np
import torch

from agg_harness import make_update
from fedcohort.flat import Layout, TensorBlock
from fedcohort.round.arrivals import Arrivals, fill_unsent_tensors
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectorOptions
from optional_values import not_none

LAYOUT = Layout((TensorBlock("a", (2,), 0), TensorBlock("b", (1,), 2), TensorBlock("c", (2, 2), 3)), (), ())


def collect_rows(rows: list[list[float]], weights: list[float], stacked: bool = True) -> Arrivals:
    cohort, device = np.arange(len(rows)), torch.device("cpu")
    collector = Collector(
        LAYOUT, cohort, np.array(weights, float), CollectorOptions(keeps_updates=stacked), device=device
    )
    for k, row in enumerate(rows):
        collector.add_client_update(make_update(k, row))
    return collector.sum_over_ranks(lambda tensor: tensor, lambda tensor: tensor)


SENT_TENSORS = {0: None, 1: np.array([True, False, False]), 2: np.array([True, True, False]), 3: np.zeros(3, bool)}
ROWS = [[1.0, 1, 2, 3, 3, 3, 3], [4.0, 4, 0, 0, 0, 0, 0], [7.0, 7, 8, 0, 0, 0, 0], [0.0] * 7]
P = [1.0, 2.0, 1.0, 4.0]


def test_a_tensor_is_averaged_over_the_clients_that_sent_it() -> None:
    """a: (1 + 2 * 4 + 7) / 4 = 4; b: (2 + 8) / 2 = 5; c: 3 of client 0 alone."""
    for stacked in (True, False):
        filled = fill_unsent_tensors(collect_rows(ROWS, P, stacked), SENT_TENSORS, LAYOUT)
        assert not_none(filled.mean).tolist() == [4, 4, 5, 3, 3, 3, 3]
    matrix = not_none(fill_unsent_tensors(collect_rows(ROWS, P), SENT_TENSORS, LAYOUT).updates)
    assert matrix.tolist()[1] == [4, 4, 5, 3, 3, 3, 3]
    assert matrix.tolist()[3] == [4, 4, 5, 3, 3, 3, 3]
    weights = torch.tensor(P, dtype=torch.float64) / 8
    torch.testing.assert_close(weights @ matrix, fill_unsent_tensors(collect_rows(ROWS, P), SENT_TENSORS, LAYOUT).mean)


def test_omitted_tensors_are_not_averaged_as_zeros() -> None:
    """a: (1 + 8 + 7) / 8 = 2, half of the mean of those who sent it."""
    assert not_none(collect_rows(ROWS, P).mean)[0] == 2.0


def test_a_tensor_that_no_client_sends_is_unchanged() -> None:
    masks = {0: np.array([True, False, True]), 1: np.array([True, False, True])}
    filled = fill_unsent_tensors(collect_rows([[1.0] * 2 + [0] + [1.0] * 4] * 2, [1, 3]), masks, LAYOUT)
    assert not_none(filled.mean).tolist() == [1, 1, 0, 1, 1, 1, 1]
    complete = collect_rows(ROWS, P)
    assert fill_unsent_tensors(complete, dict.fromkeys(range(4)), LAYOUT) is complete
