"""The natural clients of rows."""

import pyarrow as pa
import pytest

from fedcohort.dataset.clients import read_client_column
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError


def test_clients_are_numbered_in_the_order_of_their_ids_over_all_tables() -> None:
    frames = [Frame(part, pa.table({"who": ids})) for part, ids in (("a", ["c", "a", "c"]), ("b", ["b", "a"]))]
    assert read_client_column(frames, ["who"] * 2)[0].tolist() == [2, 0, 2, 1, 0]
    numbers = [Frame("a", pa.table({"who": [10, 9]})), Frame("b", pa.table({"who": [-1.0]}))]
    assert read_client_column(numbers, ["who"] * 2)[0].tolist() == [2, 1, 0]


def test_ids_that_are_missing_or_of_two_kinds_are_named() -> None:
    full = Frame("a", pa.table({"who": ["c", "a", "c"]}))
    with pytest.raises(DataError, match=r"^dataset.path: b: column 'who', row 1 is empty"):
        read_client_column([full, Frame("b", pa.table({"who": ["b", None]}))], ["who"] * 2)
    with pytest.raises(DataError, match=r"^dataset.path: b: column 'who' mixes texts and numbers with that of a"):
        read_client_column([full, Frame("b", pa.table({"who": [1, 2]}))], ["who"] * 2)
