"""Every augmentation keeps shape, dtype and layout of images, and depends on its generator only."""

from typing import Any

import numpy as np
import pytest
import torch

from config_options import list_options, make_component
from failure_hints import failure_hint
from global_rng_guard import forbid_global_rng


@pytest.fixture(params=list_options("augmentation"))
def augmentation(request: pytest.FixtureRequest) -> Any:
    return make_component("augmentation", request.param)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(7, 3, 9, 6), (1, 1, 8, 8), (0, 3, 9, 6)])
@failure_hint("Return images of the same shape, dtype and memory format.")
def test_images_keep_their_shape_type_and_layout(augmentation: Any, shape: tuple[int, ...], last: bool) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    before = x.clone()
    with forbid_global_rng():
        first, repeat = (augmentation.change(x, np.random.default_rng(1)) for _ in range(2))
    assert (first.shape, first.dtype, first.stride()) == (x.shape, x.dtype, x.stride())
    assert torch.equal(first, repeat)
    assert torch.equal(x, before), "the given ones are left alone"
    assert first.isfinite().all()


@failure_hint("Draw from `rng`, and set `identity` to whether `change` returns its argument.")
def test_passes_differ_unless_the_augmentation_changes_nothing(augmentation: Any) -> None:
    x, rng = torch.arange(6 * 64.0).reshape(6, 1, 8, 8), np.random.default_rng(2)
    assert torch.equal(augmentation.change(x, rng), augmentation.change(x, rng)) == augmentation.identity
