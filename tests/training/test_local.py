"""Local training is compared with plain torch loops."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from config_options import make_component
from engine_harness import SEED, flatten_parameters, make_federation, make_network, make_task, make_trainer
from fedcohort.flat import FlatModel
from fedcohort.rng import new_generator, seeded_torch
from fedcohort.training.chain import find_dense_chain
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.local_method import LocalTrainingMethod
from optional_values import not_none


def train_manually(federation: Any, network: nn.Module, task: ClientTask, batch: int, optimizer: Any) -> torch.Tensor:
    """Train a client's epochs by a straightforward loop; return the trained parameters."""
    x, y = federation.train.client_samples(task.client)
    rng = new_generator(SEED, "batches", task.round, task.client)
    for _ in range(task.units):
        order = rng.permutation(len(y))
        for start in range(0, len(y), batch):
            rows = order[start : start + batch]
            optimizer.zero_grad()
            F.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    return flatten_parameters(network)


@pytest.mark.parametrize(
    ("choice", "options", "reference"),
    [
        ("sgd", {}, lambda p: torch.optim.SGD(p, lr=0.1)),
        ("sgd", {"momentum": 0.9}, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
        ("sgd", {"weight_decay": 0.01}, lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01)),
        ("adam", {}, lambda p: torch.optim.Adam(p, lr=0.1)),
    ],
)
def test_local_training_equals_a_plain_training_loop(choice: str, options: dict[str, Any], reference: Any) -> None:
    federation, network = make_federation(dtype=torch.float64), make_network(torch.float64)
    trainer = make_trainer(federation, network, choice=choice, batch=7, **options)
    task = make_task(1)
    delta = trainer.train(task, {}).delta
    start = flatten_parameters(network).clone()
    expected = train_manually(federation, network, task, 7, reference(network.parameters())) - start
    torch.testing.assert_close(delta, expected, atol=1e-12, rtol=0)


def convolutions(*after: nn.Module) -> list[nn.Module]:
    """A network without biases: before batch norm a bias has no gradient, and Adam would amplify rounding errors."""
    return [nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 2, 3, bias=False), *after, nn.Flatten()]


NETWORKS = {
    "linear": lambda: [nn.Flatten(), nn.Linear(5, 3)],
    "one hidden layer": lambda: [nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)],
    "two hidden layers": lambda: [nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3)],
    "convolution before": lambda: [*convolutions(nn.ReLU()), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)],
    "batch norm before": lambda: [*convolutions(nn.BatchNorm1d(2)), nn.Linear(6, 3)],
    "dropout before": lambda: [*convolutions(nn.Dropout()), nn.Linear(6, 3)],
    "pooling before": lambda: [nn.Unflatten(1, (1, 5)), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(2, 3)],
}


OBJECTIVES = ("ce", "flash_robust")
PLAIN: tuple[str, dict[str, Any]] = ("", {})  # the step goes straight into the weights
GRADIENT_CHANGES: list[tuple[str, dict[str, Any]]] = [  # of the gradient something else is made
    ("prox", {}),
    ("", {"momentum": 0.9}),
    ("scaffold", {"clip": 0.1}),
    ("", {"choice": "adam"}),
    ("scaffold", {}),
]
CASES = [  # every network with each objective, once plainly and once with one of the moves
    (name, objective, *way)
    for i, name in enumerate(NETWORKS)
    for j, objective in enumerate(OBJECTIVES)
    for way in (PLAIN, GRADIENT_CHANGES[(i + 2 * j) % len(GRADIENT_CHANGES)])
]


