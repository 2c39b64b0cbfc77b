"""MNIST by hand and, where they are, on the real digits."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.dataset.mnist import Mnist
from image_tables import DATA_FOLDER, random_images, write_image_table


def test_pixels_of_0_to_255_and_0_to_1_give_equal_inputs(tmp_path: Path) -> None:
    pixels = random_images(12, (784,))
    loaded_images = []
    for images in (pixels.tolist(), pixels.astype(np.float64).tolist(), (pixels / 255).tolist()):
        for part in ("train", "test"):
            write_image_table(tmp_path, part, image=images, label=[i % 10 for i in range(12)])
        loaded_images.append(Mnist(str(tmp_path), "hub", None, "uint8").load(0).train_x.reshape(12, 784))
    for loaded in loaded_images:
        np.testing.assert_array_equal(loaded, pixels)


def test_a_dark_row_group_is_scaled_like_the_whole_file(tmp_path: Path) -> None:
    """The second row group of two images has no pixel above 1."""
    pixels = random_images(4, (784,)).astype(np.float64)
    pixels[2:] = pixels[2:] > 128
    for part in ("train", "test"):
        write_image_table(tmp_path, part, row_group=2, image=pixels.tolist(), label=[0, 1, 0, 1])
    images = Mnist(str(tmp_path), "hub", None, "uint8").load(0).train_x.reshape(4, 784)
    np.testing.assert_array_equal(images, pixels)


@pytest.mark.parametrize("invalid_pixel", [300.0, -1.0, 7.4])
def test_values_that_are_not_pixels_are_rejected(tmp_path: Path, invalid_pixel: float) -> None:
    pixels = random_images(12, (784,)).astype(np.float64)
    pixels[9, 5] = invalid_pixel
    for part in ("train", "test"):
        write_image_table(tmp_path, part, image=pixels.tolist(), label=[i % 10 for i in range(12)])
    with pytest.raises(Exception, match="'image', row 9 has numbers that are not pixels"):
        Mnist(str(tmp_path), "hub", None, "auto").load(0)


def test_the_real_mnist_files_have_the_documented_content() -> None:
    if not (DATA_FOLDER / "mnist").is_dir():
        pytest.skip("no ../shared/data/mnist beside the repository: the real data are shared, not committed")
    raw = Mnist(str(DATA_FOLDER / "mnist"), "hub", None, "auto").load(0)
    assert (raw.train_x.shape, raw.test_x.shape) == ((60_000, 1, 28, 28), (10_000, 1, 28, 28))
    assert np.bincount(raw.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert raw.train_x.mean(dtype=np.float64) == pytest.approx(0, abs=1e-3)
    assert raw.train_x.std(dtype=np.float64) == pytest.approx(1, abs=1e-3)
    assert raw.inputs == "1 x 28 x 28 pixels"
