"""Read columns of lists, and of images, as arrays."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns, images
from fedcohort.dataset.messages import format_more_rows_text

if TYPE_CHECKING:
    from fedcohort.dataset.table import Frame


def read_list_chunk(
    frame: "Frame", column: str, chunk: pa.Array, chunk_start: int, image_shape: tuple[int, ...], allow_missing: bool
) -> np.ndarray:
    """Return adjacent cells of a column of lists or images, none of which is empty, as an array [rows, ...].

    Lists of integers keep their type, other lists are float32, and images are uint8 [rows, channels, height, width].

    Args:
        frame: the table, for messages.
        column: name of the column.
        chunk: cells of adjacent rows.
        chunk_start: row of the first of these cells.
        image_shape: shape of the images in earlier chunks of the column; () if there are none.
        allow_missing: whether a missing number becomes NaN; otherwise it is an error.

    Raises:
        DataError: a cell holds no list of numbers, lists have different lengths, or a number is missing.
    """
    if images.is_image_type(chunk.type):
        return images.decode_images(frame, column, chunk, chunk_start, image_shape)
    # The `datasets` library stores arrays (Array2D, Array3D) as an extension of lists.
    flat_values, list_shape = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk, [len(chunk)]
    while arrow_columns.is_list_type(flat_values.type):
        list_shape.append(_check_list_length(frame, column, flat_values, len(flat_values) // len(chunk), chunk_start))
        flat_values = flat_values.flatten()
    if len(list_shape) == 1 or not arrow_columns.is_number_type(flat_values.type):
        problem_text = f": column {column!r} must hold lists of numbers or images, but holds {chunk.type}"
        raise frame.column_error(column, problem_text)
    list_values = np.asarray(flat_values.to_numpy(zero_copy_only=False)).reshape(list_shape)
    if list_values.dtype.kind in "iu":
        return list_values
    list_values = arrow_columns.as_float64(flat_values).astype(np.float32).reshape(list_shape)
    has_missing_number = np.asarray(np.isnan(list_values.reshape(len(list_values), -1)).any(1) & (not allow_missing))
    problem_text = "has a value that is missing, NaN or infinite" + format_more_rows_text(has_missing_number)
    frame.check_cells(
        column, has_missing_number, lambda row: problem_text, chunk_start, frame.remedy + frame.number_cell_remedy
    )
    return list_values


def _check_list_length(frame: "Frame", column: str, list_array: pa.Array, lists_per_row: int, chunk_start: int) -> int:
    """Return the length of all lists in `list_array`. Raises `DataError` if the lengths differ or are 0.

    Args:
        frame: the table, for messages.
        column: name of the column.
        list_array: lists of adjacent rows.
        lists_per_row: number of lists in each row.
        chunk_start: number of the first of these rows.
    """
    list_lengths = pc.fill_null(pc.list_value_length(list_array), -1).to_numpy(zero_copy_only=False)
    if len(list_lengths) and list_lengths[0] == 0:
        raise frame.cell_error(column, chunk_start, "holds an empty list, which has no values: fill or remove it")
    has_other_list_length = (list_lengths != list_lengths[0]).reshape(-1, lists_per_row).any(1)
    problem_text = "has a list of another length than the first: pad or cut the lists"
    frame.check_cells(column, has_other_list_length, lambda row: problem_text, chunk_start)
    return int(list_lengths[0])
