"""Another memory layout, the same numbers."""

from pathlib import Path

import pytest
import torch
from torch import nn

from agg_harness import server_only
from engine_harness import SEED
from fedcohort.data.federation import ServerSamples
from fedcohort.errors import OptionError
from fedcohort.flat import FlatModel
from fedcohort.training.memory_layout import check_channels_last, gather_rows, to_channels_last, uses_channels_last
from run_harness import run_training


def conv() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))


def test_gathering_rows_keeps_the_memory_layout() -> None:
    x = torch.randn(7, 3, 5, 4)
    last = x.contiguous(memory_format=torch.channels_last)
    rows = torch.tensor([6, 0, 3])
    assert torch.equal(gather_rows(last, rows), x[rows])
    assert gather_rows(last, rows).is_contiguous(memory_format=torch.channels_last)
    assert gather_rows(x, rows).is_contiguous()


def test_a_flat_model_is_the_same_network_in_either_layout() -> None:
    plain, last = FlatModel(conv()), FlatModel(conv(), channels_last=True)
    x = torch.randn(5, 3, 8, 8)
    torch.testing.assert_close(plain.network(x), last.network(x), atol=1e-6, rtol=0)
    assert last.parameters[0].is_contiguous(memory_format=torch.channels_last)
    state = plain.network.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in last.network.state_dict().items())
    last.network.load_state_dict({name: tensor + 1 for name, tensor in state.items()})
    assert torch.equal(last.layout.parameters[0].make_view(last.w), state["0.weight"] + 1)
    last.network(x).sum().backward()
    plain.network.load_state_dict(last.network.state_dict())
    plain.network(x).sum().backward()
    block = last.layout.parameters[0]
    torch.testing.assert_close(block.make_view(last.g), plain.parameters[0].grad)


def test_only_images_are_converted_to_channels_last() -> None:
    """Pixel (c, h, w) of a sample is at h W C + w C + c afterwards; the numbers are the same."""
    images = torch.arange(2 * 3 * 2 * 2.0).reshape(2, 3, 2, 2)
    data = server_only(images.clone(), ServerSamples(images.clone(), torch.zeros(2, dtype=torch.int64)))
    to_channels_last(data)
    assert data.proxy is not None
    for x in (data.proxy, data.server_val.x, data.server_test.x):
        assert x.stride() == (12, 1, 6, 3)
        assert torch.equal(x, images)
    rows = torch.ones(2, 5)
    flat = server_only(rows, ServerSamples(rows.clone(), torch.zeros(2, dtype=torch.int64)))
    to_channels_last(flat)
    assert flat.server_val.x.stride() == (5, 1)


CNN = ("model=cnn", "model.dense=16", "split.limit=120", "cohort=2")


@pytest.mark.parametrize("kind", ["sequential", "vectorised"])
def test_runs_in_both_memory_layouts_agree(tmp_path: Path, kind: str) -> None:
    overrides = (*CNN, "rounds=2", "agg=scaffold", f"engine={kind}")
    channels_last, contiguous = (
        run_training(tmp_path / value, *overrides, f"engine.channels_last={value}") for value in ("yes", "no")
    )
    assert channels_last.cohorts == contiguous.cohorts
    torch.testing.assert_close(channels_last.weights(), contiguous.weights(), atol=1e-5, rtol=0)


def test_channels_last_auto_applies_to_convolutional_networks() -> None:
    assert uses_channels_last("auto", conv())
    assert not uses_channels_last("auto", nn.Linear(2, 2))
    assert uses_channels_last("yes", nn.Linear(2, 2))


def test_a_resumed_cnn_ends_with_the_same_bits(tmp_path: Path) -> None:
    overrides = (*CNN, "agg=scaffold")
    uninterrupted = run_training(tmp_path / "whole", *overrides, "rounds=2")
    run_training(tmp_path / "parts", *overrides, "rounds=1")
    assert (
        run_training(tmp_path / "parts", *overrides, "rounds=2", "resume=true").last.fingerprint
        == uninterrupted.last.fingerprint
    )


def make_strided_convolution(channels: int, kernel: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, 8, kernel, stride=2, groups=groups))


def test_a_thin_strided_1x1_convolution_is_not_trained_channels_last() -> None:
    """In torch 2.13 it writes out of bounds; `tests/laws/test_layout_laws.py` trains every model's thinnest form."""
    for channels in (1, 3, 7):
        assert not uses_channels_last("auto", make_strided_convolution(channels))
    assert not uses_channels_last("auto", nn.Sequential(nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 2, 1, stride=2)))
    for safe in (
        make_strided_convolution(8),
        make_strided_convolution(4, kernel=3),
        make_strided_convolution(4, groups=2),
    ):
        assert uses_channels_last("auto", safe)
        check_channels_last("yes", safe, "cpu")
    check_channels_last("yes", make_strided_convolution(4), "gpu")
    check_channels_last("auto", make_strided_convolution(4), "cpu")


def test_channels_last_yes_is_rejected_for_an_unsafe_convolution(tmp_path: Path) -> None:
    overrides = ("model=resnet8_gn", "model.width=4", "model.groups=4", "rounds=1", "engine.channels_last=yes")
    with pytest.raises(OptionError, match=r"auto or no for this network, as torch .* in 4.shortcut.0, a 1x1"):
        run_training(tmp_path, *overrides, "partition=iid", "label_noise=none")


FORCE = "engine.force=true"  # on machines that emulate bf16


@pytest.mark.parametrize("kind", ["sequential", "vectorised"])
def test_bf16_results_are_near_but_not_equal_to_float32(tmp_path: Path, kind: str) -> None:
    overrides = (*CNN, "rounds=2", f"engine={kind}", "client.lr=0.02")
    float32_run, bf16_run = (
        run_training(tmp_path / precision, *overrides, f"engine.precision={precision}", FORCE)
        for precision in ("float32", "bf16")
    )
    difference = float((float32_run.weights() - bf16_run.weights()).norm() / float32_run.weights().norm())
    assert 1e-4 < difference < 0.02, "float32 rounds to 1e-7"
    assert bf16_run.weights().dtype == torch.float64  # of float32 parameters
