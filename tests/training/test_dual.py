"""Training linear models through their Gram matrices ends where training their weights does."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from case_loop import for_all
from config_options import make_component
from engine_harness import SEED, make_federation, make_task, make_trainer
from fedcohort.rng import seeded_torch
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.training.chain import DenseChainNetwork
from fedcohort.training.dual import GramMatrixEngine
from fedcohort.training.dual_group import GroupShape
from fedcohort.training.engines import choose_engine
from fedcohort.training.local import LocalTrainer
from fedcohort.types import ClientUpdate

CLIENTS: list[dict[str, Any]] = [
    {"batch": 4},
    {"batch": 4, "epochs": 6},
    {"batch": 100},
    {"batch": None},
    {"batch": 5, "steps": 7},
    {"batch": 7, "steps": 40},
]
RAGGED = [None, np.array([2]), np.array([0, 3, 5, 6, 9]), np.arange(11), np.arange(8), np.arange(4, 12)]


def trainer(dtype: torch.dtype, objective: str = "ce", **client: Any) -> LocalTrainer:
    with seeded_torch(SEED, "weights"):
        network = nn.Linear(5, 3).to(dtype)
    federation = make_federation(n=300, clients=6, dtype=dtype)
    local_trainer: LocalTrainer = make_trainer(federation, network, objective, **client)
    return local_trainer


def tasks(client: dict[str, Any]) -> list[Any]:
    units = client.get("steps", client.get("epochs", 1))
    chosen = enumerate(RAGGED)
    return [make_task(k, units=units - (k == 3 and units > 1), rows=rows, loss_after=True) for k, rows in chosen]


@pytest.mark.parametrize("client", CLIENTS, ids=str)
@pytest.mark.parametrize("objective", ["ce", "flash_robust"])
def test_the_gram_matrix_engine_equals_sgd(objective: str, client: dict[str, Any]) -> None:
    primal, dual = (trainer(torch.float64, objective, **client) for _ in range(2))
    engine = GramMatrixEngine(dual, 3)
    assert any(engine._find_group_shape(task) is not None for task in tasks(client)), (
        "all clients fell back: nothing is compared"
    )
    results = zip(primal.train_clients(tasks(client), {}), engine.train_clients(tasks(client), {}), strict=True)
    for a, b in results:
        assert (a.client, a.steps, a.n_used) == (b.client, b.steps, b.n_used)
        assert a.batch_size.tolist() == b.batch_size.tolist()
        torch.testing.assert_close(a.delta, b.delta, atol=1e-10, rtol=0)
        assert a.batch_loss.tolist() == pytest.approx(b.batch_loss.tolist(), abs=1e-10)
        assert a.loss_after == pytest.approx(b.loss_after, abs=1e-10)


def test_an_update_does_not_depend_on_the_clients_of_its_group() -> None:
    """Float32 bits do not depend on the clients that are trained together, nor on the number of slices."""

    def deltas(chunk: int, client_ids: list[int]) -> dict[int, ClientUpdate]:
        engine = GramMatrixEngine(trainer(torch.float32, batch=4, epochs=3), chunk)
        chosen = [make_task(k, units=3) for k in client_ids]
        return {update.client: update for update in engine.train_clients(chosen, {})}

    single = {k: deltas(1, [k])[k] for k in range(6)}
    for company in (deltas(6, list(range(6))), deltas(2, [5, 3, 1, 0, 2, 4])):
        assert {k: torch.equal(single[k].delta, company[k].delta) for k in single} == dict.fromkeys(single, True)


@for_all("numbers, sizes", [(8 * 8 * 4, [4, 2]), (8 * 8 * 4 - 1, [3, 3]), (1, [1] * 6)])
def test_a_group_is_limited_by_its_inputs_and_gram_matrices(numbers: int, sizes: list[int]) -> None:
    """A client of 8 samples has 8 x 5 inputs and 8 x 8 entries of its Gram matrix."""
    tasks = [make_task(k, rows=np.arange(8)) for k in range(6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcohort.training.dual_group.MAX_ENTRIES", numbers)
        patch.setattr(GramMatrixEngine, "_find_group_shape", lambda *_: GroupShape(2, 4, 1))
        assert [
            len(group) for group in GramMatrixEngine(trainer(torch.float32, batch=4)).group_client_tasks(tasks)
        ] == sizes


def collect_updates(local_trainer: LocalTrainer, updates: Sequence[ClientUpdate], stacked: bool = False) -> Arrivals:
    clients = np.array([update.client for update in updates])
    weights = np.array([float(update.n_used) for update in updates])
    layout, device = local_trainer.server.layout, torch.device("cpu")
    collector = Collector(
        layout, clients, weights, CollectorOptions(keeps_updates=stacked, max_update_norm=1e6), device=device
    )
    for update in updates:
        collector.add_client_update(update)
    return collector.sum_over_ranks(lambda tensor: tensor, lambda tensor: tensor)


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_sum_of_a_group_is_the_sum_of_its_updates(client: dict[str, Any]) -> None:
    """Updates are summed in the dual form, or formed one by one if the matrix is read, with the same norms."""
    local_trainer = trainer(torch.float64, **client)
    updates = list(GramMatrixEngine(local_trainer, 3).train_clients(tasks(client), {}))
    groups = [update.group for update in updates if update.group is not None]
    assert groups, "all clients fell back: nothing is compared"
    for update in updates:
        if update.group is not None:
            norm = float(torch.linalg.vector_norm(update.delta))
            assert list(update.norms) == pytest.approx([norm], rel=1e-10)
    together, separate = (collect_updates(local_trainer, updates, stacked) for stacked in (False, True))
    torch.testing.assert_close(together.mean, separate.mean, atol=1e-12, rtol=1e-10)
    assert together.clients.tolist() == separate.clients.tolist()


def test_single_updates_are_not_computed_unless_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    local_trainer = trainer(torch.float64, batch=4)
    monkeypatch.setattr(GramMatrixEngine, "_make_update", lambda *_: pytest.fail("the engine made an update"))
    assert (
        collect_updates(
            local_trainer, list(GramMatrixEngine(local_trainer, 6).train_clients([make_task(k) for k in range(6)], {}))
        ).mean
        is not None
    )


def test_a_client_that_diverged_is_left_out_of_the_sum() -> None:
    """Its numbers are no part of the product: 0 x NaN would be NaN."""
    local_trainer = trainer(torch.float64, batch=4)
    train = local_trainer.federation.train
    train.x[int(train.offsets[2])] = float("nan")
    results = collect_updates(
        local_trainer, list(GramMatrixEngine(local_trainer, 6).train_clients([make_task(k) for k in range(6)], {}))
    )
    assert results.dropped_ids.tolist() == [2]
    other_updates = [
        update for update in local_trainer.train_clients([make_task(k) for k in range(6)], {}) if update.client != 2
    ]
    torch.testing.assert_close(results.mean, collect_updates(local_trainer, other_updates).mean, atol=1e-10, rtol=0)


def test_masked_or_encoded_updates_are_not_summed_as_a_group() -> None:
    local_trainer = trainer(torch.float64, batch=4)
    is_kept = np.array([True, False])
    masked_tasks = [replace(make_task(k), tensor_mask=is_kept if k == 1 else None) for k in range(3)]
    assert all(update.group is None for update in GramMatrixEngine(local_trainer, 3).train_clients(masked_tasks, {}))
    local_trainer.codec = make_component("codec", "quant")
    assert all(
        update.group is None
        for update in GramMatrixEngine(local_trainer, 3).train_clients([make_task(0), make_task(1)], {})
    )


def test_a_group_that_arrives_in_part_is_an_error() -> None:
    local_trainer = trainer(torch.float64, batch=4)
    updates = list(GramMatrixEngine(local_trainer, 6).train_clients([make_task(k) for k in range(6)], {}))
    with pytest.raises(ValueError, match=r"trained as one group, only \[0, 1\] have arrived"):
        collect_updates(local_trainer, updates[:2])


def test_one_step_equals_its_closed_form() -> None:
    """One sample, one step: delta W = -lr (p - e_y) x', delta b = -lr (p - e_y)."""
    local_trainer = trainer(torch.float64, batch=None)
    (update,) = GramMatrixEngine(local_trainer, 4).train_clients(
        [make_task(0, units=1, rows=np.array([2]), lr=0.5)], {}
    )
    x, y = (part[2] for part in local_trainer.federation.train.client_samples(0))
    weight, bias = (p.detach() for p in local_trainer.server.network.parameters())
    p = torch.softmax(weight @ x + bias, 0)
    p[y] -= 1
    torch.testing.assert_close(update.delta, torch.cat([(-0.5 * p[:, None] * x).flatten(), -0.5 * p]))


