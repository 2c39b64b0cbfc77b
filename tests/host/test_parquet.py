"""A page that is not what was written is an error, in whichever byte; files without checksums are still read."""

from pathlib import Path

import numpy as np
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
    with parquet.open_parquet_writer(path, TABLE.schema, compression="none", use_dictionary=False) as writer:
        writer.write_table(TABLE)
    content = path.read_bytes()
    path.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    with pytest.raises(OSError, match="CRC"):
        parquet.open_file(path).read()


def test_a_file_without_checksums_is_read(tmp_path: Path) -> None:
    arrow.write_table(TABLE, tmp_path / "old.parquet")
    assert parquet.open_file(tmp_path / "old.parquet").read().equals(TABLE)


@pytest.mark.parametrize("n", [0, 1, 8, 9, 1000])
def test_columns_are_those_of_pyarrow_with_null_for_nan(n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(n)
    numbers, is_nan, integers = rng.random(n), rng.random(n) < 0.5, rng.integers(0, 99, n).astype(np.int32)
    columns = {"flags": is_nan, "integers": integers, "numbers": numbers, "some": np.where(is_nan, np.nan, numbers)}
    columns["strided"] = np.stack([numbers, numbers], axis=1)[:, 0]
    converted = pa.table({name: parquet.make_column(values) for name, values in columns.items()})
    expected = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    assert converted.equals(expected)
    assert converted["some"].null_count == is_nan.sum()
    for path, table in ((tmp_path / "written", converted), (tmp_path / "expected", expected)):
        parquet.write_table(table, path)
    assert (tmp_path / "written").read_bytes() == (tmp_path / "expected").read_bytes()
