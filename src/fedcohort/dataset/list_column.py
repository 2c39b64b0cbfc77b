"""Read columns of lists, and of images, as arrays."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns, images
from fedcohort.dataset.messages import describe_more_rows

if TYPE_CHECKING:
    from fedcohort.dataset.table import Frame


def read_list_chunk(
    frame: "Frame", name: str, chunk: pa.Array, first_row: int, image_shape: tuple[int, ...], allow_missing: bool
) -> np.ndarray:
    """Return adjacent cells of a column of lists or images, none of which is empty, as an array [rows, ...].

    Lists of integers keep their type, other lists are float32, and images are uint8 [rows, channels, height, width].

    Args:
        frame: the table, for messages.
        name: name of the column.
        chunk: cells of adjacent rows.
        first_row: row of the first of these cells.
        image_shape: shape of the images in earlier chunks of the column; () if there are none.
        allow_missing: whether a missing number becomes NaN; otherwise it is an error.

    Raises:
        DataError: a cell holds no list of numbers, lists have different lengths, or a number is missing.
    """
    if images.holds_images(chunk.type):
        return images.decode_chunk(frame, name, chunk, first_row, image_shape)
    # The `datasets` library stores arrays (Array2D, Array3D) as an extension of lists.
    flat_array, array_shape = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk, [len(chunk)]
    while arrow_columns.is_list(flat_array.type):
        array_shape.append(_check_list_length(frame, name, flat_array, len(flat_array) // len(chunk), first_row))
        flat_array = flat_array.flatten()
    if len(array_shape) == 1 or not arrow_columns.is_number(flat_array.type):
        problem_text = f": column {name!r} must hold lists of numbers or images, but holds {chunk.type}"
        raise frame.column_error(name, problem_text)
    cell_array = np.asarray(flat_array.to_numpy(zero_copy_only=False)).reshape(array_shape)
    if cell_array.dtype.kind in "iu":
        return cell_array
    cell_array = arrow_columns.to_numbers(flat_array).astype(np.float32).reshape(array_shape)
    is_missing = np.asarray(np.isnan(cell_array.reshape(len(cell_array), -1)).any(1) & (not allow_missing))
    problem_text = "has a value that is missing, NaN or infinite" + describe_more_rows(is_missing)
    frame.check_cells(name, is_missing, lambda row: problem_text, first_row, frame.remedy + frame.number_remedy)
    return cell_array


def _check_list_length(frame: "Frame", name: str, list_array: pa.Array, lists_per_row: int, first_row: int) -> int:
    """Return the length of all lists in `list_array`. Raises `DataError` if the lengths differ or are 0.

    Args:
        frame: the table, for messages.
        name: name of the column.
        list_array: lists of adjacent rows.
        lists_per_row: number of lists in each row.
        first_row: number of the first of these rows.
    """
    list_lengths = pc.fill_null(pc.list_value_length(list_array), -1).to_numpy(zero_copy_only=False)
    if len(list_lengths) and list_lengths[0] == 0:
        raise frame.cell_error(name, first_row, "holds an empty list, which has no values: fill or remove it")
    has_other_length = (list_lengths != list_lengths[0]).reshape(-1, lists_per_row).any(1)
    problem_text = "has a list of another length than the first: pad or cut the lists"
    frame.check_cells(name, has_other_length, lambda row: problem_text, first_row)
    return int(list_lengths[0])