def test_auto_chooses_the_gram_matrix_engine_for_plain_sgd_on_linear_models() -> None:
    assert isinstance(choose_engine("auto", trainer(torch.float32, batch=4), 4)[0], GramMatrixEngine)
    for options in ({"momentum": 0.9}, {"clip": 1.0}, {"choice": "adam"}):
        assert not GramMatrixEngine.supports_trainer(trainer(torch.float32, batch=4, **options)), options
    federation = make_federation()
    assert not GramMatrixEngine.supports_trainer(
        make_trainer(federation, nn.Linear(5, 3), hooks=make_component("regulariser", "prox", mu=0.5).hooks)
    )
    assert not GramMatrixEngine.supports_trainer(
        make_trainer(federation, nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)))
    )


def test_clients_with_many_samples_use_plain_sgd() -> None:
    """The Gram matrix grows with the square of the samples; epochs make it pay."""
    local_trainer = trainer(torch.float32, batch=4)
    local_trainer.count_samples = lambda task: 5000  # type: ignore[method-assign]
    assert GramMatrixEngine(local_trainer, 4)._find_group_shape(make_task(0, units=1)) is None
    assert GramMatrixEngine(local_trainer, 4)._find_group_shape(make_task(0, units=0)) is None
    local_trainer.count_samples = lambda task: 20  # type: ignore[method-assign]
    assert GramMatrixEngine(local_trainer, 4)._find_group_shape(make_task(0, units=1)) is not None


