"""A user's own public images, which become the numbers that the run's own became."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from config_options import make_component
from fedcohort.data.federation import Federation
from fedcohort.dataset.base import Raw
from fedcohort.errors import DataError, OptionError
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.iid import Iid
from fedcohort.proxy.folder import Folder
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from folder_tables import make_folder_dataset as own
from image_tables import encode_image, random_images, write_image_table
from optional_values import not_none

TRAINED, TESTED, PUBLIC = (random_images(60, (1, 28, 28), seed) for seed in (1, 2, 3))
PIXELS = ("float32", "uint8")
LAYOUTS: Mapping[str, Any] = {
    "encoded": [encode_image(image) for image in PUBLIC],
    "bytes": list(PUBLIC.reshape(60, 784)),
    "rows of numbers": PUBLIC[:, 0].astype(np.float64).tolist(),
    "shares of 255": (PUBLIC.reshape(60, 784) / 255).tolist(),
}


def federation_of(raw: Raw) -> Federation:
    return build_federation(raw, SplitOptions(Iid(), NoNoise(), seed=0, clients=4, server_val=0.1, client_val=0.1))


def run_of(path: Path, choice: str, **options: Any) -> Federation:
    """A run on the images TRAINED and TESTED."""
    path.mkdir(exist_ok=True)
    for part, images in (("train", TRAINED), ("test", TESTED)):
        write_image_table(path, part, image=list(images.reshape(60, 784)), label=np.arange(60) % 10)
    if choice == "folder":
        options = {"features": "image", "shape": [1, 28, 28], "scale": 255, **options}
        return federation_of(own(path, **options).load(0))
    return federation_of(make_component("dataset", choice, path=str(path), **options).load(0))


def public(path: Path, features: str | None = "image", **columns: Any) -> Folder:
    path.mkdir(exist_ok=True)
    write_image_table(path, "train", **columns)
    return Folder(str(path), features, [], 1.0, None)


def network_inputs(x: torch.Tensor, run: Federation) -> torch.Tensor:
    """What the network sees of inputs."""
    return x if x.is_floating_point() else not_none(run.scale).convert_tensor(x)


@pytest.mark.parametrize("pixels", PIXELS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pixels_are_normalised_like_the_runs(tmp_path: Path, layout: str, pixels: str) -> None:
    """Fashion-MNIST's pixels have mean 0.2860 and deviation 0.3530."""
    run = run_of(tmp_path / "run", "fashion_mnist", pixels=pixels)
    folder = public(tmp_path / "public", image=LAYOUTS[layout])
    expected = ((PUBLIC.astype(np.float32) / np.float32(255)) - np.float32(0.2860)) / np.float32(0.3530)
    for scale in (1.0, 255):
        x = replace(folder, scale=scale).inputs(run, 0)
        assert x.dtype == run.train.x.dtype
        np.testing.assert_array_equal(network_inputs(x, run).numpy(), expected)
    assert len(replace(folder, n=7).inputs(run, 0)) == 7


@pytest.mark.parametrize(("pixels", "divisor"), [("float32", 255), ("uint8", 1)])
def test_pixels_can_be_columns(tmp_path: Path, pixels: str, divisor: int) -> None:
    """Images of 4 x 4 pixels: a table of 784 columns takes seconds to read."""
    small = {name: images[:, :, :4, :4] for name, images in (("train", TRAINED), ("test", TESTED), ("public", PUBLIC))}
    for part in ("train", "test"):
        write_image_table(tmp_path, part, image=list(small[part].reshape(60, 16)), label=np.arange(60) % 10)
    dataset = own(tmp_path, features="image", shape=[1, 4, 4], scale=255, pixels=pixels)
    run = federation_of(dataset.load(0))
    columns = {f"p{i}": column / divisor for i, column in enumerate(small["public"].reshape(60, 16).T)}
    x = public(tmp_path / "columns", None, **columns).inputs(run, 0)
    expected = public(tmp_path / "lists", image=list(small["public"].reshape(60, 16))).inputs(run, 0)
    assert torch.equal(x, expected)
    columns["p10"] = np.where(np.arange(60) == 4, 7.4, columns["p10"])
    if divisor == 1:
        line = (
            r"^proxy.path: .*column 'p10', row 4 holds 7.4, but the run's inputs are images: "
            "not pixels, which are whole numbers"
        )
        with pytest.raises(DataError, match=line):
            public(tmp_path / "columns", None, **columns).inputs(run, 0)


@pytest.mark.parametrize("pixels", PIXELS)
@pytest.mark.parametrize("choice", ["fashion_mnist", "folder"])
@pytest.mark.parametrize(
    ("part", "line"), [("test", "60 inputs are also in the run's test set"), ("train", "samples of the clients")]
)
def test_the_runs_own_images_are_rejected(tmp_path: Path, choice: str, pixels: str, part: str, line: str) -> None:
    run = run_of(tmp_path / "run", choice, pixels=pixels)
    images = TESTED if part == "test" else TRAINED
    folder = public(tmp_path / "public", image=list(images.reshape(60, 784)))
    for scale in (1.0, 255):
        with pytest.raises(DataError, match=line):
            replace(folder, scale=scale).inputs(run, 0)


def test_coloured_digits_are_normalised_and_test_images_rejected(tmp_path: Path) -> None:
    """The test images of the run, as bytes: twelve clients have twelve images each and more."""
    for part, n in (("train", 600), ("test", 60)):
        write_image_table(tmp_path, part, image=list(random_images(n, (784,), n)), label=np.arange(n) % 10)
    run = federation_of(make_component("dataset", "cmnist", path=str(tmp_path), clients=4).load(0))
    public_images = random_images(5, (2, 28, 28))
    expected = (public_images.astype(np.float32) / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)
    x = public(tmp_path / "public", image=list(public_images.reshape(5, -1))).inputs(run, 0)
    np.testing.assert_array_equal(x.numpy(), expected)
    test_pixels = np.rint((run.server_test.x.numpy() * 0.3081 + 0.1307) * 255).astype(np.uint8)
    with pytest.raises(DataError, match=f"{len(test_pixels)} inputs are also in the run's test set"):
        public(tmp_path / "mine", image=list(test_pixels.reshape(len(test_pixels), -1))).inputs(run, 0)


def test_invalid_images_are_rejected(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "fashion_mnist")
    folder = public(tmp_path / "public", image=LAYOUTS["bytes"])
    with pytest.raises(OptionError, match=r"^proxy.scale must be 1 or 255, .* images, got 2$"):
        replace(folder, scale=2).inputs(run, 0)
    with pytest.raises(DataError, match=r"^proxy.features: .*train.parquet has no column 'pixels'; it has image$"):
        replace(folder, features="pixels").inputs(run, 0)
    with pytest.raises(DataError, match=r"^proxy.features: .*: column 'image' must hold grey images of 28 x 28"):
        public(tmp_path / "small", image=[[0] * 64] * 3).inputs(run, 0)
    with pytest.raises(
        DataError, match=r"^proxy.path: a sample of .* has 1 numbers \(a\), but one of dataset=fashion_"
    ):
        public(tmp_path / "narrow", None, a=[0, 1]).inputs(run, 0)
