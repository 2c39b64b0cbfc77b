"""Read a CSV file, and recognise its encoding, compression, separator and decimal mark.

UTF-8 and UTF-16, gzip, and the separators comma, semicolon, tab and bar are recognised. Decimal commas are recognised
where the separator is no comma. A note states each difference from UTF-8 text with commas, so that a user can check it.
"""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import CombinedDataError
from fedcohort.dataset.parquet import make_read_error
from fedcohort.errors import DataError
from fedcohort.host import memory

CSV_TO_MEMORY_RATIO = 4  # times at most that a number in a CSV is longer than in memory: 25 characters for 8 bytes
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MAX_INSPECTED_BYTES = 2**16  # of a file, from which its format is recognised
MAX_INSPECTED_LINES = 20
MAX_LISTED_ROWS = 5  # rows of a wrong length that a message names
GZIP_SIGNATURE = b"\x1f\x8b"
UTF16_PATTERNS = {  # how the bytes of text in each encoding begin, with a byte order mark or with ASCII characters
    "utf-16": re.compile(b"|".join(map(re.escape, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)))),
    "utf-16-le": re.compile(rb"([^\0]\0){4}"),
    "utf-16-be": re.compile(rb"(\0[^\0]){4}"),
}
OTHER_FORMATS = {  # first bytes of files that are no CSV, and what to do with them
    b"PK\x03\x04": "is a ZIP archive, an Excel workbook or a file of NumPy or PyTorch: unpack it, save the sheet as "
    "CSV, or pass the arrays in Python, as fedcohort.run(dataset=(x, y))",
    b"\x93NUMPY": "is an array of NumPy: pass it in Python, as fedcohort.run(dataset=(x, y))",
    b"\x80": "is a pickle: pass its content in Python, as fedcohort.run(dataset=frame)",
    b"\xfd7zXZ": "is packed with xz: unpack it with xz -dk, or pack it with gzip",
    b"BZh": "is packed with bzip2: unpack it with bunzip2 -k, or pack it with gzip",
    b"{": "is JSON: pandas.read_json(...).to_parquet(...) makes a table of it",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook: save its sheet as CSV",
    b"PAR1": "is a Parquet file: rename it to .parquet",
    b"version https://git-lfs": "is a pointer of Git LFS, not the file itself: run git lfs pull",
}
DECIMAL_COMMA_PATTERN = r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$"


def read_csv(file: Path, decimal_mark: str = "auto") -> tuple[Any, list[str]]:
    """Read a CSV file as a table.

    Args:
        file: path of the file; gzip is recognised by the content.
        decimal_mark: "point", "comma", or "auto". With "auto", commas are decimal marks if another character
            separates the columns.

    Returns:
        A `pa.Table` with inferred types, and notes on the recognised format, such as "decimal commas".

    Raises:
        DataError: the file is no CSV, has another encoding, or has rows of different lengths.
        OptionError: the file needs more memory than is available.
    """
    n_file_bytes = file.stat().st_size
    file_and_size = f"dataset.path: {file} ({n_file_bytes / 1e9:.1f} GB)"
    memory.require_memory(n_file_bytes / CSV_TO_MEMORY_RATIO, file_and_size, "write it as Parquet, or use fewer rows")
    compression, encoding, separator = _recognise_csv_format(file)
    table = _parse_csv(file, compression, encoding, separator)
    file_notes = ["unpacked from gzip"] if compression else []
    file_notes += ["decoded from UTF-16"] if encoding != "utf-8" else []
    file_notes += [f"columns separated by {SEPARATORS[separator]}"] if separator != "," else []
    if decimal_mark == "comma" or (decimal_mark == "auto" and separator != ","):
        table, has_decimal_commas = _read_decimal_commas(table)
        file_notes += ["decimal commas"] * has_decimal_commas
    return table, file_notes


def read_texts(file: Path, column_name: str) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return a column of a CSV file as a `pa.ChunkedArray` of the texts in the file, without spaces around them."""
    convert_options = pa.csv.ConvertOptions(include_columns=[column_name], column_types={column_name: pa.string()})
    return pc.utf8_trim_whitespace(_parse_csv(file, *_recognise_csv_format(file), convert_options)[column_name])


def _parse_csv(
    file: Path,
    compression: str | None,
    encoding: str,
    separator: str,
    convert_options: Any = None,  # noqa: ANN401
) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return the `pa.Table` of a CSV file, whose columns have the types that pyarrow infers, or `convert_options` say.

    Raises `DataError` if the file can't be parsed, or if rows have more or fewer cells than the header.
    """
    ragged_rows: list[Any] = []

    def remember_ragged_row(row: Any) -> str:  # noqa: ANN401  pyarrow has no types
        ragged_rows.append(row)
        return "skip"

    # pyarrow numbers the rows that it skips only without threads.
    read_options = pa.csv.ReadOptions(encoding=encoding, use_threads=False)
    parse_options = pa.csv.ParseOptions(
        delimiter=separator, newlines_in_values=True, invalid_row_handler=remember_ragged_row
    )
    try:
        file_stream = pa.input_stream(str(file), compression=compression)
        table = pa.csv.read_csv(file_stream, read_options, parse_options, convert_options)
    except (pa.ArrowException, OSError) as error:
        raise make_read_error(file, error) from error
    if ragged_rows:
        raise _make_cell_count_error(file, ragged_rows)
    return table


