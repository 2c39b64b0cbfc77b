"""A plain round (`Selection.plain`, FedDiverse's pre-training) costs as much as with agg=fedavg, for all choices.

Bytes, FLOPs and virtual seconds are compared over every choice of agg, regulariser and server, under a deadline that
some clients miss, so that the same clients are late. Signals that only the aggregator reads are not queried or logged.
"""

import pytest

from config_options import list_options
from failure_hints import failure_hint
from fedcohort.types import RoundReport
from round_harness import run_small

SMALL = (
    *("selector=feddiverse", "selector.pretrain=9", "clients=8", "cohort=5", "rounds=2", "split.limit=240"),
    *("client.epochs=1", "deadline=fixed", "device.lam=3", "proxy=noise", "eval.every=9", "eval.clients_every=0"),
)
OPTIONS = {"agg=fedbio": ("agg.variant=second_order",), "agg=fedmaba": ("agg.loss=loss_post",)}
CASES = [f"{group}={choice}" for group in ("agg", "regulariser", "server") for choice in list_options(group)]
COSTS = ("comm/down_bytes", "comm/up_bytes", "comm/probe_bytes", "comp/client_flops", "time/virtual_s", "round/arrived")


def costs(reports: list[RoundReport]) -> list[list[float]]:
    return [[report.metrics[name] for name in COSTS] for report in reports if report.step]


@pytest.fixture(scope="module")
def fedavg() -> list[list[float]]:
    return costs(run_small(*SMALL)[0])


@pytest.mark.parametrize("case", CASES)
@failure_hint("Charge what hooks, signals and broadcasts cost only in rounds that are not plain (`Selection.plain`).")
def test_a_plain_round_costs_what_it_costs_with_fedavg(case: str, fedavg: list[list[float]]) -> None:
    reports, _ = run_small(*SMALL, case, *OPTIONS.get(case, ()))
    assert costs(reports) == fedavg
    assert 0 < reports[-1].metrics["round/arrived"] < 5
    assert not [name for name in reports[-1].clients if name.startswith("signal_")]
