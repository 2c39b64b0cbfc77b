"""Clients that claim higher losses: who, what the server hears, and what that does to methods that believe them."""

import logging
from pathlib import Path

import numpy as np
import pytest

from agg_harness import make_update
from config_options import make_component
from fedcohort.attack.loss_inflation import LOSS_SIGNALS
from fedcohort.rng import new_generator
from fedcohort.round.queries import ClientReports
from fedcohort.signal.base import Computed, Measured, Reported, find_signal, list_signals
from round_harness import run_without_files
from run_harness import FinishedRun, make_components, run_training, same_bits
from signal_kinds import find_reported

ATTACK = ("attack=loss_inflation", "attack.fraction=0.25")  # 3 of 12
FULL = ("selector=full", "rounds=3")


def list_attackers(run: FinishedRun) -> set[int]:
    """Of those who arrived in any round: whose reported training loss no network ever has."""
    return {int(k) for report in run.reports[1:] for k in np.flatnonzero(report.clients["train_loss"] > 1e4)}


def arrivals(run: FinishedRun) -> set[int]:
    return {int(k) for report in run.reports for k in report.arrived}


@pytest.mark.parametrize(("fraction", "clients", "count"), [(0.1, 12, 2), (0.07, 100, 7), (0.25, 12, 3), (1.0, 5, 5)])
def test_the_number_of_attackers(fraction: float, clients: int, count: int) -> None:
    # ceil(fraction K), although .07 * 100 is 7.000000000000001
    attackers = make_component("attack", "loss_inflation", fraction=fraction).attacker_ids(
        clients, new_generator(0, "attack")
    )
    assert len(attackers) == len(set(attackers.tolist())) == count
    assert sorted(attackers.tolist()) == attackers.tolist()


