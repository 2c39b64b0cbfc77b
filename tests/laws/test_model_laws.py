"""Every model has weights fixed by the seed, one logit per class (and position), and a flat parameter vector."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.errors import IncompatibleConfig
from fedcohort.flat import FlatModel
from fedcohort.rng import seeded_torch
from global_rng_guard import forbid_global_rng

SHAPES = ((3, 32, 32), (9, 128), (20,))


def shape_for(model: Any) -> tuple[int, ...]:
    """Return the first input shape that the model accepts."""
    accepted_shapes = [shape for shape in SHAPES if build_or_refuse(model, shape)[0] is not None]
    assert accepted_shapes, f"{model} takes none of {SHAPES}: put its shape there"
    return accepted_shapes[0]


def build_or_refuse(model: Any, shape: tuple[int, ...]) -> tuple[nn.Module | None, str]:
    """Return the network for two classes, or the reason of its rejection."""
    try:
        return model.build(shape, 2), ""
    except IncompatibleConfig as error:
        return None, str(error)


@pytest.fixture(scope="module", params=list_options("model"))
def built(request: pytest.FixtureRequest) -> tuple[Any, tuple[int, ...], nn.Module]:
    model = make_component("model", request.param)
    shape = shape_for(model)
    return model, shape, build(model, shape, 0)


def build(model: Any, shape: tuple[int, ...], seed: int) -> nn.Module:
    with seeded_torch(seed, "weights"):
        network = model.build(shape, 5)
    assert isinstance(network, nn.Module)
    return network


def inputs(model: Any, n: int, shape: tuple[int, ...]) -> Tensor:
    """Return inputs for the model: real numbers, or tokens below the number of classes."""
    return torch.randint(0, 2, (n, *shape)) if model.reads_symbols else torch.rand(n, *shape)


def vector(network: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach()


@failure_hint("Draw initial weights from torch's generator, which the run seeds.")
def test_initial_weights_depend_only_on_the_seed(built: Any) -> None:
    model, shape, network = built
    with forbid_global_rng():
        repeat = build(model, shape, 0)
    assert torch.equal(vector(repeat), vector(network))
    assert not torch.equal(vector(build(model, shape, 1)), vector(network))


@failure_hint("Return logits [batch, n_classes].")
def test_the_output_has_a_logit_for_each_class(built: Any) -> None:
    model, shape, network = built
    logits = network(inputs(model, 3, shape))
    assert logits.shape == ((3, *shape, 5) if model.per_position else (3, 5))
    assert torch.isfinite(logits).all()


@failure_hint("Use each parameter in `forward`, and register each as a parameter.")
def test_the_model_fits_a_flat_vector_and_every_parameter_learns(built: Any) -> None:
    """The network computes with the values of the vector, and every parameter has a gradient."""
    model, shape, _ = built
    flat = FlatModel(build(model, shape, 0))
    x, y = inputs(model, 4, shape), torch.tensor([0, 1, 2, 3])
    before = flat.logits(x).detach()
    targets = y.repeat_interleave(shape[0]) if model.per_position else y
    nn.functional.cross_entropy(flat.logits(x).flatten(0, -2), targets).backward()
    without_gradient = [block.name for block in flat.layout.parameters if not block.make_view(flat.g).any()]
    assert without_gradient == []
    with torch.no_grad():
        flat.w.mul_(1.5)
    assert not torch.allclose(flat.logits(x), before)


@pytest.mark.parametrize("shape", [(4, 7, 5, 3), (3, 2, 2)])
@failure_hint("Raise OptionError that names the model and the shapes that it takes.")
def test_unsuitable_inputs_are_rejected_by_name_or_accepted(built: Any, shape: tuple[int, ...]) -> None:
    model, *_ = built
    network, refusal = build_or_refuse(model, shape)
    if network is None:
        assert refusal.startswith("model=")
        assert refusal.endswith(f"the inputs are {list(shape)}: choose another model")
    else:
        assert network(torch.zeros(2, *shape)).shape == (2, 2)
