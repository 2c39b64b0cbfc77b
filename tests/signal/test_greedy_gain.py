"""greedy_gain on a toy whose losses are known in closed form, and against the engine's own lab."""

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from agg_harness import make_update
from config_options import list_options, make_component
from engine_harness import make_federation, make_network, make_trainer
from fedcohort.errors import IncompatibleConfig
from fedcohort.flat import FlatModel
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.types import ClientUpdate
from run_harness import run_training
from signal_kinds import UnimplementedAccess, find_computed


class Toy(UnimplementedAccess):
    """w_t = 0, loss (w - 2)^2; client k moves w by `moves[k]` and has `n[k]` samples."""

    def __init__(self, moves: Sequence[float], n: Sequence[int]) -> None:
        self.moves, self.n = moves, n

    def train(self, round: int, client: int) -> ClientUpdate:
        return make_update(client, [self.moves[client]], n_used=self.n[client], n_train=100)

    def server_loss_after(self, update: torch.Tensor) -> float:
        return float((update[0].float() - 2) ** 2)


def places(moves: Sequence[float], n: Sequence[int], cohort: int, direction: str = "down") -> list[float]:
    clients = np.arange(len(moves))
    options = {"cohort": cohort, "direction": direction}
    ranks: list[float] = find_computed("greedy_gain").compute(Toy(moves, n), 0, clients, options).tolist()
    return ranks


def test_forward_selection_by_hand() -> None:
    """Client 0 is first, because its 1.5 is nearest to 2; then 2, 3 and 1.

    With client 0, client 2 (5, one sample) gives (3 * 1.5 + 5) / 4 = 2.375, client 1 (4, three samples) gives 2.75, and
    client 3 (0) less. Then client 3 gives 9.5 / 5 = 1.9, and client 1 gives (9.5 + 12) / 7.
    """
    moves, n = [1.5, 4.0, 5.0, 0.0], [3, 3, 1, 1]
    assert places(moves, n, 1) == [1, 0, 0, 0]
    assert places(moves, n, 3) == [3, 0, 2, 1]
    assert places(moves, n, 9) == [9, 6, 8, 7]


def test_clients_are_weighted_by_their_samples() -> None:
    """After 1.5 (n=1), 5 with n=1 makes 3.25, and 0 makes .75.

    The two have the same loss 1.5625, and the lower id wins. With n=9 of 1.5 the 5 makes 1.85.
    """
    assert places([1.5, 5.0, 0.0], [1, 1, 1], 2) == [2, 1, 0]
    assert places([1.5, 0.0, 5.0], [1, 1, 1], 2) == [2, 1, 0]
    assert places([1.5, 0.0, 5.0], [9, 1, 1], 2) == [2, 0, 1]


def test_the_adversarial_variant_takes_the_worst_update() -> None:
    """-4 is worst (36); then of (-4 + x) / 2 for x = 0, 7, 1: the first, -2."""
    assert places([0.0, -4.0, 7.0, 1.0], [1, 1, 1, 1], 2, "up") == [1, 2, 0, 0]


@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_non_finite_update_is_never_picked(direction: str) -> None:
    ranks = places([float("nan"), 1.0, float("inf"), 3.0], [1, 1, 1, 1], 3, direction)
    assert np.isnan(ranks)[[0, 2]].all()
    assert sorted(ranks[1::2]) == [2, 3]
    assert np.isnan(places([float("nan")] * 2, [1, 1], 2, direction)).all()
    assert places([], [], 2, direction) == []


def test_a_loss_that_overflows_is_the_highest() -> None:
    """(1e30)^2 overflows float32 to infinity: last for the oracle, first for the adversary."""
    assert places([1e30, 1.0, 0.0], [1, 1, 1], 2, "up")[0] == 2
    assert places([1e30, 1.0, 0.0], [1, 1, 1], 1) == [0, 1, 0]


def test_simulated_updates_equal_the_engines() -> None:
    """Every pair tried out: greedy's first is the best single client, its pair the best of those that contain it."""
    federation, network = make_federation(), make_network()
    trainer = make_trainer(federation, network, epochs=1, batch=10)
    lab = SignalMeasurer(trainer.server, FlatModel(make_network()), federation, trainer.train_whole_job)
    deltas = [trainer.train_whole_job(4, k).delta for k in range(3)]
    n = federation.n_train

    def loss(pair: tuple[int, ...]) -> float:
        return lab.server_loss_after(sum(n[k] * deltas[k] for k in pair) / n[list(pair)].sum())

    options = {"cohort": 2, "direction": "down"}
    ranks = find_computed("greedy_gain").compute(lab, 4, np.arange(3), options)
    best = min(range(3), key=lambda k: loss((k,)))
    pair = min((p for p in combinations(range(3), 2) if best in p), key=loss)
    assert int(np.argmax(ranks)) == best
    assert set(np.flatnonzero(ranks)) == set(pair)


@pytest.mark.parametrize("choice", list_options("samples"))
def test_simulated_rounds_equal_the_actual_ones_or_the_run_is_rejected(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one client a round and FedAvg, the smallest loss that was foreseen is the server's after the round."""
    simulated, server_loss_after = list[float](), SignalMeasurer.server_loss_after

    def note(lab: SignalMeasurer, update: torch.Tensor) -> float:
        simulated.append(server_loss_after(lab, update))
        return simulated[-1]

    monkeypatch.setattr(SignalMeasurer, "server_loss_after", note)
    incompatible = {"random": ("samples.fraction=0.1",), "oort_balancer": ("client.steps=3",)}
    overrides = (
        f"samples={choice}",
        *incompatible.get(choice, ()),
        "deadline=fixed",
        "deadline.k=100",
        "heterogeneity=iid",
    )
    run = partial(
        run_training, tmp_path, "selector=oracle_greedy", "clients=4", "cohort=1", "split.limit=300", *overrides
    )
    if not make_component("samples", choice).is_foreseeable:
        with pytest.raises(
            IncompatibleConfig, match=r"before the cohort is selected, .* choose samples=all or samples=random"
        ):
            run()
        return
    measured = [report.metrics["server_val/loss"] for report in run("rounds=3").reports[1:]]
    assert np.reshape(simulated, (3, 4)).min(1).tolist() == pytest.approx(measured, rel=1e-5)