@pytest.mark.parametrize(("name", "objective", "hooks", "client"), CASES, ids=str)
def test_hand_written_gradients_equal_autograd(name: str, objective: str, hooks: str, client: dict[str, Any]) -> None:
    federation = make_federation(dtype=torch.float64)
    with seeded_torch(SEED, "weights"):
        network = nn.Sequential(*NETWORKS[name]()).double()
    inputs = {
        "": (),
        "prox": make_component("regulariser", "prox", mu=0.5).hooks,
        "scaffold": make_component("agg", "scaffold").hooks,
    }
    down = {"c": torch.full((sum(p.numel() for p in network.parameters()),), 0.1, dtype=torch.float64)}
    trainers = [make_trainer(federation, network, objective, inputs[hooks], batch=4, **client) for _ in range(2)]
    assert trainers[0].chain is not None
    trainers[1].chain = None
    a, b = (trainer.train(make_task(0), down) for trainer in trainers)
    torch.testing.assert_close(a.delta, b.delta, atol=1e-12, rtol=0)
    assert a.batch_loss.tolist() == pytest.approx(b.batch_loss.tolist(), abs=1e-12)
    for upload in a.uploads:
        torch.testing.assert_close(a.uploads[upload], b.uploads[upload], atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    "network",
    [
        nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(5, 4, bias=False), nn.ReLU(), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(5, 4), nn.ReLU()),
        nn.Sequential(nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 1, 3), nn.Linear(3, 3)),
        nn.Sequential(nn.Linear(5, 4).requires_grad_(False), nn.Flatten(), nn.Linear(4, 3)),
    ],
    ids=["tanh", "dropout", "no bias", "ends in ReLU", "three dimensions", "a frozen part"],
)
def test_networks_that_are_no_dense_chain_use_autograd(network: nn.Module) -> None:
    assert find_dense_chain(FlatModel(network)) is None


def test_an_update_does_not_depend_on_earlier_clients() -> None:
    federation, network = make_federation(), make_network()
    trainer = make_trainer(federation, network, choice="adam")
    single_delta = trainer.train(make_task(2), {}).delta
    trainer.train(make_task(0), {})
    assert torch.equal(single_delta, trainer.train(make_task(2), {}).delta)


def test_prox_zero_is_fedavg_bit_for_bit() -> None:
    federation, network = make_federation(), make_network()
    plain = make_trainer(federation, network).train(make_task(0), {}).delta
    with_prox = (
        make_trainer(federation, network, hooks=make_component("regulariser", "prox", mu=0).hooks)
        .train(make_task(0), {})
        .delta
    )
    assert torch.equal(plain, with_prox)


def test_a_larger_mu_keeps_updates_shorter() -> None:
    federation, network = make_federation(), make_network()
    sizes = []
    for mu in (0.01, 1.0, 5.0):
        hooks = make_component("regulariser", "prox", mu=mu).hooks
        sizes.append(
            float(make_trainer(federation, network, hooks=hooks).train(make_task(0, units=20), {}).delta.norm())
        )
    assert sizes == sorted(sizes, reverse=True)


