"""Read a CSV file however it is written: its encoding, compression, separator and decimal mark.

UTF-8 and UTF-16, gzip, and the separators comma, semicolon, tab and bar are recognised. Decimal commas are recognised
where the separator is no comma. What differs from UTF-8 text with commas is noted, so that a user can check it.
"""

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from fedcohort.dataset import cells
from fedcohort.dataset.encoding import check_utf8
from fedcohort.dataset.parquet import unreadable
from fedcohort.dataset.problems import SeveralProblems, TableProblem
from fedcohort.errors import DataError
from fedcohort.host import memory

CSV_SHRINKS = 4  # times at most that a number in a CSV is longer than in memory: 25 characters for 8 bytes
SEPARATORS = ",;\t|"
NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
HEAD_BYTES = 2**16  # of a file, from which its format is recognised
HEAD_LINES = 20
MAX_PROBLEMS = 5  # rows of a wrong length that a message names
GZIP = b"\x1f\x8b"
MAX_RATIO = 1032  # of the sizes of a text and its gzip file
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
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
DECIMAL_COMMA = r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class CsvTable:
    """A CSV file's table.

    Attributes:
        table: the `pa.Table`, with types as inferred.
        notes: what was recognised and differs from UTF-8 text with commas and decimal points.
    """

    table: Any
    notes: tuple[str, ...] = ()


def read_csv(file: Path, decimal: str = "auto") -> CsvTable:
    """Read a CSV file.

    Args:
        file: its path; a gzip file is recognised by its content.
        decimal: "point", "comma", or "auto" for comma where columns are not separated by commas.

    Raises:
        DataError: that names the file, and the rows that have too few or too many cells.
    """
    size = file.stat().st_size
    memory.require_memory(size / CSV_SHRINKS, _describe(file, size), "write it as Parquet, or use fewer rows")
    content, notes = _decode(file)
    head = file.open("rb").read(HEAD_BYTES) if content is None else content[:HEAD_BYTES]
    separator = recognise_separator(head.decode("utf-8-sig", errors="ignore"))
    if separator != ",":
        notes = [*notes, f"columns separated by {NAMES[separator]}"]
    parse = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    try:
        table = pa.csv.read_csv(_open(file, content), parse_options=parse)
    except (pa.ArrowException, OSError) as error:
        raise _name_bad_rows(file, content, separator) or unreadable(file, error) from error
    if decimal == "comma" or (decimal == "auto" and separator != ","):
        table, names = _read_decimal_commas(table)
        notes = [*notes, *(["decimal commas"] if names else [])]
    return CsvTable(table, tuple(notes))


def recognise_separator(head: str) -> str:
    """Return the separator that splits the header and the first lines into equally many cells, the most of them.

    Where the lines differ, the header decides; where nothing splits it, the comma is taken.
    """
    lines = head.splitlines()[:HEAD_LINES]
    best, best_score = ",", (False, 1)
    for separator in SEPARATORS:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        n_columns = len(rows[0]) if rows else 1
        score = (n_columns > 1 and all(len(row) == n_columns for row in rows[1:-1]), n_columns)
        if n_columns > 1 and score > best_score:
            best, best_score = separator, score
    return best


def _describe(file: Path, size: int) -> str:
    return f"dataset.path: {file} ({size / 1e9:.1f} GB)"


def _open(file: Path, content: bytes | None) -> Any:  # noqa: ANN401  pyarrow has no types
    """Open the file by its content, not by its suffix; return it, or its content after decompression and decoding."""
    return pa.input_stream(str(file), compression=None) if content is None else io.BytesIO(content)


def _decode(file: Path) -> tuple[bytes | None, list[str]]:
    """Return the text as UTF-8 bytes and notes; None if the file is plain UTF-8 and can be read as it stands."""
    try:
        with file.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
        for magic, reason in OTHER_FORMATS.items():
            if head.startswith(magic):
                raise DataError(f"dataset.path: {file} {reason}")
        notes, content = [], None
        if head.startswith(GZIP):
            packed = file.read_bytes()
            size = min(int.from_bytes(packed[-4:], "little"), MAX_RATIO * len(packed))  # of the text, modulo 2^32
            memory.require_memory(size, _describe(file, size), "write it as Parquet")
            content, notes = gzip.decompress(packed), ["unpacked from gzip"]
            head = content[:HEAD_BYTES]
        if encoding := _recognise_utf16(head):
            text = (file.read_bytes() if content is None else content).decode(encoding)
            return text.removeprefix("\ufeff").encode(), [*notes, "decoded from UTF-16"]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"dataset.path: {file} is a damaged or incomplete gzip file: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"dataset.path: {file} begins as UTF-16 text, but byte {error.start} isn't") from error
    except OSError as error:
        raise DataError(f"dataset.path: {file} can't be read: {error.strerror}") from error
    check_utf8(io.BytesIO(content) if content is not None else file, f"dataset.path: {file}")
    return content, notes


def _recognise_utf16(head: bytes) -> str | None:
    """Return the codec of text in UTF-16, by its byte order mark or by the zero byte of each ASCII character."""
    if head[:2] in BYTE_ORDER_MARKS:
        return BYTE_ORDER_MARKS[head[:2]]
    even, odd = head[0:100:2], head[1:100:2]
    if len(odd) > 1 and not any(odd) and all(even):
        return "utf-16-le"
    return "utf-16-be" if len(odd) > 1 and not any(even[: len(odd)]) and all(odd) else None


def _name_bad_rows(file: Path, content: bytes | None, separator: str) -> DataError | None:
    """Return the error that names each row with too few or too many cells, None if rows are not to blame."""
    bad_rows: list[Any] = []

    def note(row: Any) -> str:  # noqa: ANN401  pyarrow has no types
        bad_rows.append(row)
        return "skip"

    options = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=note)
    try:
        pa.csv.read_csv(_open(file, content), read_options=pa.csv.ReadOptions(use_threads=False), parse_options=options)
    except (pa.ArrowException, OSError):
        return None
    if not bad_rows:
        return None
    rest_of_rows = f" ({len(bad_rows) - MAX_PROBLEMS} more such rows follow)" if len(bad_rows) > MAX_PROBLEMS else ""
    problems = [
        TableProblem(
            f"dataset.path: {file} can't be read, it is truncated or no csv file: row {row.number - 2} has "
            f"{row.actual_columns} cells, the header has {row.expected_columns}{rest_of_rows}"
        )
        for row in bad_rows[:MAX_PROBLEMS]
    ]
    return problems[0] if len(problems) == 1 else SeveralProblems(problems)


def _read_decimal_commas(table: Any) -> tuple[Any, list[str]]:  # noqa: ANN401  pyarrow has no types
    """Return the table with numbers where half or more of a text column's cells are numbers, and these columns."""
    changed = []
    for position, name in enumerate(table.column_names):
        column = table.column(position)
        if not cells.is_text(column.type):
            continue
        has_comma = pc.match_substring_regex(column, DECIMAL_COMMA)
        points = pc.if_else(has_comma, pc.replace_substring(column, ",", "."), column)
        if pc.any(has_comma).as_py() and (share := cells.share_of_numbers(points)) >= 0.5:
            values = pa.array(cells.numbers(points), from_pandas=True) if share == 1 else points
            table = table.set_column(position, name, values)
            changed.append(name)
    return table, changed
