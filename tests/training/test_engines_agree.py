"""Every engine trains every client to the same place."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from config_options import make_component
from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.errors import ClientError
from fedcohort.training.debug import DebugEngine
from fedcohort.training.engines import choose_engine
from fedcohort.training.vectorised import VectorisedEngine
from fedcohort.types import ClientUpdate
from round_harness import run_without_files
from run_harness import run_training

HOOKS = {
    "none": (),
    "prox": make_component("regulariser", "prox", mu=0.5).hooks,
    "scaffold": make_component("agg", "scaffold").hooks,
    "both": (*make_component("agg", "scaffold").hooks, *make_component("regulariser", "prox", mu=0.5).hooks),
}
CLIENTS: dict[str, dict[str, Any]] = {
    "small batches": {"batch": 4},
    "one batch": {"batch": 100},
    "whole": {"batch": None},
    "momentum": {"batch": 4, "momentum": 0.9},
    "clip": {"batch": 4, "clip": 0.05},
    "adam": {"batch": 3, "choice": "adam"},
    "steps": {"batch": 5, "steps": 7},
}
OBJECTIVES = ("ce", "flash_robust", "propfair")
CASES = [  # every client without and with hooks, each hook alone, and each of both with every objective
    *(
        (client, hooks, OBJECTIVES[(i + j) % 3])
        for i, client in enumerate(CLIENTS)
        for j, hooks in enumerate(("none", "both"))
    ),
    *(("momentum", hooks, objective) for hooks in ("prox", "scaffold") for objective in OBJECTIVES),
]
RAGGED = [None, np.array([2]), np.array([0, 3, 5, 6, 9]), np.arange(11)]


@cache
def train_clients(kind: str, client: str, hooks: str, objective: str) -> list[ClientUpdate]:
    federation, network = make_federation(clients=4, dtype=torch.float64), make_network(torch.float64)
    trainer = make_trainer(federation, network, objective, HOOKS[hooks], **CLIENTS[client])
    p = trainer.server.layout.n_params
    down = {"c": torch.linspace(-1, 1, p, dtype=torch.float64)}
    stored = {"c": torch.linspace(1, -1, p, dtype=torch.float64)}
    engine, _ = choose_engine(kind, trainer, 3)
    units = CLIENTS[client].get("steps", 2)
    tasks = [make_task(k, units=units, rows=rows, stored=stored, loss_after=True) for k, rows in enumerate(RAGGED)]
    return list(engine.train_clients(tasks, down))


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_the_vectorised_engine_equals_the_sequential_one(case: tuple[str, str, str]) -> None:
    assert_same_updates("vectorised", *case)


@pytest.mark.parametrize("case", [CASES[0], *(case for case in CASES if case[1] == "both")], ids="-".join)
def test_the_debug_engine_equals_the_sequential_one(case: tuple[str, str, str]) -> None:
    assert_same_updates("debug", *case)


def assert_same_updates(kind: str, *case: str) -> None:
    for a, b in zip(*(train_clients(k, *case) for k in ("sequential", kind)), strict=True):
        assert (a.client, a.steps, a.n_used) == (b.client, b.steps, b.n_used)
        assert a.batch_size.tolist() == b.batch_size.tolist()
        torch.testing.assert_close(a.delta, b.delta, atol=1e-10, rtol=0)
        assert a.batch_loss.tolist() == pytest.approx(b.batch_loss.tolist(), abs=1e-10)
        assert a.loss_after == pytest.approx(b.loss_after, abs=1e-10)
        for name in a.uploads:
            torch.testing.assert_close(a.uploads[name], b.uploads[name], atol=1e-10, rtol=0)
        for name in a.stored:
            torch.testing.assert_close(a.stored[name], b.stored[name], atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("overrides", "kinds"),
    [
        ((), ("debug", "sequential")),  # auto is the linear model's dual, and so is vectorised
        (("agg=propfair",), ("sequential",)),
        (("agg=term", "agg.loss=loss_post"), ("debug",)),
        (("selector=flash", "agg=scaffold", "model=mlp"), ("vectorised",)),  # auto is sequential
    ],
)
def test_whole_runs_of_all_engines_agree(overrides: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    small = (*overrides, "rounds=2", "split.limit=200")
    sequential_run = run_without_files(*small)
    for kind in kinds:
        other_run = run_without_files(*small, f"engine={kind}")
        torch.testing.assert_close(other_run.weights(), sequential_run.weights(), atol=1e-5, rtol=0)
        assert other_run.cohorts == sequential_run.cohorts


def test_batch_norm_falls_back_to_the_sequential_engine_with_a_reason(tmp_path: Path) -> None:
    network = make_network(torch.float32, nn.BatchNorm1d(8))
    trainer = make_trainer(make_federation(), network)
    engine, reason = choose_engine("vectorised", trainer, 4)
    assert engine is trainer
    assert "batch norm" in reason
    assert "sequential: hand-written gradients" in run_training(tmp_path, "rounds=1", "model=mlp").info.tags["engine"]


def test_engine_auto_states_its_choice() -> None:
    chain = make_trainer(make_federation(), make_network())
    assert choose_engine("auto", chain, 4) == (chain, "sequential: hand-written gradients, one client at a time")
    assert isinstance(choose_engine("vectorised", chain, 4)[0], VectorisedEngine)
    assert isinstance(choose_engine("debug", chain, 4)[0], DebugEngine)
    assert chain.chain is None, "debug looks at autograd's gradients"


def test_the_debug_engine_names_the_client_with_a_non_finite_input() -> None:
    federation = make_federation()
    federation.train.x[int(federation.train.offsets[1]) + 2] = float("nan")
    engine, _ = choose_engine("debug", make_trainer(federation, make_network(), batch=None), 4)
    with pytest.raises(ClientError, match=r"round 5, client 1, step 1: an input is not finite"):
        list(engine.train_clients([make_task(0), make_task(1)], {}))


def test_the_debug_engine_names_the_step_that_diverges() -> None:
    trainer = make_trainer(make_federation(), make_network(), batch=None)
    with pytest.raises(ClientError, match=r"client 2, step \d+: .*not finite"):
        list(choose_engine("debug", trainer, 4)[0].train_clients([make_task(2, units=50, lr=1e20)], {}))


class TrainingModeNetwork(nn.Module):
    """A layer that does twice as much while it is trained."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x if self.training else x


@pytest.mark.parametrize("kind", ["sequential", "vectorised"])
def test_a_network_is_trained_in_training_mode(kind: str) -> None:
    """A step of w <- w - lr grad with inputs twice as large is that of a network without the layer on such inputs."""
    federation = make_federation(dtype=torch.float64)
    network = nn.Sequential(TrainingModeNetwork(), *make_network(torch.float64))
    trainer = make_trainer(federation, network, batch=4)
    trainer.worker.network.eval()  # as an evaluation leaves it
    (update,) = choose_engine(kind, trainer, 3)[0].train_clients([make_task(1, units=1)], {})
    doubled = make_federation(dtype=torch.float64)
    doubled.train.x.mul_(2)
    (expected,) = choose_engine(kind, make_trainer(doubled, make_network(torch.float64), batch=4), 3)[0].train_clients(
        [make_task(1, units=1)], {}
    )
    torch.testing.assert_close(update.delta, expected.delta, atol=1e-12, rtol=0)
