"""The first line of a CSV file names its columns."""

from pathlib import Path

import pytest

from fedcohort.dataset.files import read_table
from fedcohort.errors import DataError


@pytest.mark.parametrize(
    ("header", "notes"),
    [
        ("x,y,label", ()),
        ("0,1,2", ()),
        ("2019,2020,label", ("its first line names the columns (2019, 2020, label)",)),
        ("5.1,3.5,1.4,Iris-setosa", ("its first line names the columns (5.1, 3.5, 1.4, 1 more)",)),
    ],
)
def test_column_names_that_look_like_values_give_a_note(tmp_path: Path, header: str, notes: tuple[str, ...]) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    assert read_table(tmp_path / "t.csv").notes == notes


def test_a_csv_file_without_a_header_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("0.5,-1,1\n0.25,2,0\n")
    with pytest.raises(DataError, match=r"t.csv begins with numbers, but its first line must name the columns"):
        read_table(tmp_path / "t.csv")
