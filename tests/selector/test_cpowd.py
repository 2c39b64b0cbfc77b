"""cpow-d: pow-d with the loss of one mini-batch, the samples of that mini-batch, and its cost."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from config_options import make_component, make_typed
from fedcohort.errors import OptionError
from fedcohort.selector.base import Stateless
from fedcohort.selector.cpowd import CPowD
from fedcohort.types import Population, ProbeResult
from run_harness import run_training
from selector_harness import World, ids, make_context, play_rounds, to_list
from signal_kinds import UnimplementedAccess, count_passes, find_computed

NAN = float("nan")


def cpowd(**changes: Any) -> CPowD:
    return make_typed(CPowD, "selector", "cpowd", **changes)


def select_clients(queried_ids: list[int], losses: list[float], **kwargs: Any) -> list[int]:
    answers = {"batch_loss": ProbeResult(ids(*queried_ids), np.array(losses))}
    return to_list(cpowd().select(Stateless(), make_context(**kwargs), answers)[0].clients)


def test_the_largest_losses_are_selected() -> None:
    """As pow-d: ascending order would give {1, 4}; positions among the candidates instead of ids, {1, 2}."""
    assert select_clients([1, 3, 4], [0.2, 0.9, 0.5]) == [3, 4]
    assert select_clients([0, 1, 3, 4], [NAN, 0.1, NAN, 0.2]) == [1, 4]
    assert len(select_clients([], [], cohort=3)) == 3


def test_cpowd_queries_the_same_clients_as_powd_at_a_lower_cost() -> None:
    for cpowd_step, powd_step in zip(
        play_rounds(cpowd(), World(), 4), play_rounds(make_component("selector", "powd"), World(), 4), strict=True
    ):
        (probe,), (full,) = cpowd_step.probes, powd_step.probes
        assert probe.signal == "batch_loss"
        assert probe.clients.tolist() == full.clients.tolist()
        assert not probe.concurrent
        assert probe.options["batch"] == 10
    keys = {step.probes[0].options["key"] for step in play_rounds(cpowd(), World(), 4)}
    assert len(keys) == 4, "another mini-batch each round"


def test_querying_all_clients_selects_the_globally_largest_losses() -> None:
    world = World()
    for step in play_rounds(cpowd(candidates=12, candidate="uniform"), world, 5):
        largest = np.argsort(-world.values("batch_loss", step.ctx.round))[:3]
        assert step.selection.clients.tolist() == sorted(largest.tolist())
    assert world.read_signals == {"batch_loss"}


def test_fewer_candidates_than_the_cohort() -> None:
    with pytest.raises(OptionError, match=r"candidates must be an integer in \[3, 12\].*got 2"):
        cpowd(candidates=2).init(Population(12, 10, 3, {}))


class Echo(nn.Module):
    """Logits (0, x): the loss of a sample of class 0 is ln(1 + e^x)."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        assert not self.training
        self.seen = x[:, 0].tolist()
        return torch.cat([torch.zeros_like(x), x], 1)


@dataclass
class OneNetwork(UnimplementedAccess):
    """as much of a SignalAccess as the signal uses; client k has k samples 0, 1, ... of class 0."""

    network: Echo

    def copy(self) -> Echo:
        return self.network

    def samples(self, client: int) -> tuple[Tensor, Tensor]:
        return torch.arange(float(client))[:, None], torch.zeros(client, dtype=torch.int64)


def batch(client: int, round: int = 0, key: int = 7, size: int = 3) -> tuple[float, list[float]]:
    network = Echo()
    answer = find_computed("batch_loss").compute(OneNetwork(network), round, ids(client), {"batch": size, "key": key})
    return float(answer[0]), network.seen


def test_a_mini_batch_is_distinct_samples_and_its_loss_their_mean() -> None:
    loss, samples_seen = batch(20)
    assert len(set(samples_seen)) == 3
    assert loss == pytest.approx(np.log1p(np.exp(samples_seen)).mean(), rel=1e-6)
    assert batch(20) == (loss, samples_seen), "the same again, for the same key, round and client"
    assert len({tuple(batch(20, round, key)[1]) for round in range(3) for key in range(3)}) == 9


def test_a_client_with_fewer_samples_uses_them_all_and_one_without_has_no_loss() -> None:
    assert batch(2)[1] == [0.0, 1.0]
    assert np.isnan(batch(0)[0])


def test_every_sample_is_equally_likely() -> None:
    """3 of 5 in 500 rounds: each .6 of the time, 4 sigma = 4 sqrt(.24 / 500) = .088."""
    share = np.bincount(np.concatenate([batch(5, round)[1] for round in range(500)]).astype(int)) / 500
    np.testing.assert_allclose(share, 0.6, atol=0.088)


def test_the_work_of_a_query_is_one_mini_batch() -> None:
    """n = 20, 2 and 0 samples of two classes, b = 5: a quarter of a pass, a whole one, none."""
    counts = np.array([[15, 5], [1, 1], [0, 0]])
    assert count_passes("batch_loss", {"batch": 5}, counts).tolist() == [0.25, 1.0, 0.0]


def test_a_run_is_charged_for_the_queries(tmp_path: Path) -> None:
    """(d - m) P B + 4 d bytes, and b of each candidate's samples: logistic regression on 8x8 digits, d = 2 m = 8."""
    run = run_training(tmp_path, "selector=cpowd", "selector.batch=3")
    names = ("comm/probe_bytes", "comp/client_flops")
    rows = np.diff([[report.metrics[name] for name in names] for report in run.reports], axis=0)
    trained = [3 * 2 * float(run.info.n_train[report.cohort].sum()) for report in run.reports[1:]]
    assert rows[:, 0].tolist() == [4 * 4 * 650 + 4 * 8] * len(rows)
    np.testing.assert_allclose(rows[:, 1], 2 * 640 * (np.array(trained) + 8 * 3), rtol=1e-12)
