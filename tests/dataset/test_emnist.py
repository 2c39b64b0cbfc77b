"""EMNIST's six kinds on small made files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.dataset.base import Raw
from fedcohort.dataset.emnist import CLASSES_AND_COUNTS_BY_KIND, Emnist
from fedcohort.errors import DataError, OptionError
from image_tables import encode_image, random_images, write_image_table


def load(folder: Path, kind: str, labels: list[Any], pixels: str = "auto") -> Raw:
    images = [encode_image(image) for image in random_images(len(labels), (1, 28, 28))]
    for part in ("train", "test"):
        write_image_table(folder, part, image=images, label=labels)
    return Emnist(str(folder), None, None, pixels, kind).load(0)


def test_each_kind_of_emnist_has_its_published_size() -> None:
    """814,255 characters in all, 131,600 of them balanced, 145,600 letters, 280,000 digits, 70,000 like MNIST."""
    assert {kind: (len(classes), sum(sizes)) for kind, (classes, sizes) in CLASSES_AND_COUNTS_BY_KIND.items()} == {
        "byclass": (62, 814_255),
        "bymerge": (47, 814_255),
        "balanced": (47, 131_600),
        "letters": (26, 145_600),
        "digits": (10, 280_000),
        "mnist": (10, 70_000),
    }


def test_emnist_class_names_are_the_characters(tmp_path: Path) -> None:
    raw = load(tmp_path, "byclass", [0, 9, 10, 35, 36, 61])
    assert [raw.class_names[c] for c in raw.train_y] == ["0", "9", "A", "Z", "a", "z"]
    raw = load(tmp_path, "balanced", [10, 36, 46])
    assert [raw.class_names[c] for c in raw.train_y] == ["A", "a", "t"]
    assert "3 training images, 112,797 fewer" in raw.inputs


def test_letter_labels_may_start_at_one_or_zero(tmp_path: Path) -> None:
    for labels in ([1, 2, 26], [0, 1, 25], ["A", "B", "Z"]):
        raw = load(tmp_path, "letters", labels)
        assert [raw.class_names[c] for c in raw.train_y] == ["A", "B", "Z"]
        assert (raw.n_classes, len(raw.class_names)) == (26, 26)
    with pytest.raises(DataError, match=r"row 2 has label 26; .* at most 25"):
        load(tmp_path, "letters", [0, 1, 26])


def test_uint8_and_float32_pixels_are_the_same_images(tmp_path: Path) -> None:
    raw, byte_data = (load(tmp_path, "digits", [0, 1, 9], pixels) for pixels in ("float32", "uint8"))
    np.testing.assert_array_equal(raw.train_x, (byte_data.train_x / np.float32(255)).astype(np.float32))


def test_invalid_emnist_options_and_labels_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="kind must be one of byclass, bymerge"):
        Emnist(None, None, None, "auto", "all")
    with pytest.raises(DataError, match=r"dataset=emnist needs dataset.path.*or dataset.hub"):
        Emnist(None, None, None, "auto", "byclass").load(0)
    with pytest.raises(DataError, match=r"row 1 has label 47; .* at most 46"):
        load(tmp_path, "bymerge", [0, 47])
