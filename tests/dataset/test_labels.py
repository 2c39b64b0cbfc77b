"""Files that say what their labels' numbers are called."""

from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest

from fedcohort.dataset.files import read_part_table
from fedcohort.dataset.labels import read_class_column
from fedcohort.dataset.mnist import Mnist
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from image_tables import random_images

CLASSES = ("Cat", "Dog", "T-shirt/top")


def frame(names: list[str], labels: list[int]) -> Frame:
    features = datasets.Features({"label": datasets.ClassLabel(names=names)})
    table: Any = datasets.Dataset.from_dict({"label": labels}, features=features).with_format("arrow")[:]
    return Frame("a/b (train)", table, "dataset.hub")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Cat", "Dog", "T-shirt/top"], [0, 1, 2]),
        (["dog", "T - shirt / top", "cat"], [1, 2, 0]),
        (["kitten", "puppy", "shirt"], [0, 1, 2]),
        (["Cat", "puppy", "T-shirt/top"], [0, 1, 2]),
    ],
)
def test_class_numbers_follow_the_class_names_of_the_file(names: list[str], expected: list[int]) -> None:
    """If the file has the classes in another order, names that are not class names are ignored."""
    assert read_class_column(frame(names, [0, 1, 2]), "label", CLASSES).tolist() == expected


@pytest.mark.parametrize(
    ("names", "warned"), [(["kitten", "puppy", "shirt"], True), (["Cat", "puppy", "shirt"], False), ([], False)]
)
def test_unknown_class_names_are_reported(names: list[str], warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    table = frame(names, [0, 1, 2]) if names else Frame("a/b (train)", pa.table({"label": [0, 1, 2]}), "dataset.hub")
    read_class_column(table, "label", CLASSES)
    message = (
        "a/b (train): column 'label' names its classes kitten, puppy, shirt, but the dataset names them Cat, "
        "Dog, T-shirt/top: "
        "labels are matched by number"
    )
    assert caplog.messages == [message] * warned


def test_class_names_that_differ_in_case_are_different_classes() -> None:
    assert read_class_column(frame(["a", "A"], [0, 1]), "label", ("A", "a")).tolist() == [1, 0]


def test_a_mixture_of_known_and_unknown_class_names_is_rejected() -> None:
    with pytest.raises(DataError, match=r"^dataset.hub: a/b \(train\): column 'label' numbers the classes differently"):
        read_class_column(frame(["eel", "Cat", "Dog"], [0, 1, 2]), "label", CLASSES)


def test_class_names_in_local_hub_files_are_compared_too(tmp_path: Path) -> None:
    names = ["1", "0", *"23456789"]
    features = datasets.Features(
        {"image": datasets.List(datasets.Value("uint8")), "label": datasets.ClassLabel(names=names)}
    )
    dataset = datasets.Dataset.from_dict(
        {"image": random_images(3, (784,)).tolist(), "label": [0, 1, 2]}, features=features
    )
    for part in ("train", "test"):
        dataset.to_parquet(tmp_path / f"{part}.parquet")
    assert read_part_table(str(tmp_path), "train").table.num_rows == 3
    assert Mnist(str(tmp_path), "hub", None, "uint8").load(0).train_y.tolist() == [1, 0, 2]
