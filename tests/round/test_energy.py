"""Energy of clients: watts times the device model's seconds, plus joules per byte; and budgets of joules."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fedcohort.errors import IncompatibleConfig
from fedcohort.round.budget import Budget, BudgetUse
from round_harness import run_without_files
from run_harness import FinishedRun, run_training, same_bits

STEADY = ("device=shifted_exponential", "device.alpha=1", "device.lam=0")  # a second per sample of a job
TINY = ("clients=6", "cohort=6", "rounds=3", "split.limit=240", "client.epochs=1", "heterogeneity=iid", *STEADY)


def joules(run: FinishedRun) -> list[float]:
    return [report.metrics["energy/joules"] for report in run.reports]


def all_bytes(run: FinishedRun) -> np.ndarray:
    return np.array([r.metrics["comm/down_bytes"] + r.metrics["comm/up_bytes"] for r in run.reports])


def n_train(run: FinishedRun) -> float:
    """Return the training samples of all clients, which take a second each."""
    return float(run.last.clients["train_s"].sum())


def test_training_takes_watts_times_seconds() -> None:
    """All six clients train for one epoch in each round, and nothing else is charged at 0 joules per byte."""
    run = run_without_files(*TINY, "device.watts=2.5")
    assert n_train(run) > 100
    np.testing.assert_allclose(joules(run), 2.5 * n_train(run) * np.arange(4))


def test_a_query_takes_a_third_of_an_epoch_and_bytes_are_those_of_the_ledger() -> None:
    """Power-of-choice queries all clients, and its clients report their sizes at registration."""
    run = run_without_files(*TINY, "selector=powd", "device.watts=3", "device.joules_per_byte=0.01")
    np.testing.assert_allclose(joules(run), 3 * 4 / 3 * n_train(run) * np.arange(4) + 0.01 * all_bytes(run))


def test_late_clients_are_charged_in_full() -> None:
    """The deadline drops slow clients of a persistent device, whose seconds are charged all the same."""
    overrides = ("deadline=fixed", "deadline.k=0.9", "rounds=2", "device.watts=1")
    run, patient = (
        run_without_files(*TINY, *overrides),
        run_without_files(*TINY, "rounds=2", "device.watts=1"),
    )
    assert len(run.last.arrived) < 6
    np.testing.assert_allclose(joules(run), joules(patient))


def test_energy_changes_no_bit_and_is_no_metric_by_default() -> None:
    plain, measured = run_without_files(*TINY), run_without_files(*TINY, "device.watts=2")
    assert same_bits(plain, measured)
    assert "energy/joules" not in plain.last.metrics


def test_a_budget_of_joules_ends_and_extends_a_run_to_the_bit(tmp_path: Path) -> None:
    overrides = (*TINY, "device.watts=2", "device.joules_per_byte=0.1")
    whole_run = run_training(tmp_path / "whole", *overrides)
    assert all(before < after for before, after in pairwise(joules(whole_run)))
    short_run = run_training(tmp_path, *overrides, f"until.joules={joules(whole_run)[1] + 1!r}")
    assert [report.step for report in short_run.reports] == [0, 1, 2]
    longer = run_training(tmp_path, *overrides, "resume=true")
    assert longer.last.fingerprint == whole_run.last.fingerprint
    assert longer.last.metrics["energy/joules"] == joules(whole_run)[-1]


def test_the_text_of_a_budget_names_joules_only_where_they_are_limited() -> None:
    assert "joules" not in str(Budget(3))
    assert str(Budget(3, joules=5.0)).endswith("joules=5.0)")
    assert Budget(3, joules=5.0).list_reached_limits(BudgetUse(1, joules=5.0)) == ["until.joules"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("device=instant", "device.watts=2"), "device.watts=2 needs seconds of computation, and device=instant"),
        (("until.joules=5",), "until.joules=5 would never be reached: set device.watts or device.joules_per_byte"),
    ],
)
def test_energy_without_its_options_is_rejected(overrides: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=message):
        run_training(tmp_path, "clients=6", "cohort=6", *overrides)
