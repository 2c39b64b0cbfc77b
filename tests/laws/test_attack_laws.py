"""Laws of every attack, with aggregators that keep sums or matrices, and with alternating selectors."""

import itertools

import numpy as np
import pytest

from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.attack.base import Attack
from round_harness import run_small, run_without_files
from run_harness import FinishedRun, same_bits

ATTACKS = [choice for choice in list_options("attack") if choice != "none"]
TINY = ("clients=8", "cohort=5", "rounds=2", "split.limit=240", "client.epochs=1")
AGGREGATORS = ("fedavg", "scaffold", "median", "krum", "norm_clipping")
SELECTORS = ("random", "powd", "oort", "clustered", "fedpns", "rpowd", "feddiverse")
REDUCED_WORK = {"feddiverse": ("selector.epochs=1", "selector.pretrain=0")}
COSTS = ("comm/", "comp/", "time/")


def costs(run: FinishedRun) -> list[dict[str, float]]:
    return [{k: v for k, v in report.metrics.items() if k.startswith(COSTS)} for report in run.reports]


@pytest.fixture(scope="module")
def honest() -> FinishedRun:
    return run_without_files(*TINY)


@pytest.mark.parametrize("choice", list_options("attack"))
@failure_hint("Set falsifies_updates with send, falsifies_labels with relabel, and falsified_signals with falsify.")
def test_an_attack_declares_what_it_falsifies(choice: str) -> None:
    """The engine never calls a method whose effect the attack does not declare."""
    attack = make_component("attack", choice)
    is_overridden = [
        getattr(type(attack), name) is not getattr(Attack, name) for name in ("send", "relabel", "falsify")
    ]
    assert is_overridden == [attack.falsifies_updates, attack.falsifies_labels, bool(attack.falsified_signals)]


@pytest.mark.parametrize("choice", ATTACKS)
@failure_hint("Draw nothing and change nothing where no client attacks.")
def test_without_attackers_no_bit_changes(choice: str, honest: FinishedRun) -> None:
    run = run_without_files(*TINY, f"attack={choice}", "attack.fraction=0")
    assert same_bits(run, honest)
    assert [dict(report.metrics) for report in run.reports] == [dict(report.metrics) for report in honest.reports]
    assert "attacker" not in run.last.clients


@pytest.mark.parametrize("choice", ATTACKS)
@failure_hint("Change what is sent, never what is charged: an attack costs nothing, and metrics of the data are true.")
def test_an_attack_costs_nothing_and_the_data_stay_true(choice: str, honest: FinishedRun) -> None:
    run = run_without_files(*TINY, f"attack={choice}", "attack.fraction=0.4")
    assert costs(run) == costs(honest)
    assert run.cohorts == honest.cohorts
    np.testing.assert_array_equal(run.reports[0].clients["loss"], honest.reports[0].clients["loss"])
    assert run.reports[0].clients["attacker"].sum() == 4
    skew = [{k: v for k, v in r.reports[0].metrics.items() if k.startswith("skew/")} for r in (run, honest)]
    assert skew[0] == skew[1]


@pytest.mark.parametrize("choice", ATTACKS)
@failure_hint("Return finite updates and values from finite ones, of the same shapes.")
def test_every_attack_runs_with_aggregators_and_selectors(choice: str) -> None:
    """All runs have the same attackers, whose weight is at most that of all clients."""
    attackers = set()
    for agg, selector in zip(
        AGGREGATORS, itertools.islice(itertools.cycle(SELECTORS), ATTACKS.index(choice), None), strict=False
    ):
        overrides = (
            f"attack={choice}",
            "attack.fraction=0.4",
            f"agg={agg}",
            f"selector={selector}",
            *REDUCED_WORK.get(selector, ()),
        )
        reports, test_loss = run_small(*TINY, *overrides)
        assert np.isfinite(test_loss), overrides
        attackers.add(tuple(np.flatnonzero(reports[0].clients["attacker"]).tolist()))
        assert 0 <= reports[-1].metrics["attack/weight"] <= 1 + 1e-9
    assert len(attackers) == 1
