"""Every dataset with known columns accepts other column names, and errors name the user's column."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hydra.utils import get_class

from config_options import list_options, load_options, make_component
from dataset_tables import LAYOUTS, Tables, make_tables
from failure_hints import failure_hint
from fake_hub import serve_folder
from fedcohort.dataset.base import Raw
from fedcohort.dataset.source import check_column_renames, find_column, frame_has_column
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError, OptionError
from image_tables import write_image_table


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def names_of(tables: Tables) -> list[str]:
    return list(dict.fromkeys(name for columns in tables.values() for name in columns))


def add_prefix(names: list[str]) -> dict[str, str]:
    return {name: f"their {name}" for name in names}


def rotate_names(names: list[str]) -> dict[str, str]:
    """Return names in which each column has the name of the next."""
    return dict(zip(names, [*names[1:], names[0]], strict=True))


def save(folder: Path, tables: Tables, columns: Mapping[str, str]) -> None:
    """Write the tables with these column names."""
    for part, part_columns in tables.items():
        renamed: dict[str, Any] = {columns.get(name, name): values for name, values in part_columns.items()}
        write_image_table(folder, part, **renamed)


def load(layout: str, columns: Mapping[str, str] | None, **source: Any) -> Raw:
    options = {**make_tables(layout)[1], **source, "columns": columns}
    raw = make_component("dataset", layout.partition(" ")[0], **options).load(0)
    assert isinstance(raw, Raw)
    return raw


def assert_equal_data(first: Raw, second: Raw) -> None:
    for field in fields(Raw):
        pair = [getattr(raw, field.name) for raw in (first, second)]
        if field.name == "valid" and pair[0] is not None:
            pair = [np.concatenate([part.ravel() for part in valid]) for valid in pair]
        np.testing.assert_equal(pair[0], pair[1], field.name)


def test_every_dataset_that_reads_columns_by_name_has_the_columns_option() -> None:
    """dataset=folder is excluded, because it has one option for each column."""
    nodes = {choice: load_options("dataset", choice) for choice in list_options("dataset")}
    reading = {choice for choice, options in nodes.items() if "path" in options and "label" not in options}
    assert reading == {choice for choice, options in nodes.items() if "columns" in options}
    assert reading == {layout.partition(" ")[0] for layout in LAYOUTS}
    assert all(nodes[choice]["columns"] is None for choice in reading)


@failure_hint("Look each column up with `find_column`, so that `dataset.columns` can rename it.")
def test_renamed_columns_give_the_same_data(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that no table has, and names of other columns; the latter also from the hub."""
    tables, _ = make_tables(layout)
    names = names_of(tables)
    columns_by_folder = {"ours": {}, "prefixed": add_prefix(names), "rotated": rotate_names(names)}
    for name, column_names in columns_by_folder.items():
        (tmp_path / name).mkdir()
        save(tmp_path / name, tables, column_names)
    expected = load(layout, None, path=str(tmp_path / "ours"))
    for name in ("prefixed", "rotated"):
        assert_equal_data(load(layout, columns_by_folder[name], path=str(tmp_path / name)), expected)
    if "hub" not in load_options("dataset", layout.partition(" ")[0]) or "given" in make_tables(layout)[1].values():
        return
    loaded = []
    for name, columns in (("ours", None), ("rotated", columns_by_folder["rotated"])):
        serve_folder(monkeypatch, tmp_path / name)
        loaded.append(load(layout, columns, path=None, hub="someone/data"))
    assert loaded[1].revision.startswith("someone/data@0")
    assert_equal_data(*loaded)


@failure_hint("Look each column up with `find_column`, whose message lists the columns.")
def test_a_missing_column_is_reported_with_the_existing_ones(layout: str, tmp_path: Path) -> None:
    tables, _ = make_tables(layout)
    save(tmp_path, tables, {})
    for part, columns in tables.items():
        for name in set(columns) if part in ("train", "vocabulary") else ():
            message = (
                rf"^dataset\.columns\.{name}=gone: .*{part}\.parquet has no column 'gone'; it has {next(iter(columns))}"
            )
            with pytest.raises(DataError, match=message):
                load(layout, {name: "gone"}, path=str(tmp_path))


@failure_hint(
    "Raise errors with `frame.column_error` or `frame.cell_error`, which name the option, the column and the row."
)
def test_an_error_in_a_column_gives_the_users_column_name(layout: str, tmp_path: Path) -> None:
    tables, _ = make_tables(layout)
    columns = add_prefix(names_of(tables))
    cells = [(part, name) for part in tables if part in ("train", "vocabulary") for name in tables[part]]
    for part, name in cells:
        values = list(tables[part][name])
        values[3] = None
        save(tmp_path, tables, columns)
        save(tmp_path, {part: {**tables[part], name: values}}, columns)
        user_name = columns[name]
        message = rf"^dataset\.columns\.{name}={user_name}: .*{part}\.parquet: column '{user_name}', row 3 is empty"
        with pytest.raises(DataError, match=message):
            load(layout, columns, path=str(tmp_path))


