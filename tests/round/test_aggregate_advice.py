"""A selector's advice in the sums: an excluded client counts nowhere, and weights count once."""

import numpy as np
import torch

from agg_harness import collect_updates, make_layout, make_update
from config_options import make_component
from fedcohort.round.arrivals import apply_weight_override
from fedcohort.types import AggregationOverride
from optional_values import not_none
from round_harness import run_without_files


def test_buffers_and_counters_come_from_the_kept_clients() -> None:
    rows = [
        make_update(k, [float(k)], n=k + 1, buffers=torch.tensor([float(k), 1.0]), counters=torch.tensor([10 - k]))
        for k in range(3)
    ]
    arrivals = collect_updates(make_component("agg", "fedavg"), rows, make_layout(1, 2, 1), keep_matrix=True)
    assert (not_none(arrivals.buffers).tolist(), not_none(arrivals.counters).tolist()) == ([8 / 6, 1.0], [10])
    advised = apply_weight_override(arrivals, AggregationOverride(keep=np.array([False, True, True])))
    # samples 2 and 3, not the weights that are advised
    np.testing.assert_allclose(not_none(advised.buffers), [(2 + 6) / 5, 1], rtol=1e-12)
    assert not_none(advised.counters).tolist() == [9]
    weighed = apply_weight_override(arrivals, AggregationOverride(weights=np.array([0.0, 5.0, 1.0])))
    assert torch.equal(not_none(weighed.buffers), not_none(advised.buffers))
    assert torch.equal(
        not_none(apply_weight_override(arrivals, AggregationOverride(weights=np.array([4.0, 5.0, 1.0]))).buffers),
        not_none(arrivals.buffers),
    )


def test_absolute_weights_count_once() -> None:
    """FEEL's unbiased weights don't sum to 1; where all do the same work FedNova is FedAvg under them, too."""
    overrides = ("selector=feel", "selector.agg=unbiased", "client.steps=2", "rounds=1")
    fedavg, fednova = (run_without_files(f"agg={agg}", *overrides) for agg in ("fedavg", "fednova"))
    weight = fedavg.last.clients["weight"]
    assert abs(np.nansum(weight) - 1) > 0.05
    np.testing.assert_allclose(fednova.last.clients["weight"], weight, rtol=1e-12)
