"""Read the cells of a column as numbers, and describe cells that hold none.

A cell counts as missing where it is empty, NaN, infinite, beyond float32, or a text that is not a number.
"""

import json
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32

from fedcohort.types import Values

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
LARGEST = float(np.finfo(np.float32).max)
LONGEST = 40  # characters of a cell that a line shows


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds numbers; truth values are 0 and 1."""
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def numbers(column: pa.ChunkedArray) -> Values:
    """Return the numbers, float64 [rows]; NaN if a cell is missing."""
    if is_text(column.type):
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.match_substring_regex(column, NUMBER), column, pa.scalar(None, column.type))
    values: Values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) <= LARGEST, values, np.nan)


def short_numbers(array: pa.Array) -> Float32[np.ndarray, "_n"]:
    """Return `numbers` of a piece as float32, [n]; a float32 column is not converted to float64 in between."""
    if not pa.types.is_float32(array.type):
        return numbers(pa.chunked_array([array])).astype(np.float32)
    values: np.ndarray = array.to_numpy(zero_copy_only=False)
    missing = ~np.isfinite(values)
    return np.where(missing, np.float32(np.nan), values) if missing.any() else values


def pieces(column: pa.ChunkedArray) -> Iterator[tuple[slice, pa.ChunkedArray]]:
    """Yield the column's chunks with the rows of each, so that only one chunk is converted at a time."""
    start = 0
    for chunk in column.chunks:
        yield slice(start, start + len(chunk)), pa.chunked_array([chunk])
        start += len(chunk)


def share_of_numbers(column: pa.ChunkedArray) -> float:
    """Return the share of numbers among the cells of a column of texts that are not empty.

    It is 0 if all are.
    """
    full_cells = len(column) - int(np.count_nonzero(empty(column)))
    return int(np.isfinite(numbers(column)).sum()) / full_cells if full_cells else 0.0


def is_mixed(column: pa.ChunkedArray) -> bool:
    """Return whether half or more of a text column's cells are numbers, but not all: numbers with faulty cells."""
    return is_text(column.type) and 0.5 <= share_of_numbers(column) < 1


def may_be_numbers(column: pa.ChunkedArray) -> bool:
    """Return whether a column can be read as numbers, possibly with missing cells."""
    if is_text(column.type):
        return share_of_numbers(column) >= 0.5
    return is_number(column.type) or bool(pa.types.is_null(column.type))


def empty(column: pa.ChunkedArray) -> np.ndarray:
    """Return which cells are null, NaN or a text of nothing but spaces, bool [rows]."""
    is_empty = column.is_null(nan_is_null=True)
    if is_text(column.type):
        is_empty = pc.or_(is_empty, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True))
    return np.asarray(is_empty.to_numpy(), dtype=bool)


def fault(column: pa.ChunkedArray, row: int) -> str:
    """Return what is wrong with a missing cell, in the form that follows "row 3" in a message."""
    value = column[row].as_py()
    if value is None or (isinstance(value, str) and not value.strip()):
        return "is empty"
    if isinstance(value, str):
        return f"holds {value[:LONGEST]!r}, which is not a number"
    if not np.isfinite(float(value)):
        return "has a value that is NaN or infinite"
    return f"holds {float(value):g}, which float32 can't hold"


def class_names(notes: Mapping[bytes, bytes] | None, name: str) -> list[str]:
    """Return the names of a column's classes from the metadata of the `datasets` library; empty without any."""
    try:
        names = json.loads((notes or {}).get(b"huggingface", b"{}"))["info"]["features"][name]["names"]
    except (ValueError, LookupError, TypeError):
        return []
    return [str(entry) for entry in names] if isinstance(names, list) else []


def index_columns(notes: bytes) -> list[str]:
    """Return the columns that pandas wrote as an index, from its metadata in a Parquet file."""
    try:
        read = json.loads(notes)
    except ValueError:
        return []
    names = read.get("index_columns") if isinstance(read, Mapping) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def is_date(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds dates, with or without a time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dates as days since 1970-01-01, float64; null where a cell is empty."""
    microseconds = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return pc.divide(microseconds.cast(pa.float64(), safe=False), 86_400e6)
