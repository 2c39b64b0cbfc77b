"""CSV files in other encodings, with other separators and decimal marks."""

import gzip
from pathlib import Path

import pytest

from fedcohort.dataset.csv_file import read_csv, recognise_separator
from fedcohort.errors import DataError

TEXT = "a,b\n1,2.5\n3,4.5\n"


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (TEXT.encode(), ()),
        (TEXT.encode("utf-8-sig"), ()),
        (TEXT.encode("utf-16"), ("decoded from UTF-16",)),
        (TEXT.encode("utf-16-le"), ("decoded from UTF-16",)),
        (TEXT.encode("utf-16-be"), ("decoded from UTF-16",)),
        (gzip.compress(TEXT.encode()), ("unpacked from gzip",)),
        (gzip.compress(TEXT.encode("utf-16")), ("unpacked from gzip", "decoded from UTF-16")),
        (TEXT.replace(",", "\t").encode(), ("columns separated by tabs",)),
        (TEXT.replace(",", "|").encode(), ("columns separated by bars",)),
        (TEXT.replace(",", ";").encode(), ("columns separated by semicolons",)),
        (TEXT.replace(",", ";").replace(".", ",").encode(), ("columns separated by semicolons", "decimal commas")),
    ],
)
def test_csv_variants_of_a_table_are_read_equally(tmp_path: Path, content: bytes, notes: tuple[str, ...]) -> None:
    (tmp_path / "train.csv").write_bytes(content)
    table, found_notes = read_csv(tmp_path / "train.csv")
    assert table.to_pydict() == {"a": [1, 3], "b": [2.5, 4.5]}
    assert tuple(found_notes) == notes


@pytest.mark.parametrize(
    ("head", "separator"),
    [
        ("a;b\n0,5;1\n0,7;2\n", ";"),
        ('"a, in cm";b\n1;2\n', ";"),
        ("name,note\nx,y;z\nu,v;w\n", ","),
        ("a\n1\n", ","),
        ("", ","),
    ],
)
def test_separators_are_recognised_by_the_header_and_the_first_rows(head: str, separator: str) -> None:
    assert recognise_separator(head) == separator


def test_the_option_decimal_decides_how_decimal_commas_are_read(tmp_path: Path) -> None:
    """Cells that are no numbers stay texts, and an empty cell stays empty."""
    (tmp_path / "train.csv").write_text('x,y\n"0,5",1\n"1,5",2\n"",3\n')
    assert str(read_csv(tmp_path / "train.csv")[0].schema.field("x").type) == "string"
    assert read_csv(tmp_path / "train.csv", "comma")[0]["x"].to_pylist() == [0.5, 1.5, None]
    (tmp_path / "train.csv").write_text("x;y\n0,5;1\n?;2\n1,5;2\n")
    assert read_csv(tmp_path / "train.csv")[0]["x"].to_pylist() == ["0.5", "?", "1.5"]
    assert read_csv(tmp_path / "train.csv", "point")[0]["x"].to_pylist() == ["0,5", "?", "1,5"]


def test_all_rows_of_a_wrong_length_are_named(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,b\n1,2\n3\n4,5\n6,7,8\n")
    with pytest.raises(DataError, match=r"(?s)row 1 has 1 cells, the header has 2.*row 3 has 3 cells"):
        read_csv(tmp_path / "train.csv")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04" + bytes(30), "is a ZIP archive, an Excel workbook or a file of NumPy or PyTorch"),
        (b"\x93NUMPY" + bytes(9), "is an array of NumPy: pass it in Python"),
        (b"\x80\x04\x95" + bytes(9), "is a pickle: pass its content in Python"),
        (b"\xfd7zXZ" + bytes(9), "is packed with xz: unpack it with xz -dk"),
        (b"BZh9" + bytes(9), "is packed with bzip2: unpack it with bunzip2 -k"),
        (b'{"a": [1, 2]}', "is JSON: pandas.read_json"),
        (b"PAR1" + bytes(30), "rename it to .parquet"),
        (b"version https://git-lfs.github.com/spec/v1\n", "run git lfs pull"),
        (b"\x1f\x8b\x08\x00" + bytes(99), "damaged or incomplete gzip"),
        (TEXT.encode("utf-16") + b"\0", "begins as UTF-16 text, but line"),
        ("größe,b\n1,2\n".encode("latin-1"), r"iconv -f windows-1252 -t utf-8 OLD.csv > NEW.csv"),
    ],
)
def test_files_of_other_formats_are_rejected_with_a_remedy(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "train.csv").write_bytes(content)
    with pytest.raises(DataError, match=reason):
        read_csv(tmp_path / "train.csv")
