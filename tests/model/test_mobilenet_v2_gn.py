"""MobileNetV2: its size, and weights that come from a file."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config_options import make_component
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.model.mobilenet_v2_gn import MobileNetV2
from fedcohort.rng import seeded_torch

SHAPE = (3, 32, 32)
TINY: dict[str, Any] = {"width": 0.1}


def build(n_classes: int = 10, seed: int = 0, shape: tuple[int, ...] = SHAPE, **options: Any) -> nn.Module:
    with seeded_torch(seed, "weights"):
        network: nn.Module = make_component("model", "mobilenet_v2_gn", **options).build(shape, n_classes)
    return network


def size(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def test_mobilenet_v2_has_the_size_of_the_paper() -> None:
    """3,504,872 with ImageNet's 1,000 classes ("3.4 M" in Table 4), 990 x 1,281 fewer with ten."""
    assert size(build(1000)) == 3_504_872
    assert size(build()) == size(build(norm="batch")) == 3_504_872 - 990 * 1281 == 2_236_682


@pytest.mark.parametrize(
    ("width", "stem", "last", "million"), [(0.35, 16, 1280, 1.677), (0.5, 16, 1280, 1.969), (1.4, 48, 1792, 6.109)]
)
def test_channel_widths_are_rounded_as_by_the_authors(width: float, stem: int, last: int, million: float) -> None:
    """Parameters in millions with 1,000 classes; lists of such networks have 1.68, 1.97 and 6.11."""
    model: Any = make_component("model", "mobilenet_v2_gn", width=width)
    assert (model.layer_channels[0], model.layer_channels[-1]) == (stem, last)
    assert size(model.build(SHAPE, 1000)) / 1e6 == pytest.approx(million, abs=5e-4)
    assert all(channels % 8 == 0 and channels >= 0.9 * width * 16 for channels in model.layer_channels)


def test_images_are_halved_five_times() -> None:
    network: Any = build(**TINY)
    for side in (17, 28, 32):
        assert network.features(torch.zeros(1, 3, side, side)).shape[2:] == (1, 1)
    assert network.features(torch.zeros(1, 3, 224, 224)).shape[2:] == (7, 7)
    assert build(4, shape=(1, 64, 48), **TINY)(torch.rand(2, 1, 64, 48)).shape == (2, 4)


def test_a_residual_is_added_where_the_shape_stays() -> None:
    """Stages have 1, 2, 3, 4, 3, 3, 1 blocks: all but the first of each, which changes channels."""
    blocks = [m for m in build(**TINY, norm="batch").modules() if hasattr(m, "is_residual")]
    assert len(blocks) == 17
    block: Any = build().features[3]  # type: ignore[index]
    x = torch.rand(2, 24, 8, 8)
    torch.testing.assert_close(block(x), x + block.conv(x))
    assert sum(bool(b.is_residual) for b in build().modules() if hasattr(b, "is_residual")) == 10


def test_an_inverted_residual_block_is_that_of_the_paper() -> None:
    """The second block of the second stage, written out; and a first stage's, which has no first convolution."""
    features: Any = build().features
    block, first = features[3].conv, features[1].conv
    x = torch.rand(2, 24, 8, 8)
    inner = F.relu6(F.group_norm(F.conv2d(x, block[0][0].weight), 8))
    inner = F.relu6(F.group_norm(F.conv2d(inner, block[1][0].weight, padding=1, groups=144), 8))
    torch.testing.assert_close(block(x), F.group_norm(F.conv2d(inner, block[2].weight), 8))
    assert (len(block), len(first), first[0][0].groups) == (4, 3, 32)
    assert [features[i].conv[-3][0].stride[0] for i in range(1, 18)] == [1, 2, 1, 2, 1, 1, 2, *[1] * 6, 2, 1, 1, 1]


def test_initial_weights_have_the_right_distribution() -> None:
    """Variances 2 / fan_out and 0.01^2, the sample's own within 5 sqrt(2 / n) of it; the mean within 5 errors of 0."""
    network: Any = build()
    last, classifier = network.features[18][0].weight, network.classifier[0]
    for weight, variance in ((last, 2 / 1280), (classifier.weight, 1e-4)):
        n = weight.numel()
        assert weight.var().item() == pytest.approx(variance, rel=5 * math.sqrt(2 / n))
        assert abs(weight.mean().item()) < 5 * math.sqrt(variance / n)
    assert not classifier.bias.any()