def _recognise_csv_format(file: Path) -> tuple[str | None, str, str]:
    """Return the compression ("gzip" or None), the encoding and the separator of the CSV file `file`.

    Raises `DataError` for a file of another format or encoding.
    """
    compression = None
    try:
        with file.open("rb") as file_stream:
            first_bytes = file_stream.read(MAX_INSPECTED_BYTES)
        if format_advice := next(
            (
                format_advice
                for file_signature, format_advice in OTHER_FORMATS.items()
                if first_bytes.startswith(file_signature)
            ),
            None,
        ):
            raise DataError(f"dataset.path: {file} {format_advice}")
        compression = "gzip" if first_bytes.startswith(GZIP_SIGNATURE) else None
        first_bytes = pa.input_stream(str(file), compression=compression).read(MAX_INSPECTED_BYTES)
        encoding = next(
            (utf16_name for utf16_name, utf16_pattern in UTF16_PATTERNS.items() if utf16_pattern.match(first_bytes)),
            "utf-8",
        )
        check_encoding(pa.input_stream(str(file), compression=compression), f"dataset.path: {file}", encoding)
    except OSError as error:
        format_advice = (
            f"is a damaged or incomplete gzip file: {error}" if compression else f"can't be read: {error.strerror}"
        )
        raise DataError(f"dataset.path: {file} {format_advice}") from error
    return compression, encoding, recognise_separator(first_bytes.decode(encoding, errors="ignore").lstrip("\ufeff"))


def check_encoding(file_stream: Any, file_text: str, encoding: str = "utf-8") -> None:  # noqa: ANN401
    """Raise `DataError` if the bytes of a stream are not text in an encoding; the message names the line.

    Args:
        file_stream: binary stream, which is read to its end.
        file_text: start of the message: the file, possibly after the option that names it.
        encoding: name of the encoding, as Python names it.
    """
    line_number = 0
    try:
        for line_number, _ in enumerate(io.TextIOWrapper(file_stream, encoding), 1):  # noqa: B007
            pass
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise DataError(
                f"{file_text} begins as UTF-16 text, but line {line_number + 1} is not UTF-16: save the file as UTF-8"
            ) from error
        invalid_byte = error.object[error.start]
        raise DataError(
            f"{file_text} is no UTF-8 text (byte 0x{invalid_byte:02x} after line {line_number}): save it as UTF-8. For "
            "text from Windows, iconv -f windows-1252 -t utf-8 OLD.csv > NEW.csv writes a converted copy"
        ) from error


def recognise_separator(first_lines: str) -> str:
    """Return the character that separates the columns of a CSV file: a comma, semicolon, tab or bar.

    It is the character that splits all lines into equally many cells, and into the most. If no character splits the
    lines equally, it is the one that splits the header into the most cells, or the comma.

    Args:
        first_lines: the first lines of the file, beginning with the header; the last line may be cut off and is not
            compared.
    """
    inspected_lines = first_lines.splitlines()[:MAX_INSPECTED_LINES]
    best_separator, best_separator_score = ",", (False, 1)
    for separator in SEPARATORS:
        cells_by_row = [row for row in csv.reader(inspected_lines, delimiter=separator) if row]
        n_columns = len(cells_by_row[0]) if cells_by_row else 1
        separator_score = (n_columns > 1 and all(len(row) == n_columns for row in cells_by_row[1:-1]), n_columns)
        if n_columns > 1 and separator_score > best_separator_score:
            best_separator, best_separator_score = separator, separator_score
    return best_separator


def _make_cell_count_error(file: Path, ragged_rows: Sequence[Any]) -> DataError:
    """Return the error for rows that have more or fewer cells than the header.

    Args:
        file: the CSV file.
        ragged_rows: pyarrow's descriptions of these rows (`pa.csv.InvalidRow`).
    """
    n_further_ragged_rows = len(ragged_rows) - MAX_LISTED_ROWS
    more_rows_text = f" ({n_further_ragged_rows} more such rows follow)" if n_further_ragged_rows > 0 else ""
    message_start, row_errors = f"dataset.path: {file} can't be read, it is truncated or no csv file", []
    for row in ragged_rows[:MAX_LISTED_ROWS]:
        cell_counts_text = f"{row.actual_columns} cells, the header has {row.expected_columns}{more_rows_text}"
        row_errors.append(DataError(f"{message_start}: row {row.number - 2} has {cell_counts_text}"))
    return CombinedDataError(row_errors) if len(row_errors) > 1 else row_errors[0]


def _read_decimal_commas(table: Any) -> tuple[Any, bool]:  # noqa: ANN401  pyarrow has no types
    """Convert the text columns of a `pa.Table` that hold numbers with decimal commas, such as 0,5.

    A column becomes numbers if all its non-empty cells are numbers. If at least half are, it remains a text column,
    with decimal points.

    Returns:
        The table, and whether a column was converted.
    """
    has_converted_column = False
    for column_number, column_name in enumerate(table.column_names):
        column = table.column(column_number)
        if not arrow_columns.is_text_type(column.type):
            continue
        has_comma = pc.match_substring_regex(column, DECIMAL_COMMA_PATTERN)
        decimal_point_column = pc.if_else(has_comma, pc.replace_substring(column, ",", "."), column)
        if pc.any(has_comma).as_py() and (numeric_share := arrow_columns.share_of_numbers(decimal_point_column)) >= 0.5:
            numeric_column = (
                pa.array(arrow_columns.as_float64(decimal_point_column), from_pandas=True)
                if numeric_share == 1
                else decimal_point_column
            )
            table, has_converted_column = table.set_column(column_number, column_name, numeric_column), True
    return table, has_converted_column
