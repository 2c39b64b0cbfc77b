"""Every model with minimal widths takes equal steps in each memory layout that it supports.

torch writes out of bounds in some thin convolutions, which can end the process: the steps run in a separate one.
"""

import json
from typing import Any

import pytest
import torch
from torch import nn

from config_options import list_options, load_options, make_component
from failure_hints import failure_hint
from fedcohort.errors import OptionError
from fedcohort.flat import FlatModel
from fedcohort.rng import seeded_torch
from fedcohort.training.memory_layout import check_channels_last, uses_channels_last
from laws.test_model_laws import inputs, shape_for
from process_kills import run_in_child

SMALLEST_FRACTIONS = {"width": {"resnet8_gn": 1, "mobilenet_v2_gn": 0.01}}


def get_smallest_options(choice: str) -> dict[str, Any]:
    """Return the options of the smallest model: one unit, channel and group."""
    options = {name: value for name, value in load_options("model", choice).items() if name != "_target_"}
    for name, value in options.items():
        if isinstance(value, list):
            options[name] = [1] * len(value)
        elif isinstance(value, int):
            options[name] = 1
    return options | {name: values[choice] for name, values in SMALLEST_FRACTIONS.items() if choice in values}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Return the relative distance of each layout's step from the default layout's, by model and layout."""
    path = tmp_path_factory.mktemp("steps") / "distances.json"
    status = run_in_child(
        lambda: path.write_text(json.dumps({choice: compare(choice) for choice in list_options("model")}))
    )
    assert status == 0, "the process of the steps has ended"
    distances: dict[str, dict[str, float]] = json.loads(path.read_text())
    return distances


@pytest.mark.parametrize("choice", list_options("model"))
@failure_hint(
    "Use shapes, not strides: call `flatten` or `reshape`, never `view`, on tensors that may be channels-last."
)
def test_a_step_is_the_same_in_every_layout(choice: str, steps: dict[str, dict[str, float]]) -> None:
    assert steps[choice], "each model has a layout to compare with the default one"
    assert all(distance < 1e-5 for distance in steps[choice].values()), steps[choice]


def compare(choice: str) -> dict[str, float]:
    """Return the distances for one model; of `auto` where that is another layout than the default."""
    model = make_component("model", choice, **get_smallest_options(choice))
    plain, network = take_step(model, False)
    steps = {False: plain}  # by whether the last dimension is that of the channels
    distances = {}
    for layout in ("auto", "yes"):
        try:
            check_channels_last(layout, network, "cpu")
        except OptionError:
            continue
        last = uses_channels_last(layout, network)
        if last not in steps:
            steps[last], _ = take_step(model, last)
        distances[layout] = float((steps[last] - plain).norm() / plain.norm())
    return distances


def take_step(model: Any, last: bool) -> tuple[Any, Any]:
    """Return the gradient step of a new network on four samples, as one vector, and the network."""
    shape = shape_for(model)
    with seeded_torch(0, "weights"):
        network = model.build(shape, 5)
        x = inputs(model, 4, shape)
    x = x.contiguous(memory_format=torch.channels_last) if last and x.dim() == 4 else x
    flat = FlatModel(network, channels_last=last)
    logits = flat.logits(x).flatten(0, -2)
    loss = nn.functional.cross_entropy(logits, torch.arange(len(logits)) % 5)
    gradients = torch.autograd.grad(loss, [p for p in network.parameters() if p.requires_grad])
    return torch.cat([gradient.contiguous().flatten() for gradient in gradients]), network
