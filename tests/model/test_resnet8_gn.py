"""ResNet-8, and residual networks in runs: the engine that trains them, and the notice on batch norm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from config_options import make_component
from engine_harness import make_task, make_trainer
from fedcohort.dataset.base import Raw
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.model.resnet8_gn import ResNet8
from fedcohort.rng import seeded_torch
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from fedcohort.training.engines import choose_engine
from run_harness import run_training, startup_notices


def network_of(**options: Any) -> nn.Sequential:
    with seeded_torch(1, "weights"):
        network: nn.Sequential = make_component("model", "resnet8_gn", **options).build((2, 8, 8), 3)
    return network


def test_the_size_of_resnet8_by_hand() -> None:
    """464 in the stem, 4,672, 14,528 and 57,728 in the stages with their norms and shortcuts, 650 at the end."""
    assert 27 * 16 + 32 + (2 * 2304 + 64) + (4608 + 9216 + 128 + 576) + (18432 + 36864 + 256 + 2176) + 650 == 78_042
    network = make_component("model", "resnet8_gn").build((3, 32, 32), 10)
    assert sum(p.numel() for p in network.parameters()) == 78_042
    half_width = make_component("model", "resnet8_gn", width=8).build((3, 32, 32), 10)
    blocks = (2 * 576 + 32) + (1152 + 2304 + 64 + 128 + 32) + (4608 + 9216 + 128 + 512 + 64)
    assert sum(p.numel() for p in half_width.parameters()) == 27 * 8 + 16 + blocks + 330
    assert sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in network.modules()) == 7


def test_a_residual_block_is_that_of_the_paper() -> None:
    """The first block of the second stage, written out: x is 16 channels of 8 x 8, y is 32 of 4 x 4."""
    block: Any = network_of()[4]
    x = torch.rand(2, 16, 8, 8)
    inner = F.relu(F.group_norm(F.conv2d(x, block.conv1.weight, stride=2, padding=1), 8))
    inner = F.group_norm(F.conv2d(inner, block.conv2.weight, padding=1), 8)
    shortcut = F.group_norm(F.conv2d(x, block.shortcut[0].weight, stride=2), 8)
    torch.testing.assert_close(block(x), F.relu(inner + shortcut))
    first: Any = network_of()[3]
    assert not list(first.shortcut.parameters()), "the shape stays: the shortcut is the identity"


def images(clients: int = 3) -> Any:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2, 8, 8)).astype(np.float32), rng.integers(0, 3, 60)
    parts = (make_component("partition", "iid"), make_component("label_noise", "none"))
    federation = build_federation(
        Raw("toy", x, y, x[:9], y[:9], 3), SplitOptions(*parts, seed=0, clients=clients, server_val=0.1, client_val=0.1)
    )
    federation.train.x.data = federation.train.x.double()
    return federation


def test_engines_agree_on_resnet8() -> None:
    """In double precision, to rounding; clients have one sample, three, or all."""

    def train(kind: str) -> tuple[list[torch.Tensor], str]:
        engine, reason = choose_engine(kind, make_trainer(images(), network_of().double(), batch=4), 3)
        rows = (np.array([2]), np.array([0, 3, 5]), None)
        return [u.delta for u in engine.train_clients([make_task(k, rows=r) for k, r in enumerate(rows)], {})], reason

    (auto_run, engine_reason), (vectorised_run, _) = train("auto"), train("vectorised")
    assert engine_reason == (
        "sequential: hand-written gradients of the dense layers, autograd before them, one client at a time"
    )
    for a, b in zip(auto_run, vectorised_run, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


def test_with_batch_norm_clients_are_trained_sequentially() -> None:
    trainer = make_trainer(images(), network_of(norm="batch").double(), batch=4)
    engine, reason = choose_engine("vectorised", trainer, 3)
    assert engine is trainer
    assert reason == "sequential: the vectorised engine does not support batch norm"
    (update,) = engine.train_clients([make_task(0, rows=np.arange(9))], {})
    assert torch.isfinite(update.delta).all()


def test_a_run_with_resnet8_completes(tmp_path: Path) -> None:
    overrides = ("model=resnet8_gn", "split.limit=200", "clients=4", "cohort=3", "client.epochs=1", "rounds=1")
    run = run_training(tmp_path, *overrides, "heterogeneity=iid", "agg=scaffold")
    assert run.info.n_params == 78_042 - 2 * 9 * 16  # grey: one channel instead of three
    assert run.last.metrics["test/loss"] != run.reports[0].metrics["test/loss"]
    assert np.isfinite(run.last.metrics["test/loss"])


def test_batch_norm_gives_a_notice_and_group_norm_does_not() -> None:
    notices = {
        norm: startup_notices("model=resnet8_gn", f"model.norm={norm}", "agg=scaffold") for norm in ("batch", "group")
    }
    assert sum("the network has batch norm" in line for line in notices["batch"]) == 1
    assert not any("batch norm" in line for line in notices["group"])


def test_incompatible_options_are_rejected() -> None:
    with pytest.raises(
        OptionError, match=r"^groups must be a divisor of every layer's channels \(16, 32, 64\), got 12$"
    ):
        ResNet8("group", 12, 16)
    with pytest.raises(OptionError, match=r"^groups must be a divisor of every layer's channels \(4, 8, 16\), got 8$"):
        ResNet8("group", 8, 4)
    with pytest.raises(
        IncompatibleConfig, match=r"^model=resnet8_gn needs images .* at least 4x4, .* \[60\]: .* model$"
    ):
        make_component("model", "resnet8_gn").build((60,), 10)
