"""Helpers for tests of engines: three clients, a network and a trainer in a given precision."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from config_options import make_component
from fedcohort.dataset.base import Raw
from fedcohort.flat import FlatModel
from fedcohort.hook import ClientHook
from fedcohort.model.base import Model
from fedcohort.rng import seeded_torch
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.local_method import LocalTrainingMethod

SEED = 3


def make_federation(n: int = 90, clients: int = 3, dtype: torch.dtype = torch.float32) -> Any:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 5)).astype(np.float32), rng.integers(0, 3, n)
    raw = Raw("toy", x, y, x[:30], y[:30], 3)
    parts = (make_component("partition", "iid"), make_component("label_noise", "none"))
    federation = build_federation(raw, SplitOptions(*parts, seed=0, clients=clients, server_val=0.1, client_val=0.1))
    for part in (federation.train, federation.val):
        object.__setattr__(part, "x", part.x.to(dtype))
    return federation


def make_network(dtype: torch.dtype = torch.float32, *layers: nn.Module) -> nn.Sequential:
    with seeded_torch(SEED, "weights"):
        return nn.Sequential(nn.Linear(5, 8), *layers, nn.ReLU(), nn.Linear(8, 3)).to(dtype)


def make_trainer(
    federation: Any, network: nn.Module, objective: str = "ce", hooks: Sequence[ClientHook] = (), **client: Any
) -> Any:
    choice = client.pop("choice", "sgd")
    server, worker = FlatModel(copy.deepcopy(network)), FlatModel(copy.deepcopy(network))
    parts = (
        make_component("objective", objective),
        make_component("client", choice, **client),
        make_component("codec", "none"),
    )
    return LocalTrainer(server, worker, federation, LocalTrainingMethod(*parts, hooks), SEED)


class DropoutModel(Model):
    """Model with dropout, which draws from the generator of its device."""

    def build(self, shape: tuple[int, ...], n_classes: int) -> nn.Module:
        n = int(torch.Size(shape).numel())
        return nn.Sequential(nn.Flatten(), nn.Linear(n, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, n_classes))


def make_task(
    client: int,
    units: int = 2,
    round: int = 4,
    lr: float = 0.1,
    rows: Any = None,
    stored: Any = None,
    loss_after: bool = False,
) -> Any:
    return ClientTask(round, client, rows, units, units, lr, 1.0, stored or {}, needs_final_loss=loss_after)


def flatten_parameters(network: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])
