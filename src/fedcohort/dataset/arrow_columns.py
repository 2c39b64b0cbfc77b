"""Types and values of the columns of pyarrow tables.

A cell of a column of numbers is missing if it is empty, NaN, infinite, beyond float32, or a text that is not a number.
"""

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.arrays import MAX_FLOAT32
from fedcohort.types import Values

NUMBER_PATTERN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
ROW_NUMBER_NAMES = re.compile(r"|Unnamed: \d+(\.\d+)*|__index_level_\d+__")  # how pandas writes an index without a name
MAX_CELL_LENGTH = 40  # characters of a cell that a message shows


def is_number_type(dtype: pa.DataType) -> bool:
    """Return whether a column of type `dtype` holds numbers; booleans count as the numbers 0 and 1."""
    numeric_type_checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(matches_type(dtype) for matches_type in numeric_type_checks)


def is_text_type(dtype: pa.DataType) -> bool:
    """Return whether a column of type `dtype` holds texts."""
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def is_list_type(dtype: pa.DataType) -> bool:
    """Return whether a column of type `dtype` holds lists."""
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype))


def is_date_type(dtype: pa.DataType) -> bool:
    """Return whether a column of type `dtype` holds dates, with or without a time of day."""
    return bool(pa.types.is_date(dtype) or pa.types.is_timestamp(dtype))


def as_float64(column: pa.ChunkedArray | pa.Array) -> Values:
    """Return the numbers of a column of numbers, or of texts that can be numbers, as float64 [rows].

    A cell is NaN in the result if it is empty, infinite, larger than float32 allows, or a text that is not a number.
    """
    if is_text_type(column.type):
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.match_substring_regex(column, NUMBER_PATTERN), column, pa.scalar(None, column.type))
    cell_numbers = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(cell_numbers) <= MAX_FLOAT32, cell_numbers, np.nan)


def share_of_numbers(column: pa.ChunkedArray) -> float:
    """Return the share of the non-empty cells of a text column that can be read as numbers; 0 if all are empty."""
    n_filled_cells = len(column) - int(np.count_nonzero(find_empty_cells(column)))
    return int(np.isfinite(as_float64(column)).sum()) / n_filled_cells if n_filled_cells else 0.0


def may_hold_numbers(column: pa.ChunkedArray) -> bool:
    """Return whether `column` may be read as numbers.

    It holds numbers, is a text column of which at least half of the non-empty cells are numbers, or has no type, since
    all cells are null.
    """
    if is_text_type(column.type):
        return share_of_numbers(column) >= 0.5
    return is_number_type(column.type) or bool(pa.types.is_null(column.type))


def find_empty_cells(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return for each cell of `column` whether it is null, NaN, or a text of spaces only, bool [rows]."""
    is_empty_cell = column.is_null(nan_is_null=True)
    if is_text_type(column.type):
        is_empty_cell = pc.or_(is_empty_cell, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True))
    return np.asarray(is_empty_cell.to_numpy(zero_copy_only=False), dtype=bool)


def explain_missing_cell(column: pa.ChunkedArray, row: int) -> str:
    """Return why the cell `row` of a column of numbers is missing: the end of a message that begins "row 3 "."""
    cell_value = column[row].as_py()
    if cell_value is None or (isinstance(cell_value, str) and not cell_value.strip()):
        return "is empty"
    if isinstance(cell_value, str):
        return f"holds {cell_value[:MAX_CELL_LENGTH]!r}, which is not a number"
    if not np.isfinite(float(cell_value)):
        return "has a value that is NaN or infinite"
    return f"holds {float(cell_value):g}, which float32 can't hold"


def read_schema_json(schema: pa.Schema, metadata_key: bytes, *json_keys: str) -> list[str]:
    """Return a list of texts from the JSON that a library stored in a table's metadata; [] if there is no such list.

    Args:
        schema: the table's schema.
        metadata_key: key of the library's JSON in the metadata, such as b"pandas".
        json_keys: keys of the nested JSON objects that lead to the list.
    """
    try:
        nested_json = json.loads((schema.metadata or {}).get(metadata_key, b"{}"))
        for json_key in json_keys:
            nested_json = nested_json[json_key]
        return [json_entry for json_entry in nested_json if isinstance(json_entry, str)]
    except (ValueError, LookupError, TypeError):
        return []


def is_row_index_column(table: Any, column: str) -> bool:  # noqa: ANN401  a `pa.Table` or `ParquetTable`
    """Return whether the column `column` holds the row index that pandas writes with a table.

    Such a column is recognised by its name, by the metadata that pandas writes, or by distinct integers in `index`.

    Args:
        table: a `pa.Table` or `ParquetTable`.
        column: name of the column.
    """
    if ROW_NUMBER_NAMES.fullmatch(column) or column in read_schema_json(table.schema, b"pandas", "index_columns"):
        return True
    if column != "index":
        return False
    index_cells = table.column(column)
    return pa.types.is_integer(index_cells.type) and bool(pc.count_distinct(index_cells).as_py() == len(index_cells))


def dates_to_days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the dates in `column` as days since 1970-01-01, float64, fractions for times; null for empty cells."""
    epoch_microseconds = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return pc.divide(epoch_microseconds.cast(pa.float64(), safe=False), 86_400e6)
