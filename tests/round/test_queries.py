"""Attackers falsify the signals of the attack, each independently; reports of other clients are unchanged."""

import numpy as np

from agg_harness import make_update
from config_options import make_component
from fedcohort.rng import new_generator
from fedcohort.round.queries import ClientReports


def claims(fraction: float = 0.5) -> ClientReports:
    """told = 10 measured + 1, of "loss" alone."""
    return ClientReports(
        make_component("attack", "loss_inflation", fraction=fraction, factor=10, shift=1, signals=["loss"]), 3, 8
    )


def test_the_attackers_are_drawn_by_the_seed() -> None:
    attack = claims()
    expected = attack.attack.attacker_ids(8, new_generator(3, "attack"))
    assert len(expected) == 4
    assert np.flatnonzero(attack.is_attacker).tolist() == expected.tolist()
    assert not ClientReports(make_component("attack", "none"), 3, 8).is_attacker.any()


def test_attackers_change_only_the_attacked_signals() -> None:
    attack = claims()
    clients = np.arange(8)[::-1].copy()
    true = clients + 1.0
    reported = attack.report_values("loss", clients, true)
    np.testing.assert_array_equal(reported, np.where(attack.is_attacker[clients], 10 * true + 1, true))
    np.testing.assert_array_equal(true, clients + 1.0)
    np.testing.assert_array_equal(attack.report_values("steps", clients, true), true)
    rows = np.stack([true, 2 * true], axis=1)
    np.testing.assert_array_equal(
        attack.report_values("loss", clients, rows), np.where(attack.is_attacker[clients, None], 10 * rows + 1, rows)
    )
    honest = np.flatnonzero(~attack.is_attacker)
    values = honest + 0.0
    assert attack.report_values("loss", honest, values) is values


def test_signals_read_from_an_update_can_be_attacked() -> None:
    attack = claims()
    attacker_id, honest_id = int(np.flatnonzero(attack.is_attacker)[0]), int(np.flatnonzero(~attack.is_attacker)[0])
    read_signal = attack.make_signal_reader("loss", lambda update: float(update.steps), 0)
    assert read_signal(make_update(attacker_id, [0.0], steps=7)) == 71.0
    assert read_signal(make_update(honest_id, [0.0], steps=7)) == 7.0


def test_without_attackers_values_are_unchanged() -> None:
    def read_signal(update: object) -> float:
        return 1.0

    assert (
        ClientReports(make_component("attack", "none"), 3, 8).make_signal_reader("loss", read_signal, 0) is read_signal
    )
    assert claims().make_signal_reader("loss", read_signal, 0) is not read_signal
