"""Both files of a study's results are checked before a value is used; those of older versions are read as they are."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from fedcohort.errors import DataError
from fedcohort.record import manifest
from fedcohort.study import result_files
from fedcohort.study.results import Results, load_results
from study.small_study import make_results, write_study
from study.test_judge import LATE_MEANS, METHODS


def save_results(folder: Path) -> Results:
    results = make_results(write_study(folder, **METHODS), LATE_MEANS)
    results.save_files()
    return results


def test_any_flipped_bit_is_detected(tmp_path: Path) -> None:
    save_results(tmp_path)
    for name in (result_files.RESULTS_FILE, result_files.CURVES_FILE):
        content = (tmp_path / name).read_bytes()
        for offset in range(0, len(content), len(content) // 9):
            (tmp_path / name).write_bytes(content[:offset] + bytes([content[offset] ^ 8]) + content[offset + 1 :])
            with pytest.raises(DataError, match=rf"{name} is damaged: .*type git restore"):
                load_results(write_study(tmp_path, **METHODS))
        (tmp_path / name).write_bytes(content)
    load_results(write_study(tmp_path, **METHODS))


def test_files_of_an_older_version_are_read(tmp_path: Path) -> None:
    save_results(tmp_path)
    manifest.remove_manifest(tmp_path)
    curves = parquet.read_table(tmp_path / result_files.CURVES_FILE)
    single = curves.set_column(4, "value", curves["value"].cast(pa.float32()))
    parquet.write_table(single, tmp_path / result_files.CURVES_FILE)
    rows = load_results(write_study(tmp_path, **METHODS)).rows
    assert rows["equal", "flash", 0]["late"] == pytest.approx(LATE_MEANS["equal"]["flash"][0])


def test_missing_results_with_existing_curves_are_an_error(tmp_path: Path) -> None:
    save_results(tmp_path)
    (tmp_path / result_files.RESULTS_FILE).unlink()
    for _ in range(2):  # with a manifest and without
        with pytest.raises(DataError, match=r"results\.parquet is missing"):
            load_results(write_study(tmp_path, **METHODS))
        manifest.remove_manifest(tmp_path)


@pytest.mark.parametrize("name", ["cell", "seed", "status"])
def test_a_column_must_have_its_type_and_no_empty_cell(tmp_path: Path, name: str) -> None:
    save_results(tmp_path)
    manifest.remove_manifest(tmp_path)
    rows = parquet.read_table(tmp_path / result_files.RESULTS_FILE)
    index = rows.column_names.index(name)
    parquet.write_table(
        rows.set_column(index, name, rows[name].cast(pa.large_binary()))
        if name != "seed"
        else rows.set_column(index, name, rows[name].cast(pa.float64())),
        tmp_path / result_files.RESULTS_FILE,
    )
    with pytest.raises(DataError, match=rf"its column {name} must be of the type"):
        load_results(write_study(tmp_path, **METHODS))
    parquet.write_table(
        rows.set_column(index, name, pa.nulls(rows.num_rows, rows[name].type)), tmp_path / result_files.RESULTS_FILE
    )
    with pytest.raises(DataError, match=rf"its column {name} has empty cells"):
        load_results(write_study(tmp_path, **METHODS))


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("results", lambda table: pa.concat_tables([table, table.slice(0, 1)]), "it has two rows of equal flash 0"),
        ("results", lambda table: table.append_column("status", table["status"]), "it has two columns status"),
        ("curves", lambda table: table.append_column("value", table["value"]), "it has two columns value"),
        (
            "results",
            lambda table: table.set_column(
                table.column_names.index("status"), "status", pa.array(["dnoe"] * table.num_rows)
            ),
            "its column status has the unknown value 'dnoe'",
        ),
    ],
)
def test_ambiguous_rows_columns_and_states_are_rejected(tmp_path: Path, name: str, change: Any, reason: str) -> None:
    """As after a merge: of two rows of a run the last one counted, and a run of an unknown state was run again."""
    save_results(tmp_path)
    manifest.remove_manifest(tmp_path)
    path = tmp_path / f"{name}.parquet"
    parquet.write_table(change(parquet.read_table(path)), path)
    with pytest.raises(DataError, match=rf"{name}\.parquet is damaged: {reason}"):
        load_results(write_study(tmp_path, **METHODS))