def test_scaffold_keeps_the_mean_raw_gradient_under_adam_and_prox() -> None:
    federation, network = make_federation(dtype=torch.float64), make_network(torch.float64)
    agg = make_component("agg", "scaffold")
    hooks = (*agg.hooks, *make_component("regulariser", "prox", mu=0.7).hooks)
    trainer = make_trainer(federation, network, hooks=hooks, choice="adam", batch=None)
    p = trainer.server.layout.n_params
    c, c_i = torch.randn(2, p, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    update = trainer.train(make_task(0, units=1, stored={"c": c_i}), {"c": c})
    x, y = federation.train.client_samples(0)
    F.cross_entropy(network(x), y).backward()
    raw = torch.cat([not_none(q.grad).flatten() for q in network.parameters()])
    torch.testing.assert_close(update.stored["c"], raw, atol=1e-10, rtol=0)
    torch.testing.assert_close(update.uploads["delta_c"], raw - c_i, atol=1e-10, rtol=0)


@pytest.mark.parametrize("steps", [1, 4, 9])
def test_an_update_has_the_requested_number_of_steps(steps: int) -> None:
    update = make_trainer(make_federation(), make_network(), steps=steps, batch=10).train(make_task(0, units=steps), {})
    assert update.steps == steps


def test_only_the_chosen_samples_train() -> None:
    rows = np.array([3, 5, 8])
    update = make_trainer(make_federation(), make_network(), batch=2).train(make_task(0, units=1, rows=rows), {})
    assert update.n_used == 3
    assert update.batch_size.sum() == 3
    assert update.n_train > 3


def test_a_batch_of_one_is_merged_for_batch_norm() -> None:
    network = make_network(torch.float32, nn.BatchNorm1d(8))
    federation = make_federation()
    n = len(federation.train.client_samples(0)[1])
    update = make_trainer(federation, network, batch=n - 1).train(make_task(0, units=1), {})
    assert update.steps == 1
    assert torch.isfinite(update.delta).all()
    single = make_trainer(federation, network).train(make_task(0, units=1, rows=np.array([2])), {})
    assert torch.isfinite(single.delta).all()
    assert torch.isfinite(single.buffers).all()


class Dropping(nn.Module):
    """A module that applies dropout although it contains no dropout module of torch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5, self.training)


class NetworkWithBuffer(nn.Module):
    """The features as a sequence for a layer that drops out within."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        recurrent = kind == "recurrent"
        self.layer = nn.LSTM(1, 1, 2, dropout=0.5, batch_first=True) if recurrent else nn.MultiheadAttention(8, 2, 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.layer, nn.LSTM):
            return self.layer(x[:, :, None])[0][:, :, 0]  # type: ignore[no-any-return]
        return self.layer(x, x, x)[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "make_layer",
    [lambda: nn.Dropout(0.5), Dropping, lambda: NetworkWithBuffer("recurrent"), lambda: NetworkWithBuffer("attention")],
    ids=["a layer", "a module of one's own", "recurrent", "attention"],
)
def test_dropout_is_keyed_and_does_not_use_the_global_generator(make_layer: Callable[[], nn.Module]) -> None:
    with seeded_torch(SEED, "weights"):
        dropping = make_layer()
    federation, network = make_federation(), make_network(torch.float32, dropping)
    trainer = make_trainer(federation, network)
    before = torch.get_rng_state()
    a = trainer.train(make_task(0), {}).delta
    trainer.train(make_task(1), {})
    assert torch.equal(a, trainer.train(make_task(0), {}).delta)
    assert not torch.equal(a, trainer.train(make_task(0, round=5), {}).delta)
    assert torch.equal(before, torch.get_rng_state())


def test_clipping_bounds_the_step() -> None:
    federation, network = make_federation(), make_network()
    update = make_trainer(federation, network, batch=None, clip=0.01).train(make_task(0, units=1, lr=1.0), {})
    assert float(update.delta.norm()) == pytest.approx(0.01, rel=1e-4)


@pytest.mark.parametrize(
    ("closed_form", "bf16", "hooks", "chain"),
    [
        (True, False, (), True),
        (False, False, (), False),
        (True, True, (), False),
        (False, True, (), False),
        (True, False, "fedbio", False),
    ],
)
def test_closed_form_gradients_are_used_only_where_they_are_valid(
    closed_form: bool, bf16: bool, hooks: Any, chain: bool
) -> None:
    """A network of Linear and ReLU: not in bfloat16, whose products round otherwise; not where samples are weighed."""
    network, federation = nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), make_federation()
    server, worker = FlatModel(network), FlatModel(copy.deepcopy(network), uses_bf16=bf16)
    parts = (make_component("objective", "ce"), make_component("client", "sgd"), make_component("codec", "none"))
    inputs = make_component("agg", hooks).hooks if hooks else ()
    assert (
        LocalTrainer(server, worker, federation, LocalTrainingMethod(*parts, inputs), SEED, closed_form).chain
        is not None
    ) == chain


def test_sent_buffers_are_not_changed_by_the_next_client() -> None:
    """The next client, with another number of steps, does not change the sent batch norm statistics."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(5, 3), nn.BatchNorm1d(3))
    trainer = make_trainer(make_federation(dtype=torch.float32), network, batch=4)
    first = trainer.train(make_task(0, units=1), {})
    copies = (first.buffers.clone(), first.counters.clone(), first.delta.clone())
    second = trainer.train(make_task(1, units=3), {})
    assert not torch.equal(first.counters, second.counters)
    assert all(torch.equal(a, b) for a, b in zip((first.buffers, first.counters, first.delta), copies, strict=True))
