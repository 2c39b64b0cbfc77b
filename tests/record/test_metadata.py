"""Run metadata: every field of RunInfo is read back, and damage is reported."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from fedcohort.errors import CheckpointError
from fedcohort.record import metadata
from record.example_run import make_run_info


def write(folder: Path) -> None:
    folder.mkdir()
    metadata.save_info(make_run_info(folder))


def test_damaged_metadata_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "run")
    (tmp_path / "run" / "info.json").write_text('{"starts_ms": [1')
    with pytest.raises(CheckpointError, match=r"info\.json is damaged"):
        metadata.load_info(tmp_path / "run")


def test_damaged_or_missing_arrays_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "run")
    path = tmp_path / "run" / metadata.ARRAYS_FILE
    for damaged in (path.read_bytes()[:100], b""):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"info\.npz is damaged"):
            metadata.load_info(tmp_path / "run")
    path.unlink()
    with pytest.raises(CheckpointError, match=r"copied in part: it holds no info\.npz"):
        metadata.load_info(tmp_path / "run")


def test_metadata_with_inline_arrays_is_read(tmp_path: Path) -> None:
    """A folder of an older version."""
    facts = make_run_info(tmp_path / "run")
    write(tmp_path / "run")
    path = tmp_path / "run" / metadata.INFO_FILE
    stored = json.loads(path.read_text())
    for name, value in stored["info"].items():
        if isinstance(value, dict) and value.keys() == {"dtype"}:
            stored["info"][name] = {"dtype": value["dtype"], "array": getattr(facts, name).tolist()}
    del stored["digest"]
    path.write_text(json.dumps(stored))
    (tmp_path / "run" / metadata.ARRAYS_FILE).unlink()
    np.testing.assert_array_equal(metadata.load_info(tmp_path / "run").class_counts, facts.class_counts)


def test_small_integers_take_four_bytes(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    facts = make_run_info(tmp_path / "run", class_counts=np.full((20_000, 10), 3))
    metadata.save_info(facts)
    assert (tmp_path / "run" / metadata.ARRAYS_FILE).stat().st_size < 4 * 200_000 + 12 * (8 + 8 + 8) + 2_000
    assert metadata.load_info(tmp_path / "run").class_counts.dtype == np.int64


def test_every_field_is_read_back(tmp_path: Path) -> None:
    facts = make_run_info(tmp_path / "run", noise_rate=np.array([0.1, np.nan]))
    facts.folder.mkdir()
    metadata.save_info(facts)
    moved_folder = facts.folder.rename(tmp_path / "moved")
    loaded = metadata.load_info(moved_folder)
    assert loaded.folder == moved_folder
    for field in dataclasses.fields(facts):
        if field.name != "folder":
            np.testing.assert_equal(getattr(loaded, field.name), getattr(facts, field.name))
    assert loaded.class_counts.dtype == facts.class_counts.dtype


def test_larger_integers_keep_their_type() -> None:
    assert metadata._shrink_integers(np.array([2**40])).dtype == np.int64
    assert metadata._shrink_integers(np.array([2**31 - 1])).dtype == np.int32
    assert metadata._shrink_integers(np.array([1], dtype=np.uint8)).dtype == np.int32, "the sum of two counts fits"
