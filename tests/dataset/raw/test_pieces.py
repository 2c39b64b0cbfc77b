"""Tables that are written piece by piece, and go on where they were stopped."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset.raw import pieces
from fedcohort.dataset.raw.pieces import TablePiece, size_and_time, write_tables
from fedcohort.errors import DataError

Report = Callable[[str, int, int], None]


def quiet(part: str, done: int, count: int) -> None:
    return None


class Source:
    """Three pieces of two parts; counts how often each is made."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def pieces(self, key: str = "k", failing: int | None = None) -> list[TablePiece]:
        return [self._make_piece(i, part, key, failing) for i, part in enumerate(("train", "train", "test"))]

    def _make_piece(self, i: int, part: str, key: str, failing: int | None) -> TablePiece:
        def make() -> Any:
            if i == failing:
                raise KeyboardInterrupt
            self.made.append(f"{part}{i}")
            return pa.table({"x": [10 * i, 10 * i + 1]})

        return TablePiece(part, f"{key}{i}", make)


def test_written_tables_hold_all_pieces_in_order(tmp_path: Path) -> None:
    messages: list[tuple[str, int, int]] = []
    assert write_tables(Source().pieces(), tmp_path, lambda *args: messages.append(args)) == {"train": 4, "test": 2}
    assert pq.read_table(tmp_path / "train.parquet")["x"].to_pylist() == [0, 1, 10, 11]
    assert pq.read_table(tmp_path / "test.parquet")["x"].to_pylist() == [20, 21]
    assert pq.ParquetFile(tmp_path / "train.parquet").metadata.row_group(0).column(0).compression == "ZSTD"
    assert messages == [("train", 1, 3), ("train", 2, 3), ("test", 3, 3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prepared.json", "test.parquet", "train.parquet"]


def test_an_interrupted_conversion_resumes(tmp_path: Path) -> None:
    source = Source()
    with pytest.raises(KeyboardInterrupt):
        write_tables(source.pieces(failing=1), tmp_path, quiet)
    assert source.made == ["train0"]
    assert not (tmp_path / "train.parquet").exists()
    write_tables(source.pieces(), tmp_path, quiet)
    assert source.made == ["train0", "train1", "test2"], "nothing is made twice"
    assert write_tables(source.pieces(), tmp_path, quiet) == {"train": 4, "test": 2}
    assert len(source.made) == 3, "and nothing where all is done"


@pytest.mark.parametrize("moment", ["between", "within"])
def test_a_conversion_interrupted_while_joining_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Between the two parts, or within the first, of which half is there."""
    source, real = Source(), pieces._merge_piece_files

    def join(files: Sequence[Path], target: Path, unique: str) -> int:
        if moment == "within":
            target.with_name(f".{target.name}.fedcohort-draft").write_bytes(b"half")
        if moment == "within" or target.name == "test.parquet":
            raise KeyboardInterrupt
        return real(files, target, unique)

    monkeypatch.setattr(pieces, "_merge_piece_files", join)
    with pytest.raises(KeyboardInterrupt):
        write_tables(source.pieces(), tmp_path, quiet)
    monkeypatch.undo()
    assert write_tables(source.pieces(), tmp_path, quiet) == {"train": 4, "test": 2}
    assert source.made == ["train0", "train1", "test2"], "nothing is made twice"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prepared.json", "test.parquet", "train.parquet"]


def test_a_deleted_table_is_written_again(tmp_path: Path) -> None:
    write_tables(Source().pieces(), tmp_path, quiet)
    (tmp_path / "train.parquet").unlink()
    assert write_tables(Source().pieces(), tmp_path, quiet) == {"train": 4, "test": 2}
    assert pq.read_table(tmp_path / "train.parquet")["x"].to_pylist() == [0, 1, 10, 11]


def test_a_rewritten_file_of_equal_size_has_another_version(tmp_path: Path) -> None:
    """Of the same size, but later."""
    file = tmp_path / "file"
    file.write_text("1")
    before = size_and_time(file)
    file.write_text("2")
    os.utime(file, ns=(0, 1))
    assert size_and_time(file) != before


@pytest.mark.parametrize("name", ["unfinished", "notes"])
def test_an_unrelated_folder_with_the_temporary_name_is_kept(tmp_path: Path, name: str) -> None:
    """Also where a link leads to it, and its name is the one that the command once used for its pieces."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("mine")
    made_folder = tmp_path / "made"
    made_folder.mkdir()
    (made_folder / "unfinished").mkdir() if name == "notes" else (made_folder / "unfinished").symlink_to(
        tmp_path / "precious"
    )
    (made_folder / "unfinished" / f"{name}.txt").write_text("mine")
    write_tables(Source().pieces(), made_folder, quiet)
    assert (made_folder / "unfinished" / f"{name}.txt").read_text() == "mine"
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["train.parquet", "train.new", "vocabulary.parquet", "prepared.json"])
def test_an_output_name_that_is_a_link_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(DataError, match="choose another folder"):
        write_tables(Source().pieces(), tmp_path / "made", quiet)
    assert (tmp_path / "precious").read_text() == "mine"
    assert [path.name for path in (tmp_path / "made").iterdir()] == [name]


def test_a_damaged_piece_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_tables(Source().pieces(failing=1), tmp_path, quiet)
    (piece,) = tmp_path.glob("unfinished-*/train-000000.parquet")
    piece.write_bytes(piece.read_bytes()[:20])
    with pytest.raises(DataError, match=r"train-000000.parquet is damaged .*: remove it and type the command again"):
        write_tables(Source().pieces(), tmp_path, quiet)


def test_unfinished_pieces_of_another_source_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_tables(Source().pieces(failing=1), tmp_path / "a", quiet)
    with pytest.raises(DataError, match=r"unfinished-.* was prepared from another source .*: remove it"):
        write_tables(Source().pieces(key="other"), tmp_path / "a", quiet)
    write_tables(Source().pieces(), tmp_path / "b", quiet)
    with pytest.raises(
        DataError, match="holds data prepared from another source or with other options: choose another folder"
    ):
        write_tables(Source().pieces(key="other"), tmp_path / "b", quiet)
    (tmp_path / "b" / "prepared.json").unlink()
    with pytest.raises(DataError, match=r"b holds train.parquet, which was not prepared here"):
        write_tables(Source().pieces(), tmp_path / "b", quiet)
    (tmp_path / "b" / "prepared.json").write_text("{")
    with pytest.raises(DataError, match="prepared from another source"):
        write_tables(Source().pieces(), tmp_path / "b", quiet)


def test_pieces_with_different_columns_are_rejected(tmp_path: Path) -> None:
    rows: list[list[Any]] = [[1], ["a"]]
    parts = [TablePiece("train", str(i), partial(pa.table, {"x": x})) for i, x in enumerate(rows)]
    with pytest.raises(DataError, match=r"train.parquet: all parts must have the columns"):
        write_tables(parts, tmp_path, quiet)
