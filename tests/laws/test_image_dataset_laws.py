"""Every image dataset reads its columns, rejects bad data by name, and stores pixels as bytes."""

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from hydra.utils import get_class

from config_options import load_options, make_component
from dataset_tables import IMAGE_MODULES, N, image_columns, stored_shape
from failure_hints import failure_hint
from fake_hub import COMMIT, add_commit
from fedcohort.dataset import hub
from fedcohort.dataset.base import Raw, check_raw_data
from fedcohort.dataset.checksum import compute_checksum
from fedcohort.dataset.image_dataset import ImageTableSpec
from fedcohort.errors import DataError, OptionError
from image_tables import encode_image, random_images, write_image_table


def load(folder: Path, choice: str, options: dict[str, Any] | None = None, **changes: Any) -> Raw:
    """Load the dataset from equal training and test rows, with changes in the test part."""
    write_image_table(folder, "train", **image_columns(choice))
    write_image_table(folder, "test", **image_columns(choice, **changes))
    small = {"size": 16} if "size" in load_options("dataset", choice) else {}
    raw = make_component("dataset", choice, path=str(folder), **{**small, **(options or {})}).load(0)
    assert isinstance(raw, Raw)
    return raw


@pytest.fixture(params=sorted(IMAGE_MODULES))
def choice(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@failure_hint("Convert pixels with the same `PixelScale` for pixels=uint8 and float32.")
def test_images_stored_as_bytes_give_the_same_inputs(choice: str, tmp_path: Path) -> None:
    floats, bytes_inputs = (load(tmp_path, choice, {"pixels": kind}) for kind in ("float32", "auto"))
    raw = load(tmp_path, choice, {"pixels": "uint8"})
    np.testing.assert_array_equal(floats.train_x, bytes_inputs.train_x, "auto is float32 where it fits")
    assert raw.train_x.dtype == np.uint8
    assert floats.train_x.dtype == np.float32
    assert raw.scale is not None
    assert floats.scale is None
    assert (floats.converted_scale, raw.converted_scale) == (raw.scale, None)
    np.testing.assert_array_equal(raw.scale.convert(raw.train_x), floats.train_x)
    np.testing.assert_array_equal(raw.scale.convert(raw.test_x), floats.test_x)
    assert "kept as bytes" in raw.inputs
    assert "kept as bytes" not in floats.inputs
    assert compute_checksum(floats) == compute_checksum(bytes_inputs) != compute_checksum(raw)


def test_a_notice_compares_the_number_of_images_with_the_originals(choice: str, tmp_path: Path) -> None:
    if IMAGE_MODULES[choice].TABLE_SPEC.original_image_counts is None:
        return
    n, test = IMAGE_MODULES[choice].TABLE_SPEC.original_image_counts
    notices = load(tmp_path, choice).inputs
    assert f"24 training images, {n - 24:,} fewer than the original's {n:,}" in notices
    assert f"24 test images, {test - 24:,} fewer than the original's {test:,}" in notices


@failure_hint("Read labels with `read_class_column`, which takes numbers and names.")
def test_class_names_give_the_same_labels(choice: str, tmp_path: Path) -> None:
    pictures: ImageTableSpec = IMAGE_MODULES[choice].TABLE_SPEC
    label_names: dict[str, Any] = {pictures.label_columns[0]: [pictures.classes[i % 2] for i in range(N)]}
    before = load(tmp_path, choice)
    np.testing.assert_array_equal(load(tmp_path, choice, **label_names).test_y, before.test_y)
    assert tuple(before.class_names) in ((), tuple(pictures.classes))
    with pytest.raises(DataError, match=r"test.parquet: column '\w+', row 3 has label 'no such'; labels are "):
        load(
            tmp_path,
            choice,
            None,
            **{pictures.label_columns[0]: [*label_names[pictures.label_columns[0]][:3], "no such", *["?"] * 20]},
        )


@failure_hint("Raise errors with `frame.cell_error`, which names file, column and row.")
def test_an_error_names_file_column_and_row(choice: str, tmp_path: Path) -> None:
    pictures: ImageTableSpec = IMAGE_MODULES[choice].TABLE_SPEC
    image, label = pictures.image_columns[0], pictures.label_columns[0]
    columns = image_columns(choice)
    truncated = [*columns[image][:5], {"bytes": columns[image][5]["bytes"][:60], "path": None}, *columns[image][6:]]
    other_size = [*columns[image][:5], encode_image(random_images(1, (3, 40, 50))[0]), *columns[image][6:]]
    top = len(pictures.classes) - 1
    cases: list[tuple[dict[str, Any], str]] = [
        ({label: None}, rf"test.parquet has no column '{label}'.*; it has {image}"),
        ({image: None}, rf"test.parquet has no column '{image}'.*; it has {label}"),
        ({image: truncated}, rf"test.parquet: column '{image}', row 5 can't be read as an image"),
        ({image: [*columns[image][:5], None, *columns[image][6:]]}, rf"'{image}', row 5 is empty"),
        ({label: [0] * 9 + [top + 1] * 15}, rf"'{label}', row 9 has label {top + 1}; .* at most {top}"),
        ({label: [0.0] * 9 + [0.5] * 15}, rf"'{label}', row 9 has label 0.5; labels are texts, or whole numbers"),
        ({label: [0, None] * 12}, rf"'{label}', row 1 is empty"),
    ]
    if not pictures.image_format.resize:
        expected = r"row 5 is an image of \(\d, 40, 50\), but "
        cases.append(({image: other_size}, expected))
        cases.append(({image: [[0.0] * 7] * N}, rf"'{image}' must hold (grey|RGB) images of .*, but holds \(7,\)"))
    for attribute in set(columns) - {image, label}:
        cases.append(({attribute: None}, rf"test.parquet has no column '{attribute}'"))
        cases.append(
            ({attribute: [*columns[attribute][:8], None, *columns[attribute][9:]]}, rf"'{attribute}', row 8 is empty")
        )
    for changes, message in cases:
        with pytest.raises(DataError, match=rf"^dataset.path: .*{message}"):
            load(tmp_path, choice, **changes)


def test_a_truncated_file_is_named(choice: str, tmp_path: Path) -> None:
    load(tmp_path, choice)
    file = tmp_path / "train.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"train.parquet can't be read, it is truncated"):
        make_component("dataset", choice, path=str(tmp_path)).load(0)


def test_data_without_anything_to_learn_are_rejected(choice: str, tmp_path: Path) -> None:
    pictures: ImageTableSpec = IMAGE_MODULES[choice].TABLE_SPEC
    one_image = [encode_image(random_images(1, stored_shape(pictures))[0])] * N
    cases: list[tuple[dict[str, Any], str]] = [
        ({pictures.label_columns[0]: [1] * N}, rf"all training images are of class {pictures.classes[1]}"),
        ({pictures.image_columns[0]: one_image}, r"all \d+ training samples are the same"),
    ]
    for changes, message in cases:
        for part in ("train", "test"):
            write_image_table(tmp_path, part, **image_columns(choice, **changes))
        with pytest.raises(DataError, match=rf"^dataset={choice}: {message}.*: there is nothing to learn"):
            check_raw_data(make_component("dataset", choice, path=str(tmp_path)).load(0))


def test_without_a_path_the_data_come_from_the_hub(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []
    parts = datasets.DatasetDict(
        {part: add_commit(datasets.Dataset.from_dict(image_columns(choice))) for part in ("train", "valid", "test")}
    )

    def answer(name: str) -> datasets.DatasetDict:
        requested.append(name)
        return parts

    monkeypatch.setattr(datasets, "load_dataset", answer)
    monkeypatch.setattr(hub, "check_network", lambda: "")
    small = {"size": 16} if "size" in load_options("dataset", choice) else {}
    raw = make_component("dataset", choice, **small).load(0)
    assert requested == [load_options("dataset", choice)["hub"]]
    assert raw.revision == f"{requested[0]}@{COMMIT}"
    assert len(raw.train_x) >= 18


@failure_hint("Call `check_source` in `__post_init__`.")
def test_options_are_checked(choice: str) -> None:
    options = {name: value for name, value in load_options("dataset", choice).items() if name != "_target_"}
    dataset_class = get_class(load_options("dataset", choice)["_target_"])
    with pytest.raises(OptionError, match="path must be a text that is not empty or null"):
        dataset_class(**{**options, "path": ""})
    with pytest.raises(OptionError, match="hub must be a text that is not empty or null"):
        dataset_class(**{**options, "hub": 3})
