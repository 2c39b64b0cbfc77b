"""Spawrious on small made files: breeds and places that are chosen, and a balanced test."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fake_hub import COMMIT, serve_folder
from fedcohort.dataset import spawrious as module
from fedcohort.dataset.base import Raw
from fedcohort.dataset.breeds import BREEDS, PLACES
from fedcohort.dataset.spawrious import Spawrious
from fedcohort.errors import DataError, OptionError
from image_tables import encode_image, random_images, write_image_table
from optional_values import not_none

IMAGES_PER_PAIR_TOY = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pixels of an image say its breed (red) and its place (green)."""
    path = tmp_path_factory.mktemp("dogs")
    pairs = [(b, p) for _ in range(IMAGES_PER_PAIR_TOY) for b in range(4) for p in range(6)]
    images: list[dict[str, Any]] = []
    for b, p in pairs:
        pixels = random_images(1, (3, 8, 8), len(images))[0]
        pixels[0], pixels[1] = b, p
        images.append(encode_image(pixels))
    write_image_table(
        path, "train", image=images, label=[BREEDS[b] for b, _ in pairs], place=[PLACES[p] for _, p in pairs]
    )
    return path


def load(
    folder: Path,
    breeds: Sequence[str] = ("dachshund", "labrador"),
    places: Sequence[str] = ("snow", "beach"),
    test_share: float = 0.4,
    seed: int = 0,
) -> Raw:
    return Spawrious(str(folder), None, None, "uint8", breeds, places, 8, test_share).load(seed)


def test_only_images_of_the_chosen_breeds_and_places_are_loaded(folder: Path) -> None:
    raw = load(folder)
    for x, y, a in ((raw.train_x, raw.train_y, raw.train_attribute), (raw.test_x, raw.test_y, raw.test_attribute)):
        np.testing.assert_array_equal(np.array([2, 3])[y], x[:, 0, 0, 0])
        np.testing.assert_array_equal(np.array([5, 0])[not_none(a)], x[:, 1, 0, 0])
    assert raw.class_names == ("dachshund", "labrador")
    assert "places 0 snow, 1 beach" in raw.inputs
    assert "5 images of dachshund at the snow, 6,331 fewer than the original's 6,336 (and 3 other pairs differ)" in (
        raw.inputs
    )


def test_a_note_names_the_pair_whose_image_count_differs_most(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IMAGES_PER_PAIR", 5)
    assert "original" not in load(folder).inputs
    image = encode_image(np.zeros((3, 8, 8), np.uint8))
    table = pq.read_table(folder / "train.parquet")
    added = pa.table({"image": [image] * 2, "label": ["labrador"] * 2, "place": ["beach"] * 2}, schema=table.schema)
    pq.write_table(pa.concat_tables([table, added]), tmp_path / "train.parquet")
    assert load(tmp_path).inputs.endswith("; 7 images of labrador at the beach, 2 more than the original's 5")


def test_the_revision_of_hub_data_is_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_folder(monkeypatch, folder)
    raw = Spawrious(None, "a/dogs", None, "uint8", ("dachshund", "labrador"), ("snow",), 8, 0.4).load(0)
    assert raw.revision == f"a/dogs@{COMMIT}"


def test_the_test_part_has_equally_many_images_of_each_pair(folder: Path) -> None:
    """A share of .4 of five images is two."""
    raw = load(folder, BREEDS, PLACES)
    assert np.bincount(6 * raw.test_y + not_none(raw.test_attribute)).tolist() == [2] * 24
    assert np.bincount(6 * raw.train_y + not_none(raw.train_attribute)).tolist() == [3] * 24
    train_images = {image.tobytes() for image in raw.train_x}
    assert not train_images & {image.tobytes() for image in raw.test_x}
    assert not np.array_equal(raw.test_x, load(folder, BREEDS, PLACES, seed=1).test_x)


def test_invalid_spawrious_options_are_rejected(folder: Path) -> None:
    with pytest.raises(OptionError, match=r"breeds must be a list of 2 or more of bulldog, .*got \['corgi'\]"):
        load(folder, breeds=["corgi"])
    with pytest.raises(OptionError, match="places must be a list of 1 or more of beach, "):
        load(folder, places=["snow", "snow"])
    with pytest.raises(OptionError, match="places must be a list of texts"):
        load(folder, places="snow")
    with pytest.raises(DataError, match="has 5 images of dachshund at the snow: too few for a test part of test_share"):
        load(folder, test_share=0.1)
    with pytest.raises(DataError, match=r"dataset=spawrious needs dataset.path, a folder with train.parquet"):
        Spawrious(None, None, None, "auto", BREEDS, PLACES, 8, 0.1).load(0)
