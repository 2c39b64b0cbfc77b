"""A query that both selector and aggregator make costs as much as one query."""

import pytest

from round_harness import run_without_files

COSTS = ("time/virtual_s", "comp/client_flops", "comm/up_bytes", "comm/probe_bytes")


@pytest.mark.parametrize("agg", ["qffl", "fedmaba"])
def test_a_query_of_powd_and_a_fair_aggregator_is_charged_once(agg: str) -> None:
    """All clients that pow-d selects have answered their loss, so that the round costs as much as with FedAvg.

    With random selection the aggregator queries clients within their jobs, which take longer.
    """
    overrides = ("rounds=1", "client.epochs=2", "device=shifted_exponential")
    costs = {}
    for selector in ("powd", "random"):
        for choice in ("fedavg", agg):
            last = run_without_files(f"selector={selector}", f"agg={choice}", *overrides).last
            costs[selector, choice] = [last.metrics[name] for name in COSTS]
    assert costs["powd", agg] == pytest.approx(costs["powd", "fedavg"])
    assert all(higher > lower for higher, lower in zip(costs["random", agg], costs["random", "fedavg"], strict=True))
