"""LEAF's JSON becomes tables that dataset=femnist reads."""

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset.femnist import Femnist
from fedcohort.dataset.raw import leaf
from fedcohort.errors import DataError
from image_tables import random_images
from optional_values import not_none
from raw_dataset_files import prepare_tables
from raw_dataset_files import write_leaf as raw_leaf


def test_leafs_femnist_files_become_tables_with_writers_as_clients(tmp_path: Path) -> None:
    pixels = random_images(12, (784,))
    lists = (pixels / 255).tolist()
    raw_leaf(tmp_path / "raw", "train/a.json", f1=(lists[:4], [0, 1, 2, 3]), f0=(lists[4:8], [4, 5, 6, 61]))
    raw_leaf(tmp_path / "raw", "test/a.json", f1=(lists[8:10], [7, 8]), f0=(lists[10:], [9, 10]))
    assert prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made") == {"train": 8, "test": 4}
    raw = Femnist(str(tmp_path / "made"), "hub", None, "given", 1.0, 0, "uint8").load(0)
    np.testing.assert_array_equal(raw.train_x.reshape(8, 784), pixels[:8])
    np.testing.assert_array_equal(raw.test_x.reshape(4, 784), pixels[8:])
    assert raw.train_y.tolist() == [0, 1, 2, 3, 4, 5, 6, 61]
    assert not_none(raw.train_owner).tolist() == [1] * 4 + [0] * 4
    assert not_none(raw.test_owner).tolist() == [1, 1, 0, 0]


def test_leaf_texts_without_a_test_part_become_one_table(tmp_path: Path) -> None:
    raw_leaf(tmp_path / "raw", "b.json", mac=(["abc", "bcd"], ["d", "e"]))
    raw_leaf(tmp_path / "raw", "a.json", lear=(["xyz"], ["!"]), no_clients=([], []))
    assert prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made") == {"train": 3}
    table = pq.read_table(tmp_path / "made" / "train.parquet")
    assert table.to_pydict() == {"client": ["lear", "mac", "mac"], "x": ["xyz", "abc", "bcd"], "y": ["!", "d", "e"]}


def test_a_changed_source_file_is_converted_again(tmp_path: Path) -> None:
    """Of the same size: it was."""
    for label in ("d", "e"):
        raw_leaf(tmp_path / "raw", mac=(["abc"], [label]))
        os.utime(tmp_path / "raw" / "train" / "all_data_0.json", (0, ord(label)))
        if label == "d":
            prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")
    with pytest.raises(DataError, match="prepared from another source"):
        prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")


def test_a_leaf_user_in_two_files_of_a_part_is_rejected(tmp_path: Path) -> None:
    """Two files of one part, as by a copy: the samples would be there twice."""
    for name in ("a.json", "b.json"):
        raw_leaf(tmp_path / "raw", name, mac=(["abc"], ["d"]))
    with pytest.raises(DataError, match=r"train.parquet: client 'mac' has samples in two files of the source"):
        prepare_tables(leaf.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made", leaf.UNIQUE_CLIENT_COLUMN)


def test_invalid_leaf_files_are_rejected_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no JSON files: "):
        leaf.plan_table_pieces(tmp_path, None)
    raw_leaf(tmp_path, "a.json", mac=(["abc"], ["d"]))
    with pytest.raises(DataError, match="size= resizes image files"):
        leaf.plan_table_pieces(tmp_path, 8)
    file, valid_json = tmp_path / "a.json", (tmp_path / "a.json").read_text()
    for text, refusal in (
        (valid_json[:-3], "is not valid JSON, or was truncated"),
        ("[1]", "is not a file of LEAF: it lacks users, num_samples or user_data"),
        (
            valid_json.replace('"num_samples": [1]', '"num_samples": [2]'),
            r"user 'mac' has 1 x and 1 y, num_samples says 2",
        ),
        (valid_json.replace('"users": ["mac"]', '"users": ["lear", "mac"]'), r"'lear' is wrong"),
        (valid_json.replace('"users": ["mac"]', '"users": ["mac", "mac"]'), r"once, by name; 'mac' is wrong"),
        (valid_json.replace('"x": ["abc"]', '"x": ["abc"], "x": ["xyz"]'), r"the key 'x' occurs twice"),
        (
            valid_json.replace('["abc"]', "[[1, NaN]]"),
            r"'mac', sample 0: x must hold texts, or lists of numbers that float32 can hold, but holds nan",
        ),
        (valid_json.replace('["abc"]', "[[1, true]]"), r"numbers that float32 can hold, but holds True"),
        (valid_json.replace('"y": ["d"]', '"y": [null]'), r"user 'mac' has label None"),
        (valid_json.replace('"y": ["d"]', '"y": ["d", "e"]'), r"user 'mac' has 1 x and 2 y"),
        (
            valid_json.replace('"users": ["mac"]', '"users": ["lear"]'),
            r"users must list each user .* 'lear' is wrong",
        ),
        (
            valid_json.replace('"mac": {', '"lear": {}, "mac": {')
            .replace('["mac"]', '["mac", "lear"]')
            .replace("[1]", "[1, 0]"),
            "user 'lear' has no lists x and y",
        ),
        (valid_json.replace('"abc"', '"000001.jpg"'), "x are names of images, '000001.jpg': fedcohort prepare celeba"),
        (valid_json.replace('["abc"]', "[[1, 2]]").replace('["d"]', '["d", 1]'), r"user 'mac' has 1 x and 2 y"),
        (
            valid_json.replace('"y": ["d"]', '"y": [1.5]'),
            r"a.json: user 'mac' has label 1.5; labels are whole numbers, texts",
        ),
        (valid_json.replace('"y": ["d"]', '"y": [NaN]'), r"user 'mac' has label nan"),
        (valid_json.replace('"abc"', "3"), "x must hold texts, or lists of numbers that float32 can hold, but holds 3"),
        (valid_json.replace('"abc"', "[3.0]").replace('"d"', "9223372036854775808"), "x and y must each have one type"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=refusal):
            prepare_tables(leaf.plan_table_pieces(tmp_path, None), tmp_path / "made" / str(abs(hash(text))))
