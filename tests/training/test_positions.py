"""Any objective of single targets is one of samples with a target for each place."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from config_options import list_options, make_component
from engine_harness import SEED, make_task, make_trainer
from fedcohort.data.targets import ONE_CLASS, UNLABELLED_POSITION, PerPositionTargets
from fedcohort.dataset.base import Raw
from fedcohort.rng import seeded_torch
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from fedcohort.training.engines import choose_engine
from fedcohort.training.positions import adapt_objective

PLACES = PerPositionTargets((0, 1))


@pytest.fixture(params=list_options("objective"))
def objective(request: pytest.FixtureRequest) -> Any:
    return make_component("objective", request.param)


def test_with_one_class_per_sample_the_objective_is_unchanged(objective: Any) -> None:
    assert adapt_objective(ONE_CLASS, objective) is objective


def test_a_samples_loss_is_the_mean_over_its_positions(objective: Any) -> None:
    draws = torch.Generator().manual_seed(0)
    logits, reference = torch.randn(3, 4, 5, generator=draws), torch.randn(3, 4, 5, generator=draws).softmax(2)
    y = torch.tensor(
        [
            [0, 1, 2, 3],
            [4, UNLABELLED_POSITION, 2, UNLABELLED_POSITION],
            [UNLABELLED_POSITION, UNLABELLED_POSITION, UNLABELLED_POSITION, 1],
        ]
    )
    adapted = adapt_objective(PLACES, objective)
    assert (adapted.plain, adapted.uses_reference, adapted.max_bounded_loss) == (
        False,
        objective.uses_reference,
        objective.max_bounded_loss,
    )
    assert adapted.minimises_mean == objective.minimises_mean
    value, plain = adapted.per_sample(logits, y, reference if adapted.uses_reference else None)
    for j in range(3):
        is_labelled = y[j] > UNLABELLED_POSITION
        z = reference[j, is_labelled] if adapted.uses_reference else None
        expected_objective, entropy = objective.per_sample(logits[j, is_labelled], y[j, is_labelled], z)
        assert float(value[j]) == pytest.approx(float(expected_objective.mean()), rel=1e-5)
        assert float(plain[j]) == pytest.approx(float(entropy.mean()), rel=1e-5)
    assert torch.equal(adapted.transform_mean(value.mean()), objective.transform_mean(value.mean()))


class Bigrams(nn.Module):
    """Predicts the next token from the current token only, so that every engine can train it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.dense = nn.Embedding(6, 4), nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.dense(self.embedding(x.long()))
        return logits


def test_dense_layers_are_trained_on_each_position() -> None:
    """They look like a perceptron's, whose gradients are written by hand for one class a sample."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 5, 4)).astype(np.float32), rng.integers(-1, 6, (80, 5))
    raw = Raw("toy", x, y, x[:20], y[:20], 6, targets=PLACES)
    deal = (make_component("partition", "iid"), make_component("label_noise", "none"))
    federation = build_federation(raw, SplitOptions(*deal, seed=0, clients=4, server_val=0.1, client_val=0.1))
    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
    trainer = make_trainer(federation, network, batch=6)
    losses = trainer.train(make_task(1), {}).sample_loss
    assert np.isfinite(losses).all()


@pytest.mark.parametrize(
    "objective_and_hooks", [("ce", ()), ("flash_robust", ()), ("gce", make_component("agg", "scaffold").hooks)]
)
def test_per_position_training_is_equal_in_parallel_and_one_by_one(objective_and_hooks: tuple[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (80, 5)), rng.integers(-1, 6, (80, 5))
    raw = Raw("toy", x, y, x[:20], y[:20], 6, targets=PLACES)
    deal = (make_component("partition", "iid"), make_component("label_noise", "none"))
    federation = build_federation(raw, SplitOptions(*deal, seed=0, clients=4, server_val=0.1, client_val=0.1))
    with seeded_torch(SEED, "weights"):
        network = Bigrams().double()
    trainer = make_trainer(federation, network, *objective_and_hooks, batch=6)
    down = {"c": torch.linspace(-1, 1, trainer.server.layout.n_params, dtype=torch.float64)}
    tasks = [make_task(k, loss_after=True) for k in range(4)]
    for a, b in zip(
        trainer.train_clients(tasks, down),
        choose_engine("vectorised", trainer, 3)[0].train_clients(tasks, down),
        strict=True,
    ):
        torch.testing.assert_close(a.delta, b.delta, atol=1e-10, rtol=0)
        np.testing.assert_allclose(a.sample_loss, b.sample_loss, atol=1e-10)
        assert a.loss_after == pytest.approx(b.loss_after, abs=1e-10)
