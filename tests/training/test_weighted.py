"""Steps whose samples are weighed: derivatives against autograd, and everything around them as without.

Whole runs are in `test_weighted_runs.py`.
"""

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from config_options import make_component
from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.flat import FlatModel
from fedcohort.hook import HookResult, StepView, find_weigher
from fedcohort.training.engines import choose_engine
from fedcohort.training.weighted import MiniBatchStepView
from run_harness import run_training
from tolerances import AllcloseTolerance

DOUBLE: AllcloseTolerance = {"atol": 1e-10, "rtol": 0}


@dataclass
class Watching:
    """A correction that records the arguments of its calls, and gives every sample the same weight."""

    weight: float
    ask: Any = None
    positions: list[list[int]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def weigh(self, step: StepView) -> torch.Tensor:
        self.positions.append(step.positions.tolist())
        if self.ask is not None:
            self.answers.append(self.ask(step))
        return torch.full((len(step.positions),), self.weight, dtype=torch.float64)

    def correct(self, g: torch.Tensor, y: torch.Tensor) -> None:
        """Nothing."""

    def finish(self, y: torch.Tensor, steps: int, lr: float) -> HookResult:
        return HookResult()


@dataclass
class Watcher:
    """Its hook."""

    correction: Watching
    downloads: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    remembers: tuple[str, ...] = ()
    per_sample: tuple[str, ...] = ()
    averaged: tuple[str, ...] = ()
    passes: float = 0.0

    def begin(self, w: Any, broadcast: Any, stored: Any, job: Any) -> Watching:
        assert job.samples > 0
        return self.correction


def make_watched_trainer(
    ask: Any = None, weight: float = 1.0, network: Any = None, **client: Any
) -> tuple[Any, Watching]:
    correction = Watching(weight, ask)
    network = make_network(torch.float64) if network is None else network
    trainer = make_trainer(
        make_federation(n=200, clients=4, dtype=torch.float64), network, "ce", (Watcher(correction),), **client
    )
    return trainer, correction


def images() -> nn.Sequential:
    """What networks for images are made of."""
    last_layers = (
        nn.Conv2d(4, 4, 1),
        nn.ReLU6(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=4), *last_layers)


def case(kind: str, objective: str) -> tuple[FlatModel, MiniBatchStepView]:
    """A view of one mini-batch, and its model."""
    g = torch.Generator().manual_seed(0)
    network: nn.Module = (
        images() if kind == "images" else make_network(torch.float64, nn.BatchNorm1d(8), nn.Dropout(0.5))
    )
    model = FlatModel(network.double(), channels_last=kind == "images")
    model.w.copy_(torch.randn(model.w.shape, generator=g, dtype=torch.float64) / 2)
    x = torch.randn((6, 2, 8, 8) if kind == "images" else (6, 5), generator=g, dtype=torch.float64)
    x = x.contiguous(memory_format=torch.channels_last) if kind == "images" else x
    y, z = torch.arange(6) % 3, torch.rand((6, 3), generator=g, dtype=torch.float64).softmax(1)
    view = MiniBatchStepView(
        model, make_component("objective", objective), (x, y, z), torch.arange(6), lambda: (x[:4], y[:4])
    )
    return model, view


def gradient(model: FlatModel, value: torch.Tensor) -> torch.Tensor:
    """Of a value of the network, by autograd, in the order of the flat vector."""
    flat = torch.empty_like(model.w)
    for block, part in zip(model.layout.parameters, torch.autograd.grad(value, model.tensors), strict=True):
        block.make_view(flat).copy_(part)
    return flat


CASES = [(kind, objective) for kind in ("images", "batch norm") for objective in ("ce", "flash_robust", "propfair")]


@pytest.mark.parametrize(("kind", "objective"), CASES)
def test_derivatives_along_u_are_the_sample_gradients_times_u(kind: str, objective: str) -> None:
    model, view = case(kind, objective)
    u = torch.linspace(-1, 1, len(model.w), dtype=torch.float64)
    slopes = view.derivative_along(u)
    model.network.eval()
    for j in range(6):
        objectives, _ = view.objective.per_sample(model.network(view.x), view.y, view.reference)
        torch.testing.assert_close(slopes[j], gradient(model, objectives[j]) @ u, **DOUBLE)
    assert not slopes.requires_grad


@pytest.mark.parametrize(("kind", "objective"), CASES)
def test_the_hessian_product_is_the_change_of_the_gradient_along_u(kind: str, objective: str) -> None:
    model, view = case(kind, objective)
    u, weights = (
        torch.linspace(-1, 1, len(model.w), dtype=torch.float64),
        torch.linspace(0.2, 2, 6, dtype=torch.float64),
    )
    results, w = view.hessian_product(u, weights), model.w.clone()
    model.network.eval()
    gradients = []
    for step in (1e-6, -1e-6):
        model.w.copy_(w + step * u)
        objectives, _ = view.objective.per_sample(model.network(view.x), view.y, view.reference)
        gradients.append(gradient(model, view.objective.transform_mean((weights * objectives).mean())))
    torch.testing.assert_close(results, (gradients[0] - gradients[1]) / 2e-6, atol=1e-6, rtol=1e-6)


def test_the_validation_gradient_is_that_of_cross_entropy_for_every_objective() -> None:
    model, view = case("images", "flash_robust")
    results = view.validation_gradient()
    model.network.eval()
    value = nn.functional.cross_entropy(model.network(view.x[:4]), view.y[:4])
    torch.testing.assert_close(results, gradient(model, value), **DOUBLE)


def test_reading_derivatives_changes_neither_network_nor_generators() -> None:
    model, view = case("batch norm", "ce")
    model.network.train()
    before = (copy.deepcopy(model.network.state_dict()), torch.get_rng_state())
    u = torch.ones_like(model.w)
    view.derivative_along(u)
    view.hessian_product(u, torch.ones(6, dtype=torch.float64))
    view.validation_gradient()
    assert all(torch.equal(a, b) for a, b in zip(before[0].values(), model.network.state_dict().values(), strict=True))
    assert torch.equal(before[1], torch.get_rng_state())
    assert model.network.training


def test_a_weigher_gets_the_positions_in_the_clients_data() -> None:
    trainer, correction = make_watched_trainer(batch=2)
    rows = np.array([1, 4, 6, 9, 11])
    trainer.train(make_task(1, units=2, rows=rows), {})
    assert [len(batch) for batch in correction.positions] == [2, 2, 1] * 2
    for epoch in (correction.positions[:3], correction.positions[3:]):
        assert sorted(position for batch in epoch for position in batch) == rows.tolist()
    x, y = trainer.federation.train.client_samples(1)
    recorded: list[tuple[Any, Any]] = []
    trainer, correction = make_watched_trainer(lambda step: recorded.append((step.x, step.y)), batch=2)
    trainer.train(make_task(1, units=1, rows=rows), {})
    for position, (inputs, labels) in zip(correction.positions, recorded, strict=True):
        assert torch.equal(inputs, x[position])
        assert torch.equal(labels, y[position])


def test_validation_mini_batches_cycle_in_an_order_keyed_by_round_and_client() -> None:
    def gradients(round: int, client: int) -> list[torch.Tensor]:
        trainer, correction = make_watched_trainer(lambda step: step.validation()[1], batch=3)
        trainer.train(make_task(client, units=2, round=round), {})
        labels = trainer.federation.val.client_samples(client)[1]
        n, first = len(labels), torch.cat(correction.answers)[: len(labels)]
        assert n == 4
        assert [len(batch) for batch in correction.answers[:4]] == [3, 1, 3, 1]
        assert sorted(first.tolist()) == sorted(labels.tolist())
        return correction.answers

    repeat = [torch.equal(a, b) for a, b in zip(gradients(4, 1), gradients(4, 1), strict=True)]
    assert all(repeat)
    is_equal = [torch.equal(a, b) for a, b in zip(gradients(4, 1), gradients(5, 1), strict=True)]
    assert not all(is_equal)


@pytest.mark.parametrize("client", [{}, {"momentum": 0.9}, {"choice": "adam"}, {"clip": 0.1}], ids=str)
def test_sample_weights_of_one_equal_unweighted_training(client: dict[str, Any]) -> None:
    trainer, _ = make_watched_trainer(batch=4, **client)
    plain = make_trainer(trainer.federation, make_network(torch.float64), batch=4, **client)
    plain.chain = None
    a, b = (local_trainer.train(make_task(2), {}) for local_trainer in (trainer, plain))
    assert torch.equal(a.delta, b.delta)
    assert a.batch_loss.tolist() == b.batch_loss.tolist()


def test_sample_weights_of_two_equal_a_doubled_learning_rate() -> None:
    double_weight, _ = make_watched_trainer(weight=2.0, batch=None)
    plain = make_trainer(double_weight.federation, make_network(torch.float64), batch=None)
    a, b = double_weight.train(make_task(2, lr=0.1), {}), plain.train(make_task(2, lr=0.2), {})
    torch.testing.assert_close(a.delta, b.delta, **DOUBLE)
    assert a.batch_loss.tolist() == pytest.approx(b.batch_loss.tolist(), abs=1e-12)


def test_sample_weights_do_not_change_batch_norm_and_dropout() -> None:
    network = make_network(torch.float64, nn.BatchNorm1d(8), nn.Dropout(0.5))
    trainer, _ = make_watched_trainer(
        lambda step: step.derivative_along(step.validation_gradient()), network=network, batch=4
    )
    plain = make_trainer(trainer.federation, network, batch=4)
    a, b = (local_trainer.train(make_task(2), {}) for local_trainer in (trainer, plain))
    assert torch.equal(a.delta, b.delta)
    assert torch.equal(a.buffers, b.buffers)


def test_every_engine_weighs_samples_sequentially_with_a_reason(tmp_path: Path) -> None:
    for kind in ("auto", "sequential", "vectorised"):
        trainer, _ = make_watched_trainer()
        engine, reason = choose_engine(kind, trainer, 4)
        assert engine is trainer
        assert "weighs samples" in reason
    assert "weighs samples" in run_training(tmp_path, "agg=fedbio", "rounds=1", "engine=vectorised").info.tags["engine"]


@pytest.mark.parametrize("variant", ["first_order", "second_order"])
@pytest.mark.parametrize("client", [{"batch": 8, "choice": "adam"}, {"batch": None}], ids=str)
def test_the_debug_engine_gives_the_same_weighted_updates(variant: str, client: dict[str, Any]) -> None:
    results = []
    for kind in ("sequential", "debug"):
        hooks = make_component("agg", "fedbio", variant=variant).hooks
        federation = make_federation(dtype=torch.float64)
        trainer = make_trainer(federation, make_network(torch.float64), "ce", hooks, **client)
        down = {"u": torch.ones(trainer.server.layout.n_params, dtype=torch.float64) / 10}
        engine, _ = choose_engine(kind, trainer, 4)
        results.append(list(engine.train_clients([make_task(0), make_task(1, rows=np.array([0, 3, 4]))], down)))
    for a, b in zip(*results, strict=True):
        assert torch.equal(a.delta, b.delta)
        assert torch.equal(a.stored["x"], b.stored["x"])
        assert a.uploads.keys() == b.uploads.keys()
    assert results[0][1].stored["x"].ne(0).sum() == 3


def test_a_client_with_zero_units_keeps_its_sample_weights() -> None:
    trainer = make_trainer(make_federation(), make_network(), "ce", make_component("agg", "fedbio").hooks)
    n = trainer.count_samples(make_task(1))
    x = torch.linspace(-1, 1, n)
    update = trainer.train(make_task(1, units=0, stored={"x": x}), {})
    assert torch.equal(update.stored["x"], x)
    assert float(update.delta.norm()) == 0.0


def test_hooks_without_sample_weights_keep_hand_written_gradients() -> None:
    trainer = make_trainer(make_federation(), make_network(), "ce", make_component("agg", "scaffold").hooks)
    assert find_weigher(trainer.hooks) is None
    assert trainer.chain is not None
