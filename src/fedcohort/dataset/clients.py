"""Read the natural clients of the rows of tables from a column of names or numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids


@dataclass(frozen=True)
class Owners:
    """The natural clients of the rows of a training and a test table.

    Attributes:
        train_clients: client of each training row, int64 [N], numbered in the sorted order of names; None without a
            column.
        test_clients: client of each test row, int64 [N]; None without a test table, or if it lacks the column.
        client_names: names of the clients in the tables, by number.
    """

    train_clients: Ids | None = None
    test_clients: Ids | None = None
    client_names: Sequence[str] = ()


def keep_spellings(frames: Sequence[Frame], columns: Sequence[str]) -> list[Frame]:
    """Return tables whose column of names holds texts in all CSV files, unless it holds plain numbers in all of them.

    A plain number is spelt as 7. The names 007 and 07 are texts, which would both be read as the number 7. So are whole
    numbers that float64 can't hold exactly.

    Args:
        frames: tables with all rows of their files.
        columns: name of the column in each table; a table without the column is returned unchanged.
    """
    needs_texts, text_frames = False, list(frames)
    for i, (frame, column) in enumerate(zip(frames, columns, strict=True)):
        if frame.read_texts is None or frame.row_ids is not None or column not in frame.names:
            continue
        numbers, is_integer = frame.column(column), pa.types.is_integer(frame.get_column_type(column))
        needs_texts |= arrow_columns.is_text_type(numbers.type)
        if is_integer or pa.types.is_floating(numbers.type):
            texts = pc.if_else(pc.is_valid(numbers), frame.read_texts(column), pa.scalar(None, pa.string()))
            is_whole_number = pc.match_substring_regex(texts, "" if is_integer else r"^[+-]?\d+$")
            is_other_spelling = pc.and_(is_whole_number, pc.not_equal(numbers.cast(pa.string()), texts))
            needs_texts |= bool(pc.any(is_other_spelling).as_py())
            text_frames[i] = replace(frame, table=frame.table.set_column(frame.names.index(column), column, texts))
    return text_frames if needs_texts else list(frames)


def read_natural_clients(frames: Sequence[Frame], column_name: str | None) -> Owners:
    """Return the clients of the rows of a training and a test table.

    Args:
        frames: the training table, and possibly the test table, which may lack the column.
        column_name: name of the column of clients; None for data without clients.

    Raises:
        DataError: the training table lacks the column, or a cell is empty or invalid; the message names its row.
    """
    if column_name is None:
        return Owners()
    frames = [frame for frame in frames if frame is frames[0] or column_name in frame.names]
    client_numbers, client_names = read_client_column(frames, [column_name] * len(frames))
    train_clients, test_clients = np.split(client_numbers, [frames[0].table.num_rows])
    return Owners(train_clients, test_clients if len(frames) > 1 else None, tuple(map(str, client_names)))


def read_client_column(
    frames: Sequence[Frame], client_columns: Sequence[str], cell_noun: str = "client"
) -> tuple[Ids, list[Any]]:
    """Return the client of each row of several tables, and the names of the clients.

    Args:
        frames: tables, whose rows the result has one table after the other.
        client_columns: name of the column of clients in each table.
        cell_noun: what a cell names, such as "client", for messages.

    Returns:
        The clients, int64 [rows of all tables], numbered in the sorted order of names, and the sorted names.

    Raises:
        DataError: a cell is empty, or neither a text nor a whole number (the message names the row), or one table has
            texts and another one numbers.
    """
    name_chunks: list[Any] = []
    for frame, column_name in zip(keep_spellings(frames, client_columns), client_columns, strict=True):
        frame_chunks = list(read_name_chunks(frame, column_name, cell_noun))
        if name_chunks and name_chunks[0].type != frame_chunks[0].type:
            raise frame.column_error(
                column_name,
                f": column {column_name!r} mixes texts and numbers with that of {frames[0].origin}: use one type",
            )
        name_chunks += frame_chunks
    encoded_clients = (pa.concat_arrays(name_chunks) if name_chunks else pa.array([], pa.int64())).dictionary_encode()
    name_order = pc.array_sort_indices(encoded_clients.dictionary)
    client_numbers = np.argsort(name_order)
    return client_numbers[encoded_clients.indices.to_numpy()], encoded_clients.dictionary.take(name_order).to_pylist()


def read_name_chunks(frame: Frame, column_name: str, cell_noun: str) -> Iterator[Any]:
    """Yield a column of client names or labels in chunks, as pyarrow arrays of texts, int64 or bool.

    Args:
        frame: table that has the column.
        column_name: name of the column.
        cell_noun: what a cell names, such as "client", for messages.

    Raises:
        DataError: a cell is empty, or no text, whole number or bool; the message names the row.
    """
    frame.require_column(column_name)
    allowed_text = f"{cell_noun}s are texts, or whole numbers"
    column_type = frame.get_column_type(column_name)
    if not (arrow_columns.is_text_type(column_type) or arrow_columns.is_number_type(column_type)):
        raise frame.column_error(column_name, f": column {column_name!r} holds {column_type}; {allowed_text}")
    for first_row, chunk in frame.read_chunks(column_name):
        if pa.types.is_boolean(column_type) or arrow_columns.is_text_type(column_type):
            yield chunk.cast(pa.large_string()) if arrow_columns.is_text_type(column_type) else chunk
            continue
        if pa.types.is_integer(column_type):
            chunk_numbers = chunk.to_numpy()
            is_invalid = chunk_numbers > np.iinfo(np.int64).max
        else:
            chunk_numbers = chunk.cast(pa.float64()).to_numpy()
            is_invalid = (
                ~np.isfinite(chunk_numbers)
                | (chunk_numbers != np.floor(chunk_numbers))
                | (np.abs(chunk_numbers) > 2**53)
            )
        frame.check_cells(
            column_name,
            is_invalid,
            lambda row: f"has {cell_noun} {chunk[row].as_py()}; {allowed_text}",  # noqa: B023
            first_row,
        )
        yield pa.array(chunk_numbers.astype(np.int64))
