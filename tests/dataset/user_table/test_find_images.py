"""Folders of images as tables of images and classes."""

from pathlib import Path

import numpy as np
from PIL import Image

from fedcohort.dataset.raw.imagefolder import has_class_folders
from fedcohort.dataset.user_table.find import read_image_frames


def save(file: Path, shape: tuple[int, ...], value: int = 7) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full(shape, value, np.uint8)).save(file)


def test_each_image_keeps_its_pixels_and_its_class(tmp_path: Path) -> None:
    for k, label in enumerate(("cat", "dog", "dog")):
        save(tmp_path / label / f"{k}.png", (4, 4), value=k)
    frame = read_image_frames(tmp_path)["train"]
    assert frame.column("label").to_pylist() == ["cat", "dog", "dog"]
    pixels = frame.read_arrays("image")
    np.testing.assert_array_equal(pixels, np.arange(3)[:, None, None, None] * np.ones((1, 1, 4, 4)))


def test_a_folder_holds_classes_where_a_folder_in_it_holds_an_image(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / ".cache").mkdir()
    save(tmp_path / ".cache" / "1.png", (4, 4))
    save(tmp_path / "1.png", (4, 4))
    assert not has_class_folders(tmp_path)
    save(tmp_path / "cat" / "1.JPG", (4, 4))
    assert has_class_folders(tmp_path)