def test_the_seed_determines_the_attackers() -> None:
    attack = make_component("attack", "loss_inflation")
    drawn = [tuple(attack.attacker_ids(50, new_generator(seed, "attack")).tolist()) for seed in (0, 0, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 2


def test_attackers_report_inflated_losses() -> None:
    attack = make_component("attack", "loss_inflation", factor=3, shift=-1, signals=["loss"])
    assert attack.falsify("loss", np.array([1.0, 2.0])).tolist() == [2.0, 5.0]
    assert attack.falsify("train_loss", np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert attack.falsified_signals == {"loss"}


def test_inflating_each_sample_inflates_the_sums() -> None:
    """Losses 1, 2 and 3 that are reported three times as high have the sum 18 and the sum of squares 9 * 14."""
    attack = make_component("attack", "loss_inflation", factor=3, signals=["loss_sum", "loss_squares", "loss_high"])
    x = np.array([1.0, 2.0, 3.0])
    for signal, true, inflated in (
        ("loss_sum", x.sum(), 18),
        ("loss_squares", x @ x, 9 * 14),
        ("loss_high", x.max(), 9),
    ):
        assert attack.falsify(signal, np.array([true])).tolist() == [inflated]


def test_every_reader_of_reported_losses_can_be_attacked() -> None:
    """All loss signals can be falsified, by any reader; a standard deviation and a number of samples cannot."""
    reported_signals = {
        signal
        for signal in list_signals()
        if "loss" in signal and isinstance(find_signal(signal), Measured | Computed | Reported)
    }
    assert set(LOSS_SIGNALS) == reported_signals - {"train_loss_std", "loss_count"}
    for selector in ("oort", "pyramidfl"):
        assert (
            make_components(f"selector={selector}").selector.needs
            & make_component("attack", "loss_inflation").falsified_signals
        )


@pytest.mark.parametrize(
    ("options", "false_signals"),
    [
        ({"factor": 2, "shift": 0}, {"loss", "loss_sum"}),
        ({"factor": 1, "shift": 3}, {"loss"}),
        ({"factor": 1, "shift": 0}, set()),
    ],
)
def test_an_attack_without_effect_is_reported(options: dict[str, float], false_signals: set[str]) -> None:
    attack = make_component("attack", "loss_inflation", signals=["loss", "loss_sum"], **options)
    assert attack.falsified_signals == false_signals
    notice = ["attack=lie has no effect: attack.factor=1 attack.shift=0 leaves loss, loss_sum as measured"]
    assert list(attack.notices("lie")) == ([] if false_signals else notice)


def test_oort_receives_the_inflated_losses() -> None:
    run = run_without_files(*ATTACK, "attack.factor=1e3", "selector=oort", "cohort=12", "rounds=1")
    assert (run.last.clients["signal_loss_squares"] > 1e5).sum() == 3


def test_only_attackers_reports_are_inflated() -> None:
    claims = ClientReports(
        make_component("attack", "loss_inflation", fraction=0.5, factor=10, signals=["loss", "shadow_loss"]), 0, 4
    )
    clients = np.arange(4)
    true = np.array([1.0, 2.0, 3.0, 4.0])
    factor = np.where(claims.is_attacker, 10.0, 1.0)
    assert claims.is_attacker.sum() == 2
    np.testing.assert_array_equal(claims.report_values("loss", clients, true), true * factor)
    np.testing.assert_array_equal(true, [1, 2, 3, 4])  # what was measured stays
    subset = clients[::-1][:3]
    np.testing.assert_array_equal(claims.report_values("loss", subset, true[subset]), (true * factor)[subset])
    rows = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(claims.report_values("shadow_loss", clients, rows), rows * factor[:, None])
    assert claims.report_values("val_loss", clients, true).tolist() == true.tolist()


def test_reports_pass_through_the_client_that_sends_them() -> None:
    claims = ClientReports(make_component("attack", "loss_inflation", fraction=0.5, factor=10), 0, 4)
    read_signal = claims.make_signal_reader("train_loss", find_reported("train_loss").read, 0)
    after = claims.make_signal_reader("loss_post", find_reported("loss_post").read, 0)
    steps = claims.make_signal_reader("steps", find_reported("steps").read, 0)
    for k in range(4):
        update = make_update(k, [0.0], steps=1, batch_loss=np.array([2.0]), loss_after=1.5)
        assert read_signal(update) == (20.0 if claims.is_attacker[k] else 2.0)
        assert after(update) == (15.0 if claims.is_attacker[k] else 1.5)
        assert steps(update) == 1.0


def test_attackers_gain_weight_and_a_cap_bounds_it() -> None:
    overrides = (*ATTACK, "attack.factor=100", "agg=fedmaba", *FULL)
    uncapped = run_without_files(*overrides)
    capped = run_without_files(*overrides, "agg.loss_cap=1.5")
    n, n_attackers, eta, alpha = 12, 3, 0.5, 0.5
    growth = 0.0
    for t in (1, 2, 3):
        uncapped_metrics, capped_metrics = uncapped.reports[t].metrics, capped.reports[t].metrics
        assert uncapped_metrics["attack/share"] == capped_metrics["attack/share"] == n_attackers / n
        assert uncapped_metrics["attack/weight"] > capped_metrics["attack/weight"] > n_attackers / n
        # the bound of the docstring, round upon round: the median of what is told is no more than an honest loss
        growth += eta * 1.5 * capped.reports[t - 1].clients["loss"].max()
        odds = n_attackers * np.exp(growth)
        assert (
            capped_metrics["attack/weight"] <= alpha * odds / (odds + n - n_attackers) + (1 - alpha) * n_attackers / n
        )
    # without a cap three of twelve have the bandit's share to themselves as far as rho = 1 lets them: KL = log 4 > 1
    assert uncapped.last.metrics["attack/weight"] > alpha * 0.85 + (1 - alpha) * n_attackers / n


def test_the_attackers_weight_is_relative_to_the_sum() -> None:
    # q-FFL's weights sum to less than 1; claims of 1000 times as much, to the power of 2, leave nothing for others
    run = run_without_files(*ATTACK, "attack.factor=1000", "agg=qffl", "agg.q=2", *FULL)
    assert run.last.metrics["attack/weight"] == pytest.approx(1.0, abs=1e-3)
    assert np.nansum(run.last.clients["weight"]) < 0.999


def test_the_attackers_do_not_depend_on_the_selector() -> None:
    overrides = (*ATTACK, "attack.factor=1e6", "agg=fedavg", "rounds=3")
    all_clients = list_attackers(run_without_files(*overrides, "selector=full"))
    assert len(all_clients) == 3
    for selector in ("random", "ucb_cs"):
        run = run_without_files(*overrides, f"selector={selector}", "seed=0")
        assert list_attackers(run) == all_clients & arrivals(run)
    assert list_attackers(run_without_files(*overrides, "selector=full", "seed=1")) != all_clients


def test_a_selector_that_uses_losses_selects_attackers() -> None:
    run = run_without_files(*ATTACK, "attack.factor=1e3", "selector=powd", "selector.candidates=12")
    for report in run.reports[1:]:
        assert report.metrics["attack/share"] == 0.75  # all three of them, in a cohort of four


def test_without_a_reader_only_the_reports_differ(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="fedcohort"):
        attacked = run_training(tmp_path / "lies", *ATTACK)
    message = "attack=loss_inflation has no effect: neither the selector nor the aggregator reads batch_loss, loss, "
    assert message in caplog.text
    caplog.clear()
    honest = run_training(tmp_path / "truth")
    assert "has no effect" not in caplog.text
    assert same_bits(attacked, honest)
    for inflated, true in zip(attacked.reports, honest.reports, strict=True):
        assert {k: v for k, v in inflated.metrics.items() if not k.startswith("attack/")} == true.metrics
    assert attacked.last.metrics["attack/weight"] >= 0


def test_a_round_without_arrivals_has_no_attackers_weight() -> None:
    run = run_without_files(*ATTACK, "agg=fedmaba", "deadline=fixed", "deadline.k=0.01", "rounds=2")
    assert not [name for name in run.last.metrics if name.startswith("attack/")]


def test_a_resumed_run_has_the_same_attackers(tmp_path: Path) -> None:
    overrides = (*ATTACK, "agg=fedmaba", "attack.factor=1e6")
    uninterrupted = run_training(tmp_path / "whole", *overrides, "rounds=3")
    run_training(tmp_path / "parts", *overrides, "rounds=2")
    resumed = run_training(tmp_path / "parts", *overrides, "rounds=3", "resume=true")
    assert same_bits(uninterrupted, resumed)
    assert list_attackers(resumed) <= list_attackers(uninterrupted)


def test_class_losses_are_those_of_inflated_samples() -> None:
    """Two samples of class 0 with losses 1 and 3, none of class 1: with factor 2 and shift 1 they have 3 and 7."""
    row = np.array([[2.0, 0, 4, 0, 10, 0, 5]])
    attack = make_component("attack", "loss_inflation", factor=2, shift=1, signals=["class_loss"])
    np.testing.assert_allclose(attack.falsify("class_loss", row), [[2, 0, 10, 0, 58, 0, 5]])
