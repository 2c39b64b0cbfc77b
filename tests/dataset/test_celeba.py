"""CelebA's parts, celebrities and attributes on small made files."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.dataset.base import Raw
from fedcohort.dataset.celeba import Celeba
from fedcohort.errors import DataError, OptionError
from image_tables import encode_image, random_images, write_image_table
from optional_values import not_none

SIZES = {"train": [6, 4, 8], "valid": [5], "test": [7]}  # of celebrities 0, 1, 2; 3; 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    first = 0
    for part, sizes in SIZES.items():
        ids = np.repeat(np.arange(first, first + len(sizes)), sizes) + 100
        smiling = np.arange(len(ids)) % 2 == 0
        images = [encode_image(image, "JPEG") for image in random_images(len(ids), (3, 22, 18), first)]
        write_image_table(tmp_path, part, image=images, celeb_id=ids, Smiling=smiling, Male=ids % 2 == 1)
        first += len(sizes)
    return tmp_path


def load(folder: Path, test: str = "sample", least: int = 5, attribute: str | None = None) -> Raw:
    return Celeba(str(folder), "hub", None, test, 1.0, least, "auto", attribute).load(0)


def test_clients_are_celebrities_of_all_parts_with_at_least_five_images(folder: Path) -> None:
    """Of 6, 8, 5 and 7 images 5, 7, 4 and 6 train; celebrity 101 has four."""
    raw = load(folder)
    assert np.bincount(not_none(raw.train_owner)).tolist() == [5, 7, 4, 6]
    assert raw.train_x.shape[1:] == (3, 84, 84)
    assert (raw.train_x >= 0).all()
    assert raw.train_x.max() <= 1
    assert raw.class_names == ("serious", "smiling")
    assert "1 with too few samples left out" in raw.inputs
    assert raw.inputs.endswith(
        "; 30 images, 202,569 fewer than the original's 202,599; 5 people, 10,172 fewer than the original's 10,177"
    )


def test_with_test_given_the_test_celebrities_are_no_clients(folder: Path) -> None:
    raw = load(folder, "given", least=0)
    assert np.bincount(not_none(raw.train_owner)).tolist() == [6, 4, 8]
    assert len(raw.test_y) == 7
    assert raw.pooled_test
    assert "original" not in raw.inputs, "which has a validation part, too"


def test_the_attribute_option_defines_the_groups(folder: Path) -> None:
    raw = load(folder, attribute="Male")
    celebrity = np.array([100, 102, 103, 104])[not_none(raw.train_owner)]
    np.testing.assert_array_equal(not_none(raw.train_attribute), celebrity % 2)
    assert raw.n_attributes == 2
    with pytest.raises(DataError, match="has no column 'Hat'; it has image, celeb_id, Smiling, Male"):
        load(folder, attribute="Hat")
    with pytest.raises(OptionError, match="attribute must be a text that is not empty or null"):
        load(folder, attribute="")


def test_a_label_of_minus_one_is_rejected(folder: Path) -> None:
    """CelebA's own list has -1 and 1."""
    write_image_table(
        folder,
        "train",
        image=[encode_image(random_images(1, (3, 9, 9))[0])] * 4,
        celeb_id=[1] * 4,
        Smiling=[1, -1, 1, -1],
    )
    with pytest.raises(DataError, match="'Smiling', row 1 has label -1; labels must be whole, at least 0"):
        load(folder)
