"""The natural clients of rows."""

from pathlib import Path

import pyarrow as pa
import pytest

from fedcohort.dataset.clients import read_client_column, read_natural_clients
from fedcohort.dataset.files import read_table
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from optional_values import not_none


def test_clients_are_numbered_in_the_order_of_their_ids_over_all_tables() -> None:
    frames = [Frame(part, pa.table({"who": ids})) for part, ids in (("a", ["c", "a", "c"]), ("b", ["b", "a"]))]
    assert read_client_column(frames, ["who"] * 2)[0].tolist() == [2, 0, 2, 1, 0]
    numbers = [Frame("a", pa.table({"who": [10, 9]})), Frame("b", pa.table({"who": [-1.0]}))]
    assert read_client_column(numbers, ["who"] * 2)[0].tolist() == [2, 1, 0]


def test_missing_client_ids_and_mixed_id_types_are_rejected() -> None:
    full = Frame("a", pa.table({"who": ["c", "a", "c"]}))
    with pytest.raises(DataError, match=r"^dataset.path: b: column 'who', row 1 is empty"):
        read_client_column([full, Frame("b", pa.table({"who": ["b", None]}))], ["who"] * 2)
    with pytest.raises(DataError, match=r"^dataset.path: b: column 'who' mixes texts and numbers with that of a"):
        read_client_column([full, Frame("b", pa.table({"who": [1, 2]}))], ["who"] * 2)


@pytest.mark.parametrize(
    ("train_names", "test_names", "client_names"),
    [
        (["10", "9", "9"], ["10"], ("9", "10")),  # plain numbers are sorted by value
        (["007", "07", "7"], ["7"], ("007", "07", "7")),
        (["7", "12"], ["012"], ("012", "12", "7")),  # the files agree on texts
        (["0x10", "16"], ["16"], ("0x10", "16")),
        (["7", "a"], ["7"], ("7", "a")),
        (
            ["12345678901234567890", "12345678901234567891"],
            ["3"],
            ("12345678901234567890", "12345678901234567891", "3"),
        ),
        (["1.0", "2.0"], ["2"], ("1", "2")),  # pandas writes whole numbers so if a cell of the column is empty
    ],
)
def test_client_names_in_csv_files_are_texts_unless_all_are_plain_numbers(
    tmp_path: Path, train_names: list[str], test_names: list[str], client_names: tuple[str, ...]
) -> None:
    for part, names in (("train", train_names), ("test", test_names)):
        (tmp_path / f"{part}.csv").write_text("\n".join(["x,who", *(f"1,{name}" for name in names)]))
    frames = [read_table(tmp_path / f"{part}.csv") for part in ("train", "test")]
    owners = read_natural_clients(frames, "who")
    assert owners.client_names == client_names
    names_of_rows = [client_names[k] for k in [*not_none(owners.train_clients), *not_none(owners.test_clients)]]
    assert names_of_rows == [name.removesuffix(".0") for name in [*train_names, *test_names]]