@failure_hint("Call `check_column_renames` in `__post_init__` with the names that each column goes by.")
def test_invalid_column_names_are_rejected(layout: str) -> None:
    choice = layout.partition(" ")[0]
    dataset_class = get_class(load_options("dataset", choice)["_target_"])
    options = {name: value for name, value in load_options("dataset", choice).items() if name != "_target_"}
    name, second_name, *_ = names_of(make_tables(layout)[0])
    cases: list[tuple[object, str]] = [
        ({"unknown": "a"}, rf"columns must be null, or a mapping of .*\b{name}\b.*, got \{{'unknown': 'a'\}}"),
        ({}, r"columns must be null, or .*, got \{\}"),
        ([name], rf"columns must be null, or .*, got \['{name}'\]"),
        ({name: 3}, rf"columns\.{name} must be a text that is not empty, got 3"),
        ({name: None}, rf"columns\.{name} must be a text that is not empty, got None"),
        (
            {name: "a", second_name: "a"},
            rf"columns\.{second_name} and columns\.{name} must be two columns, got 'a' for both",
        ),
    ]
    for columns, message in cases:
        with pytest.raises(OptionError, match=f"^{message}"):
            dataset_class(**{**options, "columns": columns})
    assert dataset_class(**{**options, "columns": {name: "a", second_name: "b"}}).columns == {
        name: "a",
        second_name: "b",
    }


def test_two_names_for_one_column_are_rejected() -> None:
    check_column_renames({"image": "a", "label": "b"}, ("img", "image"), ("label",))
    with pytest.raises(
        OptionError,
        match=r"^columns must be a mapping with only one of img and image, which are two names of the same column, got",
    ):
        check_column_renames({"img": "a", "image": "b"}, ("img", "image"), ("label",))


def test_the_first_matching_column_name_is_used() -> None:
    table = pa.table({"label": ["an image"], "y": [1], "image": [0]})
    frame = Frame("made", table, column_renames={"x": "label"}, option_by_column={"label": "dataset.columns.x=label"})
    assert find_column(frame, "image", "x") == "label", "though there is one called image"
    assert find_column(frame, "label", "y") == "y", "as label is what x is called"
    assert find_column(frame, "image") == "image"
    assert [frame_has_column(frame, name) for name in ("x", "label", "y", "z")] == [True, False, True, False]
    message = r"^dataset.path: made has no column 'label' or 'z'; it has .*; set dataset.columns=\{label: OTHER\} if"
    with pytest.raises(DataError, match=message):
        find_column(frame, "label", "z")


def test_named_sequences_are_read_even_if_lines_exist(tmp_path: Path) -> None:
    tables, _ = make_tables(layout := "shakespeare as LEAF's")
    columns = {"x": "a", "y": "b"}
    save(tmp_path, tables, columns)
    expected = load(layout, columns, path=str(tmp_path))
    save(tmp_path, {"train": {**tables["train"], "line": ["a line"] * 24}}, columns)
    assert_equal_data(load(layout, columns, path=str(tmp_path)), expected)


@pytest.mark.parametrize(
    ("layout", "part", "name", "message"),
    [
        ("uci_har", "test", "subject", r"row 0 is of subject 1, which "),
        ("uci_har", "train", "label", r"row 5 has label 6; labels must be whole, at least 0 and at most 5"),
        ("reddit", "train", "y", r"row 0 is not 'their x' shifted by one"),
        ("reddit", "test", "x", r"row \d+ holds only <PAD>"),
    ],
)
def test_a_mismatch_between_columns_gives_the_users_column_name(
    layout: str, part: str, name: str, message: str, tmp_path: Path
) -> None:
    tables, _ = make_tables(layout)
    n = len(tables[part][name])
    wrong: dict[str, list[Any]] = {
        "subject": [1] * n,
        "label": [i % 6 + 1 for i in range(n)],
        "y": [["so"] * 10] * n,
        "x": [["<PAD>"] * 10] * n,
    }
    columns = add_prefix(names_of(tables))
    save(tmp_path, {**tables, part: {**tables[part], name: wrong[name]}}, columns)
    with pytest.raises(
        DataError, match=rf"^dataset\.columns\.{name}=their {name}: .*column 'their {name}',? {message}"
    ):
        load(layout, columns, path=str(tmp_path))
