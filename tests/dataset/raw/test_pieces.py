"""Tables that are written piece by piece."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset.raw.pieces import Piece, write
from fedcohort.errors import DataError

Report = Callable[[str, int, int], None]


def quiet(part: str, done: int, count: int) -> None:
    return None


class Source:
    """Three pieces of two parts."""

    def pieces(self, broken: int | None = None) -> list[Piece]:
        return [self._piece(i, part, broken) for i, part in enumerate(("train", "train", "test"))]

    def _piece(self, i: int, part: str, broken: int | None) -> Piece:
        def make() -> Any:
            if i == broken:
                raise KeyboardInterrupt
            return pa.table({"x": [10 * i, 10 * i + 1]})

        return Piece(part, make)


def test_parts_are_whole_and_in_order(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    assert write(Source().pieces(), tmp_path, lambda *args: told.append(args)) == {"train": 4, "test": 2}
    assert pq.read_table(tmp_path / "train.parquet")["x"].to_pylist() == [0, 1, 10, 11]
    assert pq.read_table(tmp_path / "test.parquet")["x"].to_pylist() == [20, 21]
    assert pq.ParquetFile(tmp_path / "train.parquet").metadata.row_group(0).column(0).compression == "ZSTD"
    assert told == [("train", 1, 3), ("train", 2, 3), ("test", 3, 3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.parquet", "train.parquet"]


def test_an_interrupted_command_leaves_no_table_and_can_be_repeated(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(Source().pieces(broken=2), tmp_path, quiet)
    assert not list(tmp_path.iterdir())
    (tmp_path / ".train.parquet.fedcohort-draft").write_bytes(b"half")  # of a process that was killed
    assert write(Source().pieces(), tmp_path, quiet) == {"train": 4, "test": 2}
    with pytest.raises(DataError, match=r"holds train.parquet, which is not replaced: name another folder"):
        write(Source().pieces(), tmp_path, quiet)


@pytest.mark.parametrize("name", ["train.parquet", "train.new", "vocabulary.parquet"])
def test_no_file_is_replaced_or_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(DataError, match="name another folder"):
        write(Source().pieces(), tmp_path / "made", quiet)
    assert (tmp_path / "precious").read_text() == "mine"
    assert [path.name for path in (tmp_path / "made").iterdir()] == [name]


def test_pieces_of_different_columns_are_refused(tmp_path: Path) -> None:
    rows: list[list[Any]] = [[1], ["a"]]
    parts = [Piece("train", partial(pa.table, {"x": x})) for x in rows]
    with pytest.raises(DataError, match=r"train.parquet: all parts must have the columns"):
        write(parts, tmp_path, quiet)