def save_network(path: Path, network: nn.Module) -> dict[str, Tensor]:
    torch.save(network.state_dict(), path)
    return network.state_dict()


def test_pretrained_weights_are_loaded_except_for_the_classifier(tmp_path: Path) -> None:
    """The file has seven classes, batch norm and its statistics, as torchvision's files have."""
    weights_file = save_network(tmp_path / "w.pt", build(7, seed=5, norm="batch", **TINY))
    for n_classes, norm in ((7, "group"), (4, "group"), (7, "batch")):
        network = build(n_classes, norm=norm, weights=str(tmp_path / "w.pt"), **TINY)
        initial_weights = build(n_classes, norm=norm, **TINY).state_dict()
        for name, tensor in network.state_dict().items():
            is_classifier = n_classes == 4 and name.startswith("classifier")
            assert torch.equal(tensor, (initial_weights if is_classifier else weights_file)[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("features.0.0.weight"), r"don't fit: features.0.0.weight is missing in the file\. Choose"),
        (lambda w: w.update(extra=torch.zeros(1)), r"don't fit: extra is not in the network\. Choose"),
        (lambda w: w.pop("classifier.1.bias"), r"don't fit: classifier.1.bias is missing in the file\. Choose"),
        (
            lambda w: w.update({"classifier.1.weight": torch.zeros(10, 3)}),
            r"classifier.1.weight has shape \[10, 3\] in the",
        ),
        (
            lambda w: w.clear(),
            r"features.0.0.weight is missing in the file; features.0.1.weight is .*, and 155 more\. Choose",
        ),
        (lambda w: w.update(epoch=3), r"must hold a state dict \(tensors by name\) and nothing else"),
    ],
)
def test_weights_with_wrong_shapes_are_named(tmp_path: Path, change: Any, message: str) -> None:
    weights = dict(build(**TINY).state_dict())
    change(weights)
    torch.save(weights, tmp_path / "w.pt")
    with pytest.raises(OptionError, match=rf"^model.weights=.*w.pt.*{message}"):
        build(weights=str(tmp_path / "w.pt"), **TINY)


def test_a_wrong_number_of_colours_is_named(tmp_path: Path) -> None:
    save_network(tmp_path / "w.pt", build(**TINY))
    with pytest.raises(
        OptionError,
        match=r"features.0.0.weight has shape \[8, 3, 3, 3\] in the file and \[8, 1, 3, 3\] in the network\. Choose",
    ):
        build(shape=(1, 32, 32), weights=str(tmp_path / "w.pt"), **TINY)


class UnsafePickle:
    """What would run on loading."""

    def __reduce__(self) -> Any:
        return print, ("executed",)


@pytest.mark.parametrize("content", [b"", b"no weights", b"PK\x03\x04"])
def test_a_file_without_weights_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.pt").write_bytes(content)
    with pytest.raises(OptionError, match=r"^model.weights=.*w.pt can't be read as weights \("):
        build(weights=str(tmp_path / "w.pt"), **TINY)


def test_nothing_in_the_file_is_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"features.0.0.weight": UnsafePickle()}, tmp_path / "w.pt")
    with pytest.raises(OptionError, match="can't be read as weights"):
        build(weights=str(tmp_path / "w.pt"), **TINY)
    assert "executed" not in capsys.readouterr().out


def test_incompatible_options_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^groups must be a divisor of every layer's channels \(16, 24, .*, got 16$"):
        MobileNetV2(1.0, "group", 16, None)
    with pytest.raises(OptionError, match=r"^weights must be the path of a file, or null, got 'nowhere.pt'$"):
        MobileNetV2(1.0, "group", 8, "nowhere.pt")
    with pytest.raises(
        IncompatibleConfig, match=r"^model=mobilenet_v2_gn needs images .* .* 17x17, .* 16\]: choose another model$"
    ):
        build(shape=(1, 28, 16))
