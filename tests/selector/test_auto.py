"""Selection by diagnosis: its choices after each probe, and that it is random selection otherwise."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from config_options import make_typed
from fedcohort.selector.auto import Auto, State
from fedcohort.selector.random import Random
from fedcohort.types import Population, ProbeResult
from optional_values import not_none
from run_harness import FinishedRun, run_training
from selector_harness import make_context, make_outcome

K, C, N_NOISY = 12, 4, 4
ALL_IDS = np.arange(K)


def auto(**options: Any) -> Auto:
    return make_typed(Auto, "selector", "auto", **options)


def report(excess: Sequence[float], counts: np.ndarray | None = None, other_loss: float = 3.5) -> ProbeResult:
    """Return the answers of clients whose mean loss is .5 nats plus `excess` in every class; other labels cost more."""
    counts = np.full((K, C), 10.0) if counts is None else counts
    means = 0.5 + np.array(excess)[:, None] + np.zeros(C)
    rows = np.hstack([counts, counts * means, counts * (means**2 + 0.1), other_loss * counts.sum(1, keepdims=True)])
    return ProbeResult(ALL_IDS, rows)


def noisy(gap: float, other_loss: float = 3.5) -> ProbeResult:
    """Return a report in which the last four clients have about the rate `gap` of wrong labels more."""
    excess_loss = gap * (other_loss - 0.5)
    return report([0.0] * (K - N_NOISY) + [excess_loss] * N_NOISY, other_loss=other_loss)


def run_rounds(selector: Auto, *probes: ProbeResult, state: State | None = None) -> State:
    """Return the state after rounds 12, 24, ... with these answers, each followed by a selection."""
    state = state or selector.init(Population(K, C, 4, {}))
    for measurement, answers in enumerate(probes, 1):
        result = make_outcome(12 * measurement, [0, 1, 2, 3], probes={"class_loss": answers})
        state = selector.observe(state, result)[1]
        state = selector.select(state, make_context(12 * measurement + 1, 4, K), {})[1]
    return state


def cohorts(selector: Auto, state: State, rounds: int = 40) -> list[list[int]]:
    chosen = []
    for round in range(30, 30 + rounds):
        selection, state = selector.select(state, make_context(round, 4, K), {})
        chosen.append(selection.clients.tolist())
        state = selector.observe(state, make_outcome(round, selection.clients.tolist()))[1]
    return chosen


def random_cohorts(rounds: int = 40) -> list[list[int]]:
    selector = make_typed(Random, "selector", "random")
    state = selector.init(Population(K, C, 4, {}))
    return [
        selector.select(state, make_context(round, 4, K), {})[0].clients.tolist() for round in range(30, 30 + rounds)
    ]


def test_two_looks_are_needed_before_clients_are_left_out() -> None:
    selector = auto(probation=0)
    after_one = run_rounds(selector, noisy(0.6))
    assert not after_one.watch.is_acting
    assert after_one.watch.is_suspected
    after_two = run_rounds(selector, noisy(0.6), noisy(0.6))
    assert after_two.watch.is_acting
    assert np.flatnonzero(~after_two.in_pool).tolist() == [8, 9, 10, 11]
    assert max(max(cohort) for cohort in cohorts(selector, after_two)) < 8


@pytest.mark.parametrize(
    "probes",
    [
        [noisy(0.02), noisy(0.02)],
        [noisy(0.15), noisy(0.15)],
        [noisy(0.6), noisy(0.3)],
        [noisy(0.6, other_loss=0.6), noisy(0.6)],
        [report([0.0] * K), report([0.0] * K)],
    ],
    ids=["no gap", "below the threshold", "falls", "the first look is too early", "equal"],
)
def test_otherwise_it_is_random_selection_to_the_bit(probes: list[ProbeResult]) -> None:
    selector = auto()
    state = run_rounds(selector, *probes)
    assert not state.watch.is_acting
    assert cohorts(selector, state) == random_cohorts()


def test_before_the_first_probe_it_is_random_selection() -> None:
    assert cohorts(auto(), run_rounds(auto())) == random_cohorts()


def test_act_false_probes_and_stays_random() -> None:
    selector = auto(act=False)
    state = run_rounds(selector, noisy(0.6), noisy(0.6))
    assert cohorts(selector, state) == random_cohorts()
    assert len(selector.plan(state, make_context(36, 4, K))) == 1
    np.testing.assert_allclose(state.rate[8:], 0.6, atol=0.05)


def test_probes_are_sent_in_the_rounds_of_the_interval() -> None:
    """With 12 clients and cohorts of 4 clients have 1.2 jobs after 3.6 rounds, so that `first` decides."""
    selector = auto(first=5, probes=2)
    state = selector.init(Population(K, C, 4, {}))
    rounds = [round for round in range(30) if selector.plan(state, make_context(round, 4, K))]
    assert rounds == [5, 10]
    assert selector.init(Population(1000, C, 10, {})).interval == 120
    (probe,) = selector.plan(state, make_context(5, 4, K, available=[1, 2]))
    assert (probe.signal, probe.clients.tolist(), probe.concurrent) == ("class_loss", [1, 2], True)


def test_a_small_first_gap_ends_the_probes() -> None:
    assert run_rounds(auto(), noisy(0.05)).watch.is_done
    assert not run_rounds(auto(), noisy(0.15)).watch.is_done
    assert not auto().plan(run_rounds(auto(), noisy(0.05)), make_context(24, 4, K))


def test_a_large_federation_is_probed_in_part_first() -> None:
    """The last 5 / 4, rounded up to two, rounds selected clients 2, 3, 6 and 7."""
    selector = auto(sample=5)
    state = selector.init(Population(K, C, 4, {}))
    for round, clients in enumerate([[0, 1], [2, 3], [6, 7]], 9):
        state = selector.observe(state, make_outcome(round, clients))[1]
    assert selector.plan(state, make_context(12, 4, K))[0].clients.tolist() == [2, 3, 6, 7]
    assert selector.plan(state, make_context(24, 4, K))[0].clients.tolist() == ALL_IDS.tolist()


def test_a_sample_of_clients_of_one_class_leads_to_a_question_to_all() -> None:
    """Four of twelve report their counts; the small gap ends the watch, but the next probe asks for all counts."""
    counts = 40.0 * np.repeat(np.eye(C), 3, axis=0)
    all_answers = report([0.0] * K, counts)
    few = np.array([0, 3, 6, 9])
    selector = auto()
    result = make_outcome(12, [0, 1], probes={"class_loss": ProbeResult(few, all_answers.values[few])})
    state = selector.observe(selector.init(Population(K, C, 2, {})), result)[1]
    state = selector.select(state, make_context(13, 2, K), {})[1]
    assert state.watch.is_done
    assert not state.is_balanced
    assert selector.plan(state, make_context(24, 4, K))
    result = make_outcome(24, [0, 1, 2, 3], probes={"class_loss": all_answers})
    state = selector.observe(state, result)[1]
    assert selector.select(state, make_context(25, 4, K), {})[1].is_balanced


def test_probation_keeps_an_eighth_of_the_places() -> None:
    """Four places a round and .125: one excluded client in every second round."""
    selector = auto()
    state = run_rounds(selector, noisy(0.6), noisy(0.6))
    n_excluded = [sum(client >= 8 for client in cohort) for cohort in cohorts(selector, state)]
    assert sum(n_excluded) == 20
    assert max(n_excluded) == 1


def test_a_gap_that_persists_below_the_threshold_keeps_the_pool() -> None:
    """.2 is below the threshold of .23, but more than .8 x .245: the selector still acts."""
    state = run_rounds(auto(gap=0.23), noisy(0.245), noisy(0.24), noisy(0.20))
    assert state.watch.is_acting
    assert state.watch.last_gap < 0.23
    assert np.flatnonzero(~state.in_pool).tolist() == [8, 9, 10, 11]


def test_the_pool_holds_a_cohort() -> None:
    """Two clients are below the cut, and a fifth of 12 are three; a cohort has four."""
    probe = report([0.0, 0.0, *(1.8 + 0.01 * np.arange(10)).tolist()])
    state = run_rounds(auto(cover=0.0), probe, probe)
    assert state.watch.is_acting
    assert np.flatnonzero(state.in_pool).tolist() == [0, 1, 2, 3]


def test_cohorts_are_complete_for_every_size_of_the_pool() -> None:
    """Half of the places are for probation, and the pool may have fewer clients than the others."""
    selector = auto(probation=0.5)
    state = run_rounds(selector, noisy(0.6), noisy(0.6))
    for pool_size in range(K + 1):
        short_pool = replace(state, in_pool=pool_size > ALL_IDS)
        for n_available in range(K + 1):
            ctx = make_context(30, 4, K, available=range(K - n_available, K))
            assert len(selector.select(short_pool, ctx, {})[0].clients) == min(4, n_available)


def test_a_falling_gap_releases_the_excluded_clients_for_good() -> None:
    """A domain is learnt: .6, .6, then .4 < .8 * .6; a gap of .5 keeps them out."""
    selector = auto()
    excluding = run_rounds(selector, noisy(0.6), noisy(0.6), noisy(0.5))
    assert not excluding.in_pool.all()
    released = run_rounds(selector, noisy(0.6), noisy(0.6), noisy(0.4))
    assert released.in_pool.all()
    assert released.watch.is_done
    assert cohorts(selector, released) == random_cohorts()


def test_one_class_clients_get_balanced_cohorts() -> None:
    """Three clients for each of four classes; a balanced cohort has one of each, a random one rarely."""
    counts = 40.0 * np.repeat(np.eye(C), 3, axis=0)
    selector = auto()
    state = run_rounds(selector, report([0.0] * K, counts))
    assert state.is_balanced
    assert all(sorted(k // 3 for k in cohort) == [0, 1, 2, 3] for cohort in cohorts(selector, state))
    assert not run_rounds(auto(balance=False), report([0.0] * K, counts)).is_balanced


def test_cohorts_are_not_balanced_while_noise_is_suspected() -> None:
    """Clients 8 to 11 have even counts and wrong labels; the others one class each, so that balance prefers 8 to 11."""
    counts = np.concatenate([40.0 * np.repeat(np.eye(C), 2, axis=0), np.full((4, C), 10.0)])
    answers = report([0.0] * 8 + [1.8] * 4, counts)
    suspecting = run_rounds(auto(), answers)
    assert suspecting.watch.is_suspected
    assert not suspecting.is_balanced
    excluding = run_rounds(auto(probation=0), answers, answers)
    assert excluding.watch.is_acting
    assert excluding.is_balanced
    assert all(sorted(k // 2 for k in cohort) == [0, 1, 2, 3] for cohort in cohorts(auto(probation=0), excluding))


def test_noise_false_ignores_a_gap() -> None:
    state = run_rounds(auto(noise=False), noisy(0.6), noisy(0.6))
    assert not state.watch.is_acting
    assert not state.watch.is_suspected


def test_answers_that_no_client_can_give_are_left_out() -> None:
    values = noisy(0.6).values.copy()
    values[0, 0], values[1, 5] = np.nan, -1.0
    state = run_rounds(auto(probation=0), ProbeResult(ALL_IDS, values), ProbeResult(ALL_IDS, values))
    assert np.flatnonzero(np.isnan(state.rate)).tolist() == [0, 1]
    assert state.in_pool[:8].all()
    nan_answers = ProbeResult(ALL_IDS, np.full_like(values, np.nan))
    assert cohorts(auto(), run_rounds(auto(), nan_answers, nan_answers)) == random_cohorts()


def test_slow_clients_are_left_out_if_speeds_persist() -> None:
    """Clients 6 to 11 take ten times as long in all of their jobs."""
    selector = auto(speed=True)
    state = selector.init(Population(K, C, 4, {}))
    rng = np.random.default_rng(0)
    for round in range(13):
        clients = [(4 * round + j) % K for j in range(4)]
        seconds = [(1.0 if k < 6 else 10.0) * rng.uniform(0.9, 1.1) for k in clients]
        probes = {"class_loss": report([0.0] * K)} if round == 12 else None
        state = selector.observe(state, make_outcome(round, clients, probes=probes, duration=seconds))[1]
    assert np.flatnonzero(state.is_fast).tolist() == [0, 1, 2, 3, 4, 5]
    selection, _ = selector.select(state, make_context(13, 4, K), {})
    assert max(selection.clients) < 6


OVERRIDES = ("clients=20", "cohort=5", "model=mlp", "client.epochs=2", "eval.clients_every=0", "heterogeneity=iid")


def run(logs: Path, *overrides: str) -> FinishedRun:
    return run_training(logs, *OVERRIDES, *overrides)


def test_a_run_without_differences_is_random_selection(tmp_path: Path) -> None:
    """Its weights are those of random selection, and the probe's cost is charged."""
    overrides = ("rounds=9", "selector.first=4")
    measured, uniform = run(tmp_path, "selector=auto", *overrides), run(tmp_path, "selector=random", "rounds=9")
    assert measured.cohorts == uniform.cohorts
    assert torch.equal(measured.weights(), uniform.weights())
    downloads, answers = (20 - 5) * not_none(measured.info).n_params * 4, 20 * 31 * 4
    assert measured.last.metrics["comm/probe_bytes"] == downloads + answers


def test_a_run_leaves_out_the_clients_with_wrong_labels(tmp_path: Path) -> None:
    overrides = ("rounds=14", "selector.first=6", "label_noise=bimodal", "selector.probation=0")
    trained_run = run(tmp_path, "selector=auto", *overrides)
    is_noisy = not_none(trained_run.info).noise_rate > 0.5
    later = np.concatenate([is_noisy[cohort] for cohort in trained_run.cohorts[13:]])
    early_cohorts_noisy = np.concatenate([is_noisy[cohort] for cohort in trained_run.cohorts[:13]])
    assert not later.any()
    assert early_cohorts_noisy.mean() > 0.25
