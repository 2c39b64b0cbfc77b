"""FedAvg's closed forms."""

import numpy as np
import pytest
import torch
from torch import nn

from agg_harness import aggregate_once, collect_updates, make_arrived, make_population, make_update
from config_options import make_component
from fedcohort.flat import FlatModel
from fedcohort.types import ClientUpdate
from optional_values import not_none
from tolerances import AllcloseTolerance

EXACT: AllcloseTolerance = {"atol": 1e-12, "rtol": 0}


def test_weights_are_shares_of_the_arrived_clients() -> None:
    # n = (1, 3), D = (4, 0), (0, 4): 1/4 (4, 0) + 3/4 (0, 4) = (1, 3). Dividing by 10 clients would give (0.4, 1.2).
    updates = [make_update(0, [4, 0], n=1), make_update(1, [0, 4], n=3)]
    expected = torch.tensor([1.0, 3.0], dtype=torch.float64)
    torch.testing.assert_close(aggregate_once(make_component("agg", "fedavg"), updates), expected, **EXACT)


@pytest.mark.parametrize(("weighting", "expected"), [("used", [2.0]), ("samples", [1.0]), ("uniform", [2.0])])
def test_a_client_is_weighted_by_the_configured_count(weighting: str, expected: list[float]) -> None:
    # D = 0, 4; both trained on 2 samples, but own 6 and 2.
    updates = [make_update(0, [0], n_used=2, n_train=6), make_update(1, [4], n_used=2, n_train=2)]
    result = aggregate_once(make_component("agg", "fedavg", weighting=weighting), updates)
    assert result.tolist() == expected


def test_an_update_that_is_not_finite_is_left_out_and_the_rest_renormalised() -> None:
    agg = make_component("agg", "fedavg")
    updates = [make_update(0, [4, 0]), make_update(1, [float("nan"), 1]), make_update(2, [0, 4], n=3)]
    collected = collect_updates(agg, updates)
    assert collected.clients.tolist() == [0, 2]
    assert collected.dropped_ids.tolist() == [1]
    assert agg.direction(None, make_arrived(collected))[0].displacement.tolist() == [1.0, 3.0]


def _batch_norm_updates() -> tuple[FlatModel, list[ClientUpdate]]:
    model = FlatModel(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)))
    names = [block.name for block in model.layout.buffers]
    rows = []
    for client, (mean, counter) in enumerate([(0.0, 7), (2.0, 9)]):
        buffers = torch.tensor([{"1.running_mean": mean, "1.running_var": 1.0}[name] for name in names])
        counters = torch.tensor([counter])
        rows.append(make_update(client, [0.0] * model.layout.n_params, buffers=buffers, counters=counters))
    return model, rows


@pytest.mark.parametrize(("moments", "variance"), [(False, 1.0), (True, 2.0)])
def test_batch_norm_statistics_of_clients_are_averaged(moments: bool, variance: float) -> None:
    # Means 0 and 2, variances 1 and 1, p = 1/2: plain 1; by moments 1/2 (1 + 0) + 1/2 (1 + 4) - 1 = 2.
    model, updates = _batch_norm_updates()
    collected = collect_updates(make_component("agg", "fedavg"), updates, model.layout, moments)
    values = dict(zip([b.name for b in model.layout.buffers], not_none(collected.buffers).tolist(), strict=True))
    assert values == {"1.running_mean": 1.0, "1.running_var": variance}
    assert not_none(collected.counters).tolist() == [9]
    assert not_none(collected.counters).dtype == torch.int64


def test_without_clients_there_is_no_mean() -> None:
    collected = collect_updates(make_component("agg", "fedavg"), [make_update(0, [float("inf")])])
    assert collected.mean is None
    assert len(collected.clients) == 0


def test_fedavg_has_no_state() -> None:
    agg = make_component("agg", "fedavg")
    assert agg.init(make_population(3), 2) is None
    assert agg.broadcast(None) == {}
    assert np.array_equal(agg.weights(np.array([2]), np.array([5])), [2.0])


def test_the_step_is_no_longer_than_a_mean_of_updates() -> None:
    """The law on the length of a step holds for it: only an aggregator whose paper chooses the length is exempt."""
    assert make_component("agg", "fedavg").sets_step_length is False
