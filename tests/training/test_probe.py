"""Two samples through a network and an objective before a run."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from case_loop import for_all
from fedcohort.errors import ComponentError
from fedcohort.objective.ce import CrossEntropy
from fedcohort.training.probe import _copy_two_samples, check_network_outputs, check_objective_results
from federation_harness import make_federation

FEDERATION = make_federation()


class Net(nn.Module):
    """A linear layer with batch norm; `change` is what a user does to inputs and logits."""

    def __init__(self, inputs: Any = None, logits: Any = None) -> None:
        super().__init__()
        self.inputs, self.logits = inputs or (lambda net, x: x), logits or (lambda x: x)
        self.layer, self.norm, self.unused = nn.Linear(1, 10), nn.BatchNorm1d(10), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        return self.logits(self.norm(self.layer(self.inputs(self, x))))


def test_the_network_check_changes_neither_statistics_nor_generators() -> None:
    """An unused head is allowed."""

    def draw(net: nn.Module, x: Tensor) -> Tensor:
        return x + torch.randn(1) + float(np.random.rand())  # noqa: NPY002

    network, rows = Net(draw), FEDERATION.server_test.x.clone()
    state_before = {name: value.clone() for name, value in network.state_dict().items()}
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    check_objective_results(CrossEntropy(), check_network_outputs(network, FEDERATION), FEDERATION)
    assert all(torch.equal(value, state_before[name]) for name, value in network.state_dict().items())
    assert network.training
    assert torch.equal(torch_state, torch.get_rng_state())
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert numpy_state["pos"] == after["pos"]
    assert np.array_equal(numpy_state["key"], after["key"])
    assert torch.equal(rows, FEDERATION.server_test.x)


@for_all(
    "network, message",
    [
        (Net(lambda net, x: x.sub_(0.5)), "eval mode must not change its inputs"),
        (Net(lambda net, x: x.sub_(0.5) if net.training else x), "train mode must not change its inputs"),
        (Net(logits=lambda x: (x, None)), "forward in eval mode must return a tensor of logits, got a tuple"),
        (Net(logits=lambda x: {"logits": x}), "forward in eval mode must return a tensor of logits, got a dict"),
        (Net(logits=lambda x: x[:, :3]), "must be a tensor \\[2, 10\\]"),
        (Net(logits=lambda x: x.mean(0)), "must be a tensor \\[2, 10\\]"),
        (Net(logits=Tensor.detach), "detached"),
        (nn.Flatten(), "must have a trainable parameter"),
        (Net().requires_grad_(False), "must have a trainable parameter"),
        (nn.LazyLinear(10), "no lazy layer"),
        (Net().half(), "float32"),
    ],
)
def test_an_invalid_network_is_rejected_with_the_reason(network: nn.Module, message: str) -> None:
    with pytest.raises(ComponentError, match=message):
        check_network_outputs(network, FEDERATION)


@pytest.mark.parametrize(
    ("per_sample", "message"),
    [
        (lambda self, x, y, z: F.cross_entropy(x, y), "a pair"),
        (lambda self, x, y, z: (F.cross_entropy(x, y),) * 2, "must be a tensor \\[2\\]"),
        (lambda self, x, y, z: (F.cross_entropy(x, y, reduction="none").detach(),) * 2, "gradient"),
        (
            lambda self, x, y, z: (F.cross_entropy(x, y.zero_(), reduction="none"),) * 2,
            "must not change logits and labels",
        ),
    ],
)
def test_an_invalid_objective_is_rejected_with_the_reason(per_sample: Any, message: str) -> None:
    objective: Any = type("Mine", (CrossEntropy,), {"per_sample": per_sample})()
    with pytest.raises(ComponentError, match=message):
        check_objective_results(objective, check_network_outputs(Net(), FEDERATION), FEDERATION)


def test_the_network_check_uses_two_different_samples() -> None:
    rows = torch.tensor([[1.0], [2.0], [3.0]])
    assert [_copy_two_samples(rows[:n]).flatten().tolist() for n in (1, 2, 3)] == [[1, 1], [1, 2], [1, 2]]
