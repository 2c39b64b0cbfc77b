"""A question that selector and aggregator ask both costs what it costs to be asked once."""

from pathlib import Path

import pytest

from run_harness import go

COSTS = ("time/virtual_s", "comp/client_flops", "comm/up_bytes", "comm/probe_bytes")


@pytest.mark.parametrize("agg", ["qffl", "fedmaba"])
def test_a_query_of_powd_and_a_fair_aggregator_is_charged_once(tmp_path: Path, agg: str) -> None:
    """All whom pow-d selects have told their loss: the round lasts and costs as long as with FedAvg, which asks nobody.

    With random clients the aggregator asks them in their jobs, which are longer for it.
    """
    words = ("rounds=1", "client.epochs=2", "device=shifted_exponential")
    costs = {}
    for selector in ("powd", "random"):
        for word in ("fedavg", agg):
            last = go(tmp_path / f"{selector}-{word}", f"selector={selector}", f"agg={word}", *words).last
            costs[selector, word] = [last.metrics[name] for name in COSTS]
    assert costs["powd", agg] == pytest.approx(costs["powd", "fedavg"])
    assert all(higher > lower for higher, lower in zip(costs["random", agg], costs["random", "fedavg"], strict=True))
