"""The per-client table: the same columns with the same types whatever a step measured."""

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from fedcohort.record import client_table
from fedcohort.record.client_table import load_rows, merge_step_files, write_rows
from fedcohort.round.client_facts import CLIENT_FLAGS
from run_harness import run_training

NAN = float("nan")
STEP_0 = {"test_acc": np.array([0.1, 0.2, NAN]), "loss": np.array([2.3, 2.4, 2.5])}
STEP_1 = {
    "available": np.array([True, True, False]),
    "selected": np.array([True, False, False]),
    "arrived": np.array([True, False, False]),
    "units": np.array([5, NAN, NAN]),
    "train_loss": np.array([1.5, NAN, NAN]),
    "score": np.array([0.3, 0.2, NAN]),
    "part_explore": np.array([1, 2, 3]),
}
COLUMNS = [
    *("step", "client", *CLIENT_FLAGS, "score", "part_explore", "units", "train_loss"),
    *("loss", "test_acc"),
]


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2)])
def test_columns_and_types_do_not_depend_on_the_first_step(
    tmp_path: Path, finished: bool, order: tuple[int, ...]
) -> None:
    parts = {0: STEP_0, 1: STEP_1, 2: {**STEP_1, **STEP_0}}
    for step in order:
        write_rows(tmp_path, step, parts[step])
    if finished:
        merge_step_files(tmp_path, set(order), {})
    table = load_rows(tmp_path, set(order), None, {})
    assert list(table.columns) == COLUMNS
    kinds = {name: str(kind) for name, kind in table.dtypes.items()}
    assert {kinds[name] for name in ("step", "client")} == {"int32"}
    assert {kinds[name] for name in CLIENT_FLAGS} == {"bool"}
    assert {kinds[name] for name in COLUMNS[2 + len(CLIENT_FLAGS) :]} == {"float64"}
    assert table[table.step == 1]["test_acc"].isna().all()
    assert table[table.step == 2]["part_explore"].tolist() == [1.0, 2.0, 3.0]


def test_no_client_is_selected_at_step_0(tmp_path: Path) -> None:
    write_rows(tmp_path, 0, STEP_0)
    table = load_rows(tmp_path, {0}, None, {})
    assert not table[list(CLIENT_FLAGS)].to_numpy().any()


def test_unknown_values_are_null_in_the_file(tmp_path: Path) -> None:
    """Not NaN here and null there: other readers than pandas tell them apart."""
    for step, columns in enumerate((STEP_0, STEP_1)):
        write_rows(tmp_path, step, columns)
    merge_step_files(tmp_path, {0, 1}, {})
    file = pyarrow.parquet.read_table(tmp_path / "clients.parquet")
    assert file["test_acc"].to_pylist() == [0.1, 0.2, None, None, None, None]
    assert file["train_loss"].to_pylist() == [None, None, None, 1.5, None, None]
    assert file["available"].to_pylist() == [False, False, False, True, True, False]


@pytest.mark.parametrize("selector", ["flash", "powd"])
def test_every_column_of_a_run_is_documented_and_ordered(tmp_path: Path, selector: str) -> None:
    columns = run_training(tmp_path, f"selector={selector}", "rounds=2").last.clients
    families = client_table.COLUMN_PREFIXES
    for documented in (next((family for family in families if name.startswith(family)), name) for name in columns):
        assert documented in client_table.COLUMN_ORDER
        assert re.search(rf"^    .*\b{documented}\b", client_table.__doc__ or "", re.MULTILINE)
