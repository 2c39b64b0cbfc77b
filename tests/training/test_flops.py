"""FLOPs of a forward pass: closed forms by layer, and torch's own counter on every network."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from case_loop import for_all
from config_options import list_options, make_component
from cost_harness import make_federation
from fedcohort.training.flops import count_forward_flops
from fedcohort.training.recurrent import disable_fused_kernels
from laws.test_model_laws import inputs, shape_for
from optional_values import not_none
from user_networks import NETWORKS


class LastStep(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        steps: Tensor = self.layer(x)[0]
        return steps[:, -1]


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = self.layer(x, x, x)[0]
        return mixed


class Functional(nn.Module):
    """Products without a layer: with matrices, then with vectors."""

    def forward(self, x: Tensor) -> Tensor:
        mixed = torch.einsum("nij,nkj->nik", x, x) @ x
        last = mixed[0] @ x[0, 0]
        return torch.dot(last, last) + torch.addmv(last, mixed[0], x[0, 0])


class Pairs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Bilinear(3, 3, 4)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layer(x, x)
        return scores


def count(network: nn.Module, x: Tensor) -> float:
    federation: Any = SimpleNamespace(server_test=SimpleNamespace(x=x))
    return count_forward_flops(network, federation)


@pytest.mark.parametrize("training", [True, False])
def test_the_flops_of_dense_layers_by_hand(training: bool) -> None:
    """5 inputs to 4, to 3: 2 (5 * 4 + 4 * 3) FLOPs of one sample. The network is left as it was."""
    norm = nn.BatchNorm1d(4)
    network = nn.Sequential(nn.Linear(5, 4), norm, nn.Linear(4, 3)).train(training)
    assert count_forward_flops(network, make_federation()) == 2 * (5 * 4 + 4 * 3)
    assert network.training == training
    assert int(not_none(norm.num_batches_tracked)) == 0


@for_all(
    "network, shape, flops",
    [
        # 4 filters of 3 x 3 x 3 weights at 6 x 6 places; two groups have half of the weights
        (nn.Conv2d(3, 4, 3), (3, 8, 8), 2 * 4 * 27 * 36),
        (nn.Conv2d(4, 4, 3, groups=2), (4, 8, 8), 2 * 4 * 18 * 36),
        # 7 steps, each with 4 or 3 gates of 5 units that read 3 inputs and 5 states
        (LastStep(nn.LSTM(3, 5, batch_first=True)), (7, 3), 7 * 2 * 4 * 5 * (3 + 5)),
        (LastStep(nn.GRU(3, 5, batch_first=True)), (7, 3), 7 * 2 * 3 * 5 * (3 + 5)),
        # 4 projections of 8 x 8 at 7 places, then scores and mixture of 2 heads of 4, 7 x 7 each
        (SelfAttention(), (7, 8), 2 * 4 * 8 * 8 * 7 + 2 * 2 * 2 * 7 * 7 * 4),
        # the same by its fused kernels in an encoder's layer, then 8 -> 16 -> 8
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (7, 8), 5152 + 2 * 2 * 8 * 16 * 7),
        # [6 x 5] [5 x 6], [6 x 6] [6 x 5], [6 x 5] [5], [6] [6], [6 x 5] [5]
        (Functional(), (6, 5), 2 * 2 * 6 * 6 * 5 + 2 * 6 * 5 + 2 * 6 + 2 * 6 * 5),
        (Pairs(), (3,), 2 * 3 * 3 * 4),
    ],
)
def test_the_flops_of_each_layer_type_equal_their_closed_form(
    network: nn.Module, shape: tuple[int, ...], flops: int
) -> None:
    assert count(network, torch.zeros(4, *shape)) == flops


@pytest.mark.parametrize("was_enabled", [True, False])
def test_the_setting_of_torchs_fused_attention_is_restored(was_enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = torch.backends.mha
    monkeypatch.setattr(backend, "_is_fastpath_enabled", was_enabled)
    count_forward_flops(nn.Linear(5, 4), make_federation())
    assert backend.get_fastpath_enabled() == was_enabled


def test_an_embedding_takes_no_flops() -> None:
    """10 symbols of 3 numbers each: only the layer after them multiplies, 30 x 4 weights."""
    network = nn.Sequential(nn.Embedding(20, 3), nn.Flatten(), nn.Linear(30, 4))
    assert count(network, torch.zeros(4, 10, dtype=torch.int64)) == 2 * 30 * 4


def test_all_networks_have_the_counts_of_torchs_counter() -> None:
    """Our count leaves out the import of torch's compiler; attention, which torch does not count, has a closed form."""
    models = {choice: make_component("model", choice) for choice in list_options("model")}
    models |= {name: make_component("model", "module", **NETWORKS[name]) for name in NETWORKS if name != "Attention"}
    for name, model in models.items():
        shape = (1, 8, 8) if name in NETWORKS else shape_for(model)
        network, x = model.build(shape, 5).eval(), inputs(model, 1, shape)
        with disable_fused_kernels(network), FlopCounterMode(display=False) as counter, torch.no_grad():
            network(torch.zeros_like(x))
        assert count(network, x) == counter.get_total_flops() > 0, name
