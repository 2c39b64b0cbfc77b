"""Which roles columns are proposed for, by their names and values."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.inspection import DataDecision, TableInspection
from fedcohort.errors import DataError

N = 60


def decide(fixed_options: Any = None, n: Any = N, **columns: Any) -> tuple[TableInspection, dict[str, DataDecision]]:
    """Return the inspection of a table with the classes a and b, and the decisions by topic."""
    table = {"x": np.linspace(-1, 1, n), **columns}
    table.setdefault("label", ["a", "b"] * (n // 2))
    inspection = TableInspection([Frame("t.csv", pa.table(table))], fixed_options or {}, draws_test_set=True)
    return inspection, {decision.decision_topic: decision for decision in inspection.propose_roles()}


@pytest.mark.parametrize("name", ["user", "user_id", "userId", "User ID", "PATIENT", "device id"])
def test_names_of_clients_are_recognised_however_they_are_spelled(name: str) -> None:
    inspection, decisions = decide(**{name: np.arange(N) % 4})
    assert decisions["client"].options == {"dataset.client": name, "cohort": 2}
    assert inspection.roles == {"label": "label", name: "client"}


def test_clients_and_ids_are_never_proposed_as_labels() -> None:
    """A column of 12 users is not 12 classes, although it is the last one that could be."""
    _, decisions = decide(
        label=np.linspace(0, 1, N),
        kind=["a", "b"] * (N // 2),
        shop_id=np.arange(N) % 3,
        **{"user id": np.arange(N) % 12},
    )
    assert decisions["label"].options == {"dataset.label": "kind"}
    with pytest.raises(DataError, match=r"no column can hold labels .*fractions are no labels: models are classifiers"):
        decide(label=np.linspace(0, 1, N), user=np.arange(N) % 12)


def test_clients_of_one_or_two_rows_are_pooled_and_unique_ones_left_out() -> None:
    users = np.repeat(np.arange(45), [2 if k < 15 else 1 for k in range(45)])
    inspection, decisions = decide(user=users)
    assert decisions["client"].options["dataset.pool_small"] is True
    assert inspection.roles["user"] == "client"
    inspection, decisions = decide(user=np.arange(N))
    assert decisions["left out"].options == {"dataset.leave_out": ["user"]}
    assert decisions["client"].options == {"clients": 2, "cohort": 1}
    assert "dataset.client=NAME takes each value of a column as a client" in decisions["client"].reason


@pytest.mark.parametrize(
    ("fixed_options", "label", "options", "reason"),
    [
        ({}, [" yes", "yes", "no"] * 20, {}, "2 classes: yes (40), no (20)"),
        ({}, [0.0, 1.0] * 30, {}, "2 classes: 0.0 (30), 1.0 (30)"),
        ({}, [1, 2, 3] * 20, {"dataset.n_classes": 4}, "3 classes: 1 (20), 2 (20), 3 (20)"),
        ({"dataset.label": "label"}, [1, 2, 3] * 20, {"dataset.n_classes": 4}, "3 classes: "),
        ({"dataset.label": "nothing"}, [1, 2, 3] * 20, {}, "dataset.label=nothing, as typed"),
    ],
)
def test_labels_are_counted_as_they_are_read(
    fixed_options: dict[str, str], label: list[Any], options: dict[str, object], reason: str
) -> None:
    _, decisions = decide(fixed_options, label=label)
    assert {name: value for name, value in decisions["label"].options.items() if name not in fixed_options} == options
    assert decisions["label"].reason.startswith(reason)


def test_a_client_column_that_does_not_exist_is_not_replaced() -> None:
    _, decisions = decide({"dataset.client": "hospitl"})
    assert "client" not in decisions


def test_windows_of_a_long_table_count_as_samples() -> None:
    """Four series of 20 rows are eight windows of ten, of which 6.4 train: every client is small."""
    series, step = np.repeat(np.arange(4), 20), np.tile(np.arange(20), 4)
    _, decisions = decide(n=80, rec=series, t=step, user=series, label=np.repeat(["a", "b", "a", "b"], 20).tolist())
    assert decisions["series"].options == {"dataset.series": "rec", "dataset.window": 10}
    assert decisions["series"].reason == "one row per time step 't': 4 series of 20 rows; a sample is 10 rows"
    assert decisions["client"].reason == "4 clients of 20 rows, 4 of them with fewer than 10 training samples"
    assert decisions["test"].reason.endswith(
        "a fifth of the windows, of the same series as the training windows, is taken for testing"
    )
