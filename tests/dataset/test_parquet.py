"""A column that cannot fit into memory is rejected by the sizes in the file, before it is read."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset.parquet import ParquetTable
from fedcohort.errors import OptionError
from fedcohort.host import memory


def test_a_text_column_beyond_memory_is_rejected_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,000 different texts of 1,000 characters need a megabyte; the other column needs 8 kB."""
    texts = [f"{i:04d}" * 250 for i in range(1000)]
    pq.write_table(pa.table({"line": texts, "role": range(1000)}), tmp_path / "train.parquet", row_group_size=100)
    table = ParquetTable(tmp_path / "train.parquet")
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "read_available_bytes", lambda: 500_000.0)
    with pytest.raises(OptionError, match=r"column 'line' of .*train\.parquet needs at least 0\.0 GB of memory"):
        table.column("line")
    assert table.column("role").to_pylist() == list(range(1000))
    monkeypatch.setattr(memory, "read_available_bytes", lambda: 2_000_000.0)
    assert table.column("line").to_pylist() == texts
