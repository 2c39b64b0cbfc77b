"""FedBalancer's controller by hand, and against the authors' own logs of UCI-HAR."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.maths.pace_control import PaceControl, PaceState, pace_utility
from fedcohort.samples.threshold import compute_loss_threshold

LOGS = Path(__file__).resolve().parents[2] / ".." / "shared" / "papers" / "tables" / "fedbalancer_har_rounds.csv.gz"


def list_states(control: PaceControl, utilities: list[float]) -> list[PaceState]:
    """The states after each of the rounds."""
    state, visited_states = control.first_state(), []
    for U in utilities:
        state = control.observe(state, U)
        visited_states.append(state)
    return visited_states


def test_the_ratios_change_after_each_window_of_two_rounds() -> None:
    """U = 10, 9 | 8, 7 | 7.5, 7.5 | 6, 6: after round 4 19 > 15, after 6 15 = 15, after 8 15 > 12."""
    states = list_states(PaceControl(w=2, lss=0.05, dss=0.05), [10, 9, 8, 7, 7.5, 7.5, 6, 6])
    assert [s.ltr for s in states] == [0, 0, 0, 0.05, 0.05, 0, 0, 0.05]
    assert [s.ddlr for s in states] == [1, 1, 1, 0.95, 0.95, 1, 1, 0.95]


def test_ratios_stop_at_their_upper_bound_after_twenty_steps() -> None:
    states = list_states(PaceControl(w=1, lss=0.05, dss=0.1), [100.0 - i for i in range(30)])
    assert [s.ltr for s in states[20:]] == [1.0] * 10
    assert states[19].ltr == 0.95
    assert [s.ddlr for s in states[10:]] == [0.0] * 20


def test_ratios_stop_at_their_lower_bound() -> None:
    last = list_states(PaceControl(w=1, lss=0.3, dss=0.3), [float(i) for i in range(9)])[-1]
    assert (last.ltr, last.ddlr) == (0.0, 1.0)


def test_controlling_one_ratio_keeps_the_other() -> None:
    utilities = [9.0, 8.0, 7.0]
    assert list_states(PaceControl(w=1, dss=0.1), utilities)[-1].ltr == 0
    assert list_states(PaceControl(w=1, lss=0.1), utilities)[-1].ddlr == 1


def test_only_the_utilities_of_two_windows_are_kept() -> None:
    assert len(list_states(PaceControl(w=3), [1.0] * 20)[-1].utilities) == 6


@pytest.mark.parametrize("non_finite", [np.nan, np.inf])
def test_rounds_with_a_nan_utility_are_ignored(non_finite: float) -> None:
    control = PaceControl(w=1, lss=0.1)
    state = control.observe(control.first_state(), 2.0)
    assert control.observe(state, non_finite) is state


def test_the_utility_of_a_round_by_hand() -> None:
    """12 nats over 20 samples in 30 s: 12 / (20 x 30)."""
    assert pace_utility(np.array([5.0, 7.0]), np.array([8.0, 12.0]), 30.0) == pytest.approx(0.02)
    assert np.isnan(pace_utility(np.array([]), np.array([]), 30.0))
    assert np.isnan(pace_utility(np.array([5.0]), np.array([8.0]), 0.0))
    assert pace_utility(np.array([5.0]), np.array([8.0]), np.inf) == 0


@pytest.mark.parametrize("wrong", [{"w": 0}, {"w": 2, "lss": -0.1}, {"w": 2, "dss": 1.1}, {"w": 2.5}])
def test_pace_options_out_of_range_are_rejected(wrong: dict[str, int]) -> None:
    with pytest.raises(OptionError):
        PaceControl(**wrong)


def read_logged_rounds(seed: str) -> list[dict[str, float]]:
    """The rounds of the authors' FedBalancer run on UCI-HAR."""
    if not LOGS.exists():
        pytest.skip("no ../shared/papers/tables beside the repository: the authors' logs are shared, not committed")
    with gzip.open(LOGS, "rt") as file:
        rows = [row for row in csv.DictReader(file) if (row["method"], row["seed"]) == ("fedbalancer", seed)]
    training_rows = [row for row in rows if row["ddl"]]  # the last line of a run may be an evaluation alone
    return [{name: float(v or "nan") for name, v in row.items() if name != "method"} for row in training_rows]


@pytest.mark.parametrize(("seed", "rounds"), [("0", 1000), ("1", 678)])
def test_the_authors_logs_are_reproduced(seed: str, rounds: int) -> None:
    """With the logged U of each round with arrivals, the controller repeats the logged ltr and ddlr of all rounds.

    The deadline is dl + (dh - dl) ddlr wherever dl and dh are logged, and the threshold is ll + (lh - ll) ltr.
    """
    rows = read_logged_rounds(seed)
    assert len(rows) == rounds
    control = PaceControl(w=20, lss=0.05, dss=0.05)
    state = control.first_state()
    bounded = 0
    for row in rows:
        assert (state.ltr, state.ddlr) == pytest.approx((row["ltr"], row["ddlr"]), abs=1e-9)
        if not np.isnan(row["dl"]):
            bounded += 1
            assert row["dl"] + (row["dh"] - row["dl"]) * state.ddlr == pytest.approx(row["ddl"], abs=1e-6)
        if not np.isnan(row["ll"]):
            assert compute_loss_threshold(row["ll"], row["lh"], state.ltr) == pytest.approx(row["lt"], abs=1e-9)
        state = control.observe(state, row["U"] if row["ok"] > 0 else np.nan)
    assert bounded > 0.9 * rounds
