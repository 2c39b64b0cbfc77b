"""What a round tells of its clients, from facts made up by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.round.client_columns import MAX_SIGNAL_COLUMNS, make_client_columns, make_signal_columns
from fedcohort.round.report import compute_data_metrics, compute_deadline_metrics
from fedcohort.types import ProbeResult, Selection

NAN = float("nan")


def ids(*clients: int) -> np.ndarray:
    return np.array(clients, np.int64)


def make_arrivals(**changes: Any) -> Any:
    """Clients 1 and 4 of five arrived, with weights of 1/4 and 3/4."""
    facts = {"clients": ids(1, 4), "weights": np.array([0.25, 0.75]), "reports": {}, "derived_signals": {}}
    return SimpleNamespace(**{**facts, **changes})


def make_round() -> Any:
    scores = np.array([0.1, 0.2, 0.3, NAN, 0.5])
    selection = Selection(ids(1, 2, 4), scores, {"explore": scores / 2}, probability=np.full(5, 0.6))
    phases = {"down": np.ones(3), "train": np.array([1.0, 18.0, 4.0]), "up": np.array([1.0, 2.0, 2.0])}
    arrived = np.array([True, False, True])
    outcome = DeadlineOutcome(ids(2, 0, 1), arrived, np.array([3.0, NAN, 7.0]), 8.0, phases, ids(2, 2, 2), 9.0)
    answers = {"loss": ProbeResult(ids(0, 1), np.array([2.0, 3.0]))}
    jobs = SimpleNamespace(client=selection.clients)
    queries = SimpleNamespace(answers_by_signal=answers)
    dispatch = SimpleNamespace(ready_ids=ids(0, 1, 2, 4), queries=queries, jobs=jobs)
    return SimpleNamespace(
        dispatch=dispatch, selection=selection, outcome=outcome, queried_ids=ids(0, 1, 2), carries_late_jobs=False
    )


def test_there_is_a_column_for_each_known_fact() -> None:
    reports = {"train_loss": np.array([0.7, 0.9]), "duration": np.array([3.0, 7.0])}
    signals = {"update_gram": np.array([[1.0, 2.0], [3.0, 4.0]]), "server_loss": lambda: 0.0}  # a function is no column
    table = make_client_columns(make_round(), make_arrivals(reports=reports, derived_signals=signals), 5)
    expected: dict[str, list[Any]] = {
        "available": [True, True, True, False, True],
        "queried": [True, True, True, False, False],
        "selected": [False, True, True, False, True],
        "arrived": [False, True, False, False, True],
        "units": [NAN, 2, 0, NAN, 1],
        "finish_s": [NAN, 3, NAN, NAN, 7],
        "units_asked": [NAN, 2, 2, NAN, 2],
        "down_s": [NAN, 1, 1, NAN, 1],
        "train_s": [NAN, 1, 18, NAN, 4],
        "up_s": [NAN, 1, 2, NAN, 2],
        "train_loss": [NAN, 0.7, NAN, NAN, 0.9],
        "weight": [NAN, 0.25, NAN, NAN, 0.75],
        "score": [0.1, 0.2, 0.3, NAN, 0.5],
        "part_explore": [0.05, 0.1, 0.15, NAN, 0.25],
        "probability": [0.6] * 5,
        "signal_duration": [NAN, 3, NAN, NAN, 7],
        "signal_update_gram.0": [NAN, 1, NAN, NAN, 3],
        "signal_update_gram.1": [NAN, 2, NAN, NAN, 4],
        "signal_loss": [2, 3, NAN, NAN, NAN],
    }
    assert set(table) == set(expected)
    for name, column in expected.items():
        np.testing.assert_allclose(table[name].astype(float), np.array(column, float), err_msg=name)


def test_the_times_of_a_round_are_reported() -> None:
    """9 s are announced, and the round closes at 8 s; without a deadline or a cohort these metrics are absent."""
    timing = make_round()
    assert compute_deadline_metrics(timing) == {"round/announced_s": 9.0, "round/closed_s": 8.0}
    timing.outcome = replace(timing.outcome, announced_s=np.inf)
    assert compute_deadline_metrics(timing) == {"round/closed_s": 8.0}
    timing.selection, timing.arrived_jobs = Selection(ids(), timing.selection.scores, {}), []
    assert compute_deadline_metrics(timing) == {}


def test_vectors_become_columns_unless_they_are_long() -> None:
    """By the length of a row, however many rows there are."""
    assert list(make_signal_columns("x", np.zeros(3))) == ["signal_x"]
    assert len(make_signal_columns("x", np.zeros((1, MAX_SIGNAL_COLUMNS)))) == MAX_SIGNAL_COLUMNS
    assert make_signal_columns("x", np.zeros((1, MAX_SIGNAL_COLUMNS + 1))) == {}
    assert len(make_signal_columns("x", np.zeros((MAX_SIGNAL_COLUMNS + 1, 2)))) == 2


def federation(counts: np.ndarray, single: bool = True) -> Any:
    return SimpleNamespace(label_counts=counts, targets=SimpleNamespace(single=single))


def test_the_weight_of_attackers_is_relative_to_the_sum_of_weights() -> None:
    """Client 4 lies: 3/4 of the weight, one of two clients that arrived; weights may have any sum."""
    is_attacker = np.array([False, False, True, False, True])
    sequences = federation(np.ones((5, 1)), single=False)
    for total in (0.5, 1.0, 2.0):
        metrics = compute_data_metrics(sequences, make_arrivals(weights=total * np.array([0.25, 0.75])), is_attacker)
        assert metrics == pytest.approx({"attack/weight": 0.75, "attack/share": 0.5})
    assert compute_data_metrics(sequences, make_arrivals(weights=np.zeros(2)), is_attacker) == {}


def test_the_imbalance_is_that_of_the_pooled_data() -> None:
    """Clients of one class each: CI = 1 alone, 0 together; 30 and 10 samples: 1 - H(3/4) / ln 2 = .188722."""
    honest, data = np.zeros(5, bool), federation(np.array([[9, 0], [30, 0], [0, 30], [9, 0], [0, 10]]))
    for clients, expected in ((ids(1), 1.0), (ids(1, 2), 0.0), (ids(1, 4), 0.188722)):
        metrics = compute_data_metrics(data, make_arrivals(clients=clients), honest)
        assert metrics == pytest.approx({"select/class_imbalance": expected}, abs=1e-6)
    assert compute_data_metrics(data, make_arrivals(clients=ids()), honest) == {}
