"""Local SGD and its schedule."""

import numpy as np
import pytest
import torch

from agg_harness import collect_updates, make_arrived, make_update
from config_options import make_component
from fedcohort.training.response import GradientCoefficientNorms


def test_the_learning_rate_halves_at_the_milestones() -> None:
    # UCB-CS: .05, halved at rounds 300 and 600
    client = make_component("client", "sgd", lr=0.05, milestones=[300, 600], factor=0.5)
    assert [client.lr_at(t) for t in (0, 299, 300, 599, 600)] == pytest.approx([0.05, 0.05, 0.025, 0.025, 0.0125])


def test_the_learning_rate_decays_exponentially() -> None:
    # FedMABA: .1 x .999^t
    assert make_component("client", "sgd", lr=0.1, decay=0.999).lr_at(1000) == pytest.approx(0.1 * 0.999**1000)


def test_a_learning_rate_never_decays_to_zero() -> None:
    """.1 x .1^400 is 0 in floating point, and FedNova, q-FFL and SCAFFOLD divide by learning rates."""
    client = make_component("client", "sgd", lr=0.1, decay=0.1, momentum=0.9)
    assert client.lr_at(400) == 1e-30
    assert GradientCoefficientNorms(client, ())(3, client.lr_at(400)) == pytest.approx(1 + 1.9 + 2.71)
    updates = [make_update(k, [0.0, 0.0], lr=client.lr_at(400)) for k in range(2)]
    agg = make_component("agg", "qffl")
    signals = {"loss": np.ones(2), "lr": np.full(2, client.lr_at(400))}
    direction, _ = agg.direction(None, make_arrived(collect_updates(agg, updates), signals, agg.needs))
    assert direction.displacement.tolist() == [0, 0]


@pytest.mark.parametrize(("option", "value"), [("momentum", 0.9), ("weight_decay", 1e-4), ("clip", 1.0)])
def test_only_sgd_without_extra_options_is_plain(option: str, value: float) -> None:
    assert make_component("client", "sgd").plain
    assert not make_component("client", "sgd", **{option: value}).plain


def test_client_sgd_agrees_with_torchs_sgd() -> None:
    y = torch.nn.Parameter(torch.zeros(2))
    optimizer = make_component("client", "sgd", momentum=0.9).optimizer(y, 0.25)
    assert isinstance(optimizer, torch.optim.SGD)
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert optimizer.param_groups[0]["momentum"] == 0.9
