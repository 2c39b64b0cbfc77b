"""False signals: the modes, integers, and the reports that are sent at registration."""

from pathlib import Path

import numpy as np
import pytest

from config_options import make_component
from fedcohort.attack.false_signal import FALSIFIABLE_SIGNALS
from fedcohort.signal.base import QueriedSignal, Reported, Static, find_signal, list_signals
from round_harness import run_without_files
from run_harness import run_training

TRUE = np.array([[0.5, 4.0], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("mode", "false"),
    [("constant", [[3, 3], [3, 3]]), ("scale", [[1.5, 12], [0, 6]]), ("invert", [[2, 0.25], [0, 0.5]])],
)
def test_false_values_of_each_mode_by_hand(mode: str, false: list[list[float]]) -> None:
    attack = make_component("attack", "false_signal", mode=mode, value=3, signals=["loss"])
    assert attack.falsify("loss", TRUE).tolist() == false
    assert attack.falsify("train_loss", TRUE) is TRUE


@pytest.mark.parametrize(
    ("mode", "value", "false"),
    [("invert", 1, [1, 1, 0]), ("scale", 0.3, [3, 1, 0]), ("scale", 1e30, [2**31, 2**31, 0])],
)
def test_numbers_of_samples_stay_integers(mode: str, value: float, false: list[int]) -> None:
    counts = make_component("attack", "false_signal", mode=mode, value=value).falsify("n_train", np.array([10, 2, 0]))
    assert counts.dtype == np.int64
    assert counts.tolist() == false


def test_every_signal_that_clients_send_can_be_false() -> None:
    kinds = Static | QueriedSignal | Reported
    sent_signals = {
        name for name in list_signals() if isinstance(signal := find_signal(name), kinds) and signal.bytes_up > 0
    }
    assert set(FALSIFIABLE_SIGNALS) == sent_signals
    assert make_component("attack", "false_signal").falsified_signals == sent_signals


def test_reports_at_registration_are_false(tmp_path: Path) -> None:
    attack_overrides = ("attack=false_signal", "attack.fraction=0.25", "attack.mode=constant", "attack.value=1")
    run = run_training(tmp_path, *attack_overrides, "attack.signals=[n_train]", "selector=clustered", "rounds=1")
    first = run.reports[0].clients
    assert first["attacker"].sum() == 3
    np.testing.assert_array_equal(first["signal_n_train"] == 1, first["attacker"] == 1)
    honest = first["attacker"] == 0
    np.testing.assert_array_equal(first["signal_n_train"][honest], run.info.n_train[honest])


def test_false_losses_get_attackers_selected() -> None:
    """Three of twelve clients with a tenfold loss fill three of the four places of pow-d in every round."""
    attack_overrides = ("attack=false_signal", "attack.fraction=0.25", "attack.value=1000", "attack.signals=[loss]")
    run = run_without_files(*attack_overrides, "selector=powd", "selector.candidates=12")
    for report in run.reports[1:]:
        assert report.metrics["attack/share"] == 0.75
        column = report.clients["attacker"]
        assert np.flatnonzero(~np.isnan(column)).tolist() == report.cohort.tolist()
        assert np.nansum(column) == 3
