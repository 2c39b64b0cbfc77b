"""A page that is not what was written is an error, in whichever byte; files without checksums are still read."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as arrow

from fedcohort.host import parquet

TABLE = pa.table({"x": [0.1 * i for i in range(1000)]})


def test_a_flipped_bit_of_a_page_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(TABLE, path, use_dictionary=False, compression="none")
    content = path.read_bytes()
    for position in range(100, 7_000, 531):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(OSError, match="CRC"):
            parquet.open_file(path).read()


def test_tables_written_in_sequence_have_checksums_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with parquet.open_writer(path, TABLE.schema, compression="none", use_dictionary=False) as writer:
        writer.write_table(TABLE)
    content = path.read_bytes()
    path.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    with pytest.raises(OSError, match="CRC"):
        parquet.open_file(path).read()


def test_a_file_without_checksums_is_read(tmp_path: Path) -> None:
    arrow.write_table(TABLE, tmp_path / "old.parquet")
    assert parquet.open_file(tmp_path / "old.parquet").read().equals(TABLE)
