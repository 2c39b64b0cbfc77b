"""The two files of a study's results, written with checksums and a manifest, and checked column by column when read.

    results.parquet   one row a run
    curves.parquet    one row an evaluated round, of the runs that are done

Curves are in double precision. What follows from them is computed again when they are read, and a resumed study equals
an uninterrupted one to the bit. Curves of older versions are in single precision.
"""

import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile, DataError
from fedcohort.host import parquet
from fedcohort.host.disk import is_file
from fedcohort.record import manifest
from fedcohort.startup.compose import read_yaml

Row = dict[str, Any]  # of `results.parquet`, by column
RESULTS_FILE, CURVES_FILE = "results.parquet", "curves.parquet"
DONE, REFUSED, FAILED = "done", "refused", "failed"
COLUMN_TYPES: dict[str, str] = read_yaml(Path(__file__).with_name("result_columns.yaml"))
KEY_COLUMNS = {"cell": "string", "selector": "string", "seed": "int64"}  # setting, method, seed
CURVE_COLUMNS = {"step": "int32", "value": "float64", "virtual_s": "float64", "bytes": "float64"}
SINGLE_PRECISION_TYPES = dict.fromkeys(("value", "virtual_s", "bytes"), "float")  # older versions, in pyarrow's name
REQUIRED_COLUMNS = (*KEY_COLUMNS, "status", "metric", "words")
RECOVERY_TEXT = (
    f"type git restore {RESULTS_FILE} {CURVES_FILE} {manifest.MANIFEST_FILE}, or remove them to rerun the study"
)


def write_result_files(folder: Path, rows: Any, curve_table: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Write both result files and their manifest into a study's folder.

    After an interruption each file has either its old or its new content.

    Args:
        folder: folder of the study.
        rows: the runs, a `pyarrow.Table`.
        curve_table: the evaluated rounds of all runs, a `pyarrow.Table`.
    """
    buffer_by_file = {CURVES_FILE: io.BytesIO(), RESULTS_FILE: io.BytesIO()}
    for file_buffer, parquet_table in (
        (buffer_by_file[CURVES_FILE], curve_table),
        (buffer_by_file[RESULTS_FILE], rows),
    ):
        parquet.write_table(parquet_table, file_buffer, compression="zstd")
    manifest.replace_files(
        folder, {name: file_buffer.getbuffer() for name, file_buffer in buffer_by_file.items()}, create_manifest=True
    )


def has_study_results(folder: Path) -> bool:
    """Return whether `folder` holds results of a study; they are not read.

    Raises `DataError` if `results.parquet` differs from the manifest, or is missing although the manifest has it as
    written. After a first write that was interrupted, whose manifest allows a missing file, the result is False. Curves
    without a manifest count as results: reading them says what is missing.
    """
    try:
        manifest.check_file(folder / RESULTS_FILE)
    except DamagedFile as error:
        raise DataError(f"{error}. {RECOVERY_TEXT}") from error
    has_only_curves_file = (folder / CURVES_FILE).exists() and not (folder / manifest.MANIFEST_FILE).exists()
    return os.path.lexists(folder / RESULTS_FILE) or has_only_curves_file  # reading says what is missing


def read_run_rows(folder: Path) -> list[Row]:
    """Read `results.parquet` in `folder`, one dictionary a run; columns that an older version did not write are absent.

    Raises `DataError` for a missing or damaged file.
    """
    results_file = folder / RESULTS_FILE
    rows: list[Row] = _read_table(results_file, REQUIRED_COLUMNS, COLUMN_TYPES).to_pylist()
    # conflicting copies: neither is known to be right
    if repeated_key := _find_repeated_text(" ".join(str(run_row[name]) for name in KEY_COLUMNS) for run_row in rows):
        raise _make_damage_error(results_file, f"it has two rows of {repeated_key}")
    for run_row in rows:
        if run_row["status"] not in (DONE, REFUSED, FAILED):
            raise _make_damage_error(results_file, f"its column status has the unknown value {run_row['status']!r}")
    return rows


def read_curves(folder: Path) -> Any:  # noqa: ANN401
    """Read `curves.parquet` in `folder` as a data frame with the rounds of each run in order.

    Raises `DataError` for a missing or damaged file.
    """
    curves_file = folder / CURVES_FILE
    curve_frame = _read_table(curves_file, (*KEY_COLUMNS, *CURVE_COLUMNS), {**KEY_COLUMNS, **CURVE_COLUMNS}).to_pandas()
    is_run_of_previous_row = (curve_frame[list(KEY_COLUMNS)] == curve_frame[list(KEY_COLUMNS)].shift()).all(axis=1)
    is_round_out_of_order = (is_run_of_previous_row & (curve_frame["step"].diff() <= 0)) | (curve_frame["step"] < 0)
    if is_round_out_of_order.any() or curve_frame[~is_run_of_previous_row].duplicated([*KEY_COLUMNS]).any():
        raise _make_damage_error(curves_file, "the rounds of a run are not in ascending order, or one is repeated")
    return curve_frame


def _read_table(parquet_file: Path, required_columns: Sequence[str], types: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Read a Parquet file as a `pyarrow.Table`, and check its columns.

    A table of an older version without rows may have columns without a type.

    Args:
        parquet_file: the file.
        required_columns: columns that must exist, without empty cells.
        types: type of each known column.

    Raises:
        DataError: the file is missing or damaged, or a column is wrong.
    """
    import pyarrow as pa

    try:
        manifest.check_file(parquet_file)
        if not is_file(parquet_file):
            raise DataError(f"{parquet_file} is missing. {RECOVERY_TEXT}")
        parquet_table = parquet.open_file(parquet_file).read()
    except DamagedFile as error:
        raise DataError(f"{error}. {RECOVERY_TEXT}") from error
    except (OSError, pa.ArrowException) as error:
        raise _make_damage_error(parquet_file, f"it can't be read ({str(error).splitlines()[0]})") from error
    if repeated_column := _find_repeated_text(parquet_table.column_names):
        raise _make_damage_error(parquet_file, f"it has two columns {repeated_column}")
    for name in required_columns:
        if name not in parquet_table.column_names:
            raise _make_damage_error(parquet_file, f"it has no column {name}")
        if parquet_table[name].null_count:
            raise _make_damage_error(parquet_file, f"its column {name} has empty cells")
    for schema_field in parquet_table.schema:
        name, dtype = schema_field.name, str(schema_field.type)
        allowed_dtypes = {
            types.get(name, dtype),
            {"float64": "double"}.get(types.get(name, "")),
            SINGLE_PRECISION_TYPES.get(name),
        }
        if dtype not in allowed_dtypes and (dtype != "null" or parquet_table.num_rows):
            raise _make_damage_error(parquet_file, f"its column {name} must be of the type {types[name]}, not {dtype}")
    return parquet_table


def _find_repeated_text(searched_texts: Iterable[str]) -> str | None:
    return next((repeated_text for repeated_text, n_repeats in Counter(searched_texts).items() if n_repeats > 1), None)


def _make_damage_error(path: Path, damage_reason: str) -> DataError:
    return DataError(f"{path} is damaged: {damage_reason}. {RECOVERY_TEXT}")
