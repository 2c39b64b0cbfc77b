"""The two files of a study's results: written with checksums and a manifest, read with a look at every column.

    results.parquet   a row a run
    curves.parquet    a row for each round evaluated, of the runs that are done

Curves are in double precision: what follows from them is computed again when they are read, and a resumed study has the
bits of an uninterrupted one. Those of older versions are in single precision.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile, DataError
from fedcohort.host import parquet
from fedcohort.host.disk import is_file
from fedcohort.record import manifest

RESULTS, CURVES = "results.parquet", "curves.parquet"
DONE, REFUSED, FAILED = "done", "refused", "failed"
TEXTS: tuple[str, ...] = ("cell", "selector", "status", "reason", "words", "stamp", "config_hash", "budget", "metric")
TEXTS += ("commit", "sources", "versions", "fingerprint", "when", "yardstick", "follows")
TEXTS += ("behaviour", "compared", "differs")  # `behaviour.py`; the commit that was compared last, and what differed
NUMBERS: tuple[str, ...] = (
    "late",
    "last",
    "best",
    "target",
    "rounds_to_target",
    "virtual_s_to_target",
    "bytes_to_target",
)
NUMBERS += ("virtual_s", "bytes", "probe_bytes", "client_flops", "server_flops", "wall_s")
COLUMNS = {**dict.fromkeys(TEXTS, "string"), "seed": "int64", "dirty": "bool", "rounds": "int64"}
COLUMNS |= dict.fromkeys(NUMBERS, "float64")
KEY = {"cell": "string", "selector": "string", "seed": "int64"}
AXES = {"step": "int32", "value": "float64", "virtual_s": "float64", "bytes": "float64"}
SINGLE = dict.fromkeys(("value", "virtual_s", "bytes"), "float")  # of older versions, as pyarrow calls it
NEEDED = (*KEY, "status", "metric", "words")
CURE = f"git restore brings back {RESULTS}, {CURVES} and {manifest.NAME} together; to run the study again remove them"


def write(folder: Path, rows: Any, curves: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Write both tables, each whole or not at all, curves first, and the manifest."""
    packed = {CURVES: io.BytesIO(), RESULTS: io.BytesIO()}
    for file, table in ((packed[CURVES], curves), (packed[RESULTS], rows)):
        parquet.write(table, file, compression="zstd")
    manifest.replace(folder, {name: file.getbuffer() for name, file in packed.items()}, create=True)


def rewrite(folder: Path) -> None:
    """Write the files of an older version again, each value as it is, with checksums and a manifest."""
    write(folder, *(_read(folder / name) for name in (RESULTS, CURVES)))


def exist(folder: Path) -> bool:
    """Return whether the study has results. Raises `DataError` where they are missing beside their curves."""
    path = folder / RESULTS
    with_manifest = (folder / manifest.NAME).exists()
    try:
        manifest.check(path)
        there = is_file(path)
    except DamagedFile as error:
        raise DataError(f"{error}. {CURE}") from error
    if not there and not with_manifest and (folder / CURVES).exists():
        raise DataError(f"{path} is missing beside {CURVES}. {CURE}")
    return there


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Read `results.parquet`; a column that an older version didn't write is absent. Raises `DataError`."""
    path = folder / RESULTS
    table = _read(path)
    _check_columns(path, table, NEEDED, COLUMNS)
    rows: list[dict[str, Any]] = table.to_pylist()
    keys = set[tuple[Any, ...]]()
    for row in rows:
        key = tuple(row[name] for name in KEY)
        if key in keys:
            raise _wrong(path, f"it has two rows of cell {key[0]}, selector {key[1]}, seed {key[2]}")
        if row["status"] not in (DONE, REFUSED, FAILED):
            raise _wrong(path, f"the status of {' '.join(map(str, key))} is {row['status']!r}, not {DONE}, ...")
        keys.add(key)
    return rows


def read_curves(folder: Path) -> Any:  # noqa: ANN401
    """Read `curves.parquet` as a data frame, one run's rounds after the other. Raises `DataError`."""
    path = folder / CURVES
    table = _read(path)
    _check_columns(path, table, (*KEY, *AXES), {**KEY, **AXES})
    frame = table.to_pandas()
    same = (frame[list(KEY)] == frame[list(KEY)].shift()).all(axis=1)
    if (
        (same & (frame["step"].diff() <= 0)).any()
        or frame.duplicated([*KEY, "step"]).any()
        or (frame["step"] < 0).any()
    ):
        raise _wrong(path, "the rounds of a run are not in order, each once")
    return frame


def _read(path: Path) -> Any:  # noqa: ANN401
    """Read the table in `path`. Raises `DataError` where it is not what was written, or no table."""
    import pyarrow as pa

    try:
        manifest.check(path)
        if not is_file(path):
            raise DataError(f"{path} is missing. {CURE}")
        return parquet.open_file(path).read()
    except DamagedFile as error:
        raise DataError(f"{error}. {CURE}") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is damaged: it can't be read ({str(error).splitlines()[0]}). {CURE}") from error


def _check_columns(path: Path, table: Any, needed: Sequence[str], kinds: Mapping[str, str]) -> None:  # noqa: ANN401
    """Check that the columns are there, once each, of their types, the needed ones without empty cells.

    A table of an older version without rows may have columns of no type. Raises `DataError`.
    """
    for name in needed:
        if name not in table.column_names:
            raise _wrong(path, f"it has no column {name}")
    for field in table.schema:
        name, kind = field.name, str(field.type)
        wanted = {kinds.get(name, kind), {"float64": "double"}.get(kinds.get(name, "")), SINGLE.get(name)}
        if table.column_names.count(name) > 1:
            raise _wrong(path, f"it has two columns {name}")
        if kind not in wanted and (kind != "null" or table.num_rows):
            raise _wrong(path, f"its column {name} must be of the type {kinds[name]}, not {kind}")
        if name in needed and table[name].null_count:
            raise _wrong(path, f"its column {name} has empty cells")


def _wrong(path: Path, what: str) -> DataError:
    return DataError(f"{path} is damaged: {what}. {CURE}")