@for_all(
    "client, units, size, max_samples",
    [
        # One step at once: 6e-5 s are 3e6 FLOPs, and n x n products of 784 + 10 numbers make 3e6 / 1588 = 43.5^2. A
        # group of 27 clients saves 26 / 27 of these seconds, 42.7^2
        ({"batch": None}, 1, (784, 10), 42),
        # 20 passes save 20 x 6e-5 x 11 / 12 s and 19 products with the weights, 19 x 4 x 7840 n / 5e10 s. They cost
        # 2 n^2 (784 + 200) / 5e10 + 19 n^2 / 1e8 s, which is more beyond 99
        ({"batch": None}, 20, (784, 10), 99),
        ({"batch": 10}, 1, (784, 10), 165),
        ({"batch": 10}, 5, (784, 10), 330),
        # counted in steps: one of four is a quarter of a pass
        ({"batch": 10, "steps": 9}, 1, (784, 10), 36),
        ({"batch": 10, "steps": 9}, 20, (784, 10), 177),
        # Above 724 rows, two Gram matrices exceed 2^20 entries: a group of one client shares no overhead
        ({"batch": 1}, 1, (1, 2), 724),
        ({"batch": 10}, 1, (1, 100), 720),
    ],
)
def test_the_largest_client_size_for_the_gram_matrix_engine(
    client: dict[str, Any], units: int, size: tuple[int, int], max_samples: int
) -> None:
    layer = SimpleNamespace(weight=torch.empty(size[::-1]))
    client_options = SimpleNamespace(**{"steps": None, **client})
    chain = DenseChainNetwork(None, [], [cast(Any, layer)])
    local_trainer: Any = SimpleNamespace(chain=chain, objective=SimpleNamespace(plain=False), client=client_options)

    def shape(n: int) -> Any:
        local_trainer.count_samples = lambda task: n
        return GramMatrixEngine(local_trainer, 4)._find_group_shape(make_task(0, units=units))

    results = shape(max_samples)
    assert shape(max_samples + 1) is None
    assert results.units == units
    assert results.n_steps == (1 if client_options.batch is None else -(-max_samples // client_options.batch))
    assert results.batch_width == (client_options.batch or -(-max_samples // 8) * 8)
