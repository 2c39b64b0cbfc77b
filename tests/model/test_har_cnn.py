"""FedBalancer's network for UCI-HAR."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from config_options import make_component
from fedcohort.errors import IncompatibleConfig
from fedcohort.rng import seeded_torch
from run_harness import run_training

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "uci_har"


def build(seed: int = 0, n_classes: int = 6) -> Any:
    with seeded_torch(seed, "weights"):
        return make_component("model", "har_cnn").build((9, 128), n_classes)


def test_the_har_cnn_has_the_size_of_the_paper() -> None:
    """9 x 16 x 192 + 192, 32 x 192 x 256 + 256 and 256 x 6 + 6 parameters of four bytes."""
    network = build()
    assert sum(p.numel() for p in network.parameters()) == 1_602_502
    assert sum(p.numel() * p.element_size() for p in network.parameters()) == 6_410_008
    assert network(torch.zeros(3, 9, 128)).shape == (3, 6)
    assert network[:5](torch.zeros(3, 9, 128)).shape == (3, 192, 1, 32)


@pytest.mark.parametrize(("position", "receptive_field"), [(0, range(8)), (64, range(56, 72)), (127, range(119, 128))])
def test_an_even_kernel_sees_seven_samples_back_and_eight_ahead(position: int, receptive_field: range) -> None:
    """With a kernel of ones, output t is the sum of the inputs t - 7 to t + 8: an impulse at p is in p - 8 to p + 7."""
    network = build()
    nn.init.ones_(network[2].weight)
    x = torch.zeros(1, 9, 128)
    x[0, 4, position] = 1
    response = network[:4](x)[:, :, 0]
    expected = torch.zeros(128)
    expected[list(receptive_field)] = 1
    assert torch.equal(response, expected.expand(1, 192, 128))


def test_pooling_takes_the_largest_of_four_and_the_dense_layer_reads_channel_by_channel() -> None:
    network = build()
    h = torch.arange(192 * 128, dtype=torch.float32).reshape(1, 192, 1, 128)
    assert torch.equal(network[4:6](h)[0], torch.arange(3, 192 * 128, 4, dtype=torch.float32))


def test_initial_kernels_are_glorot_uniform_and_biases_zero() -> None:
    """Variance bound^2 / 3, within 5 standard errors (4/5)^0.5 / n^0.5 of it; the largest weight is close below."""
    network = build()
    fans = {2: (9 * 16, 192 * 16), 6: (192 * 32, 256), 8: (256, 6)}
    for layer, (fan_in, fan_out) in fans.items():
        weight, bias = network[layer].weight.detach(), network[layer].bias
        bound = math.sqrt(6 / (fan_in + fan_out))
        assert 0.99 * bound < weight.abs().max() <= bound * (1 + 1e-6)
        assert weight.var().item() == pytest.approx(bound**2 / 3, rel=5 * math.sqrt(0.8 / weight.numel()))
        assert not bias.any()


def test_the_weights_of_the_har_cnn_depend_on_the_seed() -> None:
    def weights(seed: int) -> Tensor:
        return nn.utils.parameters_to_vector(build(seed).parameters())

    assert torch.equal(weights(3), weights(3))
    assert not torch.equal(weights(3), weights(4))


@pytest.mark.parametrize("shape", [(9, 127), (6, 128), (128, 9), (1, 28, 28), (1152,)])
def test_the_har_cnn_rejects_other_window_shapes(shape: tuple[int, ...]) -> None:
    refusal = rf"model=har_cnn needs windows .* of \[9, 128\].* the inputs are \[{', '.join(map(str, shape))}\]"
    with pytest.raises(IncompatibleConfig, match=refusal):
        make_component("model", "har_cnn").build(shape, 6)


def test_the_har_cnn_trains_on_the_real_windows(tmp_path: Path) -> None:
    """One round of FedBalancer's settings on a twelfth of the data: 21 people, strangers at the server."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    data = ("dataset=uci_har", f"dataset.path={SHARED}", "heterogeneity=natural", "clients=null", "split.limit=630")
    client = ("client.epochs=1", "client.batch=10", "client.lr=0.005")
    run = run_training(tmp_path, *data, *client, "model=har_cnn", "cohort=5", "rounds=1")
    first, last = (run.reports[step].metrics for step in (0, 1))
    assert (len(run.info.n_train), len(run.reports), len(run.cohorts[0])) == (21, 2, 5)
    assert last["test/loss"] < first["test/loss"]
    assert 1 / 6 < last["test/acc"] <= 1
    assert last["comm/up_bytes"] == 5 * 6_410_008
    assert not [name for name in last if name.startswith("clients/acc")]
    assert run.info.tags["inputs"].endswith("; only the server holds test rows: no metrics clients/acc_*")
