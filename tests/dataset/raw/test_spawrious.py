"""Spawrious' folders become a table that dataset=spawrious reads."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.dataset.raw import spawrious
from fedcohort.dataset.spawrious import Spawrious
from fedcohort.errors import DataError
from optional_values import not_none
from raw_dataset_files import prepare_tables, save_image


def test_raw_spawrious_folders_become_rows_with_breed_and_place(tmp_path: Path) -> None:
    root, pixels = tmp_path / "raw" / "spawrious224", list[np.ndarray]()
    for subfolder in ("0", "1", "domain_adaptation_ds"):
        for place in ("beach", "snow"):
            for breed in ("corgi", "labrador"):
                for i in range(2):
                    pixels.append(save_image(root / subfolder / place / breed / f"{i}.png", len(pixels), (3, 8, 8)))
    assert prepare_tables(spawrious.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made") == {"train": 16}
    dataset = Spawrious(
        str(tmp_path / "made"), None, None, "uint8", ["corgi", "labrador"], ["beach", "snow"], 8, 0.25
    ).load(0)
    # Of the four images of a pair one is for the test.
    assert np.bincount(2 * dataset.train_y + not_none(dataset.train_attribute)).tolist() == [3] * 4
    assert np.bincount(2 * dataset.test_y + not_none(dataset.test_attribute)).tolist() == [1] * 4
    known_pixels = {image.tobytes() for image in pixels[:16]}
    assert {image.tobytes() for image in np.concatenate([dataset.train_x, dataset.test_x])} == known_pixels


def test_missing_images_and_unknown_folders_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no images: expected files such as 0/beach/bulldog/\*.png"):
        spawrious.plan_table_pieces(tmp_path, None)
    save_image(tmp_path / "0" / "moon" / "corgi" / "0.png")
    with pytest.raises(DataError, match=r"0/moon is an unknown folder: allowed are beach, desert"):
        spawrious.plan_table_pieces(tmp_path, None)
