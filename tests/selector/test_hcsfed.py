"""HCSFed: queries, draws and weights by hand; its mathematics is tested in tests/maths."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from engine_harness import make_federation, make_network, make_trainer
from fedcohort.flat import FlatModel
from fedcohort.maths.sketch import sketch_gradient
from fedcohort.maths.strata import stratum_weights
from fedcohort.rng import new_generator
from fedcohort.selector.hcsfed import HcsFed, State
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.types import Population, ProbeResult, RoundOutcome, Selection
from optional_values import not_none
from round_harness import run_without_files
from selector_harness import World, ids, make_context, play_rounds
from signal_kinds import find_computed

NAN = float("nan")
# three strata, of 6, 3 and 1 clients, apart from one another; all of norm 10 but client 9, whose is 20
X = np.array([[10.0, 0.01 * k] for k in range(6)] + [[-1 + k, 10.0] for k in range(3)] + [[-20.0, 0.0]])


def hcs(**changes: Any) -> HcsFed:
    return make_typed(HcsFed, "selector", "hcsfed", **changes)


def make_blank_state(n_clients: int = 10) -> State:
    return State(np.empty((n_clients, 0)), np.zeros(n_clients, bool), np.full(n_clients, -1), False, 3)


def select_after_query(cohort: int, seed: int = 0, sketches: np.ndarray = X, **changes: Any) -> tuple[Selection, State]:
    ctx = make_context(0, cohort, len(sketches), seed=seed)
    answers = {"compressed_gradient": ProbeResult(ctx.available, sketches)}
    selector = hcs(**{"strata": 3, **changes})
    return selector.select(selector.init(Population(len(sketches), 2, cohort, {})), ctx, answers)


def updates(clients: list[int], rows: np.ndarray, round: int = 0) -> RoundOutcome:
    return RoundOutcome(round, Selection(ids(*clients)), ids(*clients), ids(), {"update": rows}, {}, 1.0)


def test_strata_are_the_clusters() -> None:
    """Numbered by their least member, as points go: (-20, 0), then (-1, 10), then (10, 0)."""
    assert select_after_query(4)[1].stratum_of_client.tolist() == [2] * 6 + [1] * 3 + [0]


def test_strata_with_varying_gradients_get_more_clients() -> None:
    """N S = (1 * 0, 3 * 1, 6 * .0187): m = 5 has targets (0, 4.82, .18), so (1, 3, 1) with at most three there."""
    for seed in range(10):
        selection, state = select_after_query(5, seed)
        assert np.bincount(state.stratum_of_client[selection.clients]).tolist() == [1, 3, 1]
    assert (
        np.bincount(select_after_query(2)[1].stratum_of_client[select_after_query(2)[0].clients], minlength=3)
        == [0, 1, 1]
    ).all()


def test_probabilities_within_a_stratum_follow_the_norms() -> None:
    """(3, 4), (6, 8), (0, 5) in one stratum: 5, 10 and 5 of 20. 4 sigma of 1000 draws."""
    sketches = np.array([[3.0, 4], [6, 8], [0, 5]])
    selection, state = select_after_query(1, sketches=sketches, strata=1)
    np.testing.assert_allclose(not_none(selection.probability), [0.25, 0.5, 0.25])
    np.testing.assert_allclose(selection.score_terms["norm"], [5, 10, 5])
    selector = hcs()
    picks = [selector.select(state, make_context(1, 1, 3, seed=seed), {})[0].clients[0] for seed in range(1000)]
    p = np.array([0.25, 0.5, 0.25])
    assert (np.abs(np.bincount(picks, minlength=3) / 1000 - p) < 4 * np.sqrt(p * (1 - p) / 1000)).all()


def test_without_norms_probabilities_are_equal() -> None:
    np.testing.assert_allclose(not_none(select_after_query(1, sketches=np.zeros((4, 2)))[0].probability), 0.25)


def test_weights_by_hand() -> None:
    """6, 3 and 1 of 10, over two, one and one who arrived."""
    stratum = np.array([0] * 6 + [1] * 3 + [2])
    np.testing.assert_allclose(stratum_weights(stratum, ids(0, 5, 7, 9)), [0.3, 0.3, 0.3, 0.1])
    np.testing.assert_allclose(stratum_weights(stratum, ids(0, 9)), [0.6, 0.1])


def test_the_stratified_estimate_of_a_mean_by_hand() -> None:
    """Values 1, 2, 3 and 10, 11, 12, of each stratum the middle one: 2 / 2 + 11 / 2 = 6.5, the mean of all."""
    values = np.array([1.0, 2, 3, 10, 11, 12])
    stratum = np.repeat([0, 1], 3)
    assert stratum_weights(stratum, ids(1, 4)) @ values[[1, 4]] == pytest.approx(values.mean())


def test_the_advice_has_the_stratified_weights() -> None:
    selection, state = select_after_query(4, agg="stratified")
    outcome = updates(selection.clients.tolist(), np.zeros((4, 2)))
    advice, _ = hcs(agg="stratified").observe(state, outcome)
    assert advice is not None
    np.testing.assert_allclose(not_none(advice.weights), stratum_weights(state.stratum_of_client, selection.clients))
    assert advice.keep is None
    assert hcs(agg="stratified").advises
    assert hcs(agg="stratified").weighs
    assert not hcs().advises
    assert hcs().observe(state, outcome)[0] is None
    assert hcs(agg="stratified").observe(state, updates([], np.zeros((0, 2))))[0] is None


def test_unknown_clients_are_a_separate_stratum() -> None:
    """Client 3 never sent its sketch: client 0 represents 2 of 4 clients, client 3 itself only, and there is advice."""
    state = State(X[:4], np.ones(4, bool), np.array([0, 0, 1, -1]), False, 3)
    advice, _ = hcs(agg="stratified").observe(state, updates([0, 3], np.zeros((2, 2))))
    assert advice is not None
    np.testing.assert_allclose(not_none(advice.weights), [0.5, 0.25])
    state_without_strata = State(X[:4], np.ones(4, bool), np.full(4, -1), False, 3)
    assert hcs(agg="stratified").observe(state_without_strata, updates([0, 3], np.zeros((2, 2))))[0] is None


def test_a_refill_keeps_the_answers_and_the_strata_of_the_round() -> None:
    """In round 3, the third of a period, all clients answer; a refill without the answers of two changes nothing."""
    selector = hcs(recluster=3)
    step = play_rounds(selector, World(), 4)[3]
    assert len(step.blocking_answers["compressed_gradient"].clients) == 12
    answers = {"compressed_gradient": step.blocking_answers["compressed_gradient"].without(np.arange(12) < 2)}
    refill = replace(step.ctx, cohort=1, available=np.arange(2, 12), is_refill=True)
    assert selector.select(step.chosen, refill, answers)[1] is step.chosen


def test_strata_are_as_many_as_places_of_the_run_where_one_client_is_selected() -> None:
    selector = hcs()
    state = selector.init(Population(len(X), 2, 3, {}))
    answers = {"compressed_gradient": ProbeResult(np.arange(len(X)), X)}
    state = selector.select(state, make_context(0, 1, len(X)), answers)[1]
    assert len(np.unique(state.stratum_of_client)) == 3


def test_all_clients_are_queried_once() -> None:
    world = World(available=lambda t: range(6) if t < 2 else range(12))
    steps = play_rounds(hcs(), world, 4)
    assert [[probe.clients.tolist() for probe in step.probes] for step in steps] == [
        [list(range(6))],
        [],
        [list(range(6, 12))],
        [],
    ]
    options = [probe.options for step in steps for probe in step.probes]
    assert options[0] == options[1], "or their projections would not compare"
    assert steps[1].after.stratum_of_client.tolist()[6:] == [-1] * 6
    assert (steps[2].after.stratum_of_client >= 0).all()
    assert np.array_equal(steps[3].after.stratum_of_client, steps[2].after.stratum_of_client)


def test_strata_are_formed_again_periodically() -> None:
    """recluster=3: all clients are queried in rounds 0, 3 and 6, and absent ones when they return."""
    world = World(available=lambda t: range(6) if t == 3 else range(12))
    steps = play_rounds(hcs(recluster=3), world, 8)
    all_clients, first = list(range(12)), list(range(6))
    assert [[probe.clients.tolist() for probe in step.probes] for step in steps] == [
        [all_clients], [], [], [first], [list(range(6, 12))], [], [all_clients], []
    ]  # fmt: skip
    for t in (0, 6):
        np.testing.assert_array_equal(steps[t].chosen.X, world.values("compressed_gradient", t))
    np.testing.assert_array_equal(steps[3].chosen.X[:6], world.values("compressed_gradient", 3)[:6])
    np.testing.assert_array_equal(steps[3].chosen.X[6:], steps[2].chosen.X[6:])
    assert np.array_equal(steps[5].chosen.stratum_of_client, steps[4].chosen.stratum_of_client)
    assert not np.array_equal(steps[6].chosen.stratum_of_client, steps[5].chosen.stratum_of_client)
    assert [len(step.probes) for step in play_rounds(hcs(), World(), 8)] == [1] + [0] * 7


def test_a_client_that_moves_changes_its_stratum() -> None:
    """Client 9 was the only client at (-20, 0). Its new sketch is near the first six: three strata become two."""
    selector, state = hcs(strata=3, recluster=2), select_after_query(4)[1]
    moved_sketches = X.copy()
    moved_sketches[9] = 10.0, 0.03
    ctx = make_context(2, 4, 10)
    assert selector.plan(state, ctx)[0].clients.tolist() == list(range(10))
    after = selector.select(state, ctx, {"compressed_gradient": ProbeResult(ctx.available, moved_sketches)})[1]
    assert state.stratum_of_client[9] != state.stratum_of_client[0]
    assert after.stratum_of_client[9] == after.stratum_of_client[0]
    assert after.is_queried.all()


def test_clients_without_an_answer_come_last() -> None:
    sketches = X.copy()
    sketches[[0, 7]] = NAN, 1e300
    for seed in range(10):
        assert not np.isin(select_after_query(8, seed, sketches)[0].clients, [0, 7]).any()
    assert select_after_query(9, 0, sketches)[0].clients.shape == (9,)


def test_probabilities_sum_to_1_with_clients_outside_the_strata() -> None:
    """8 of 9 places of the cohort are drawn from strata, and the last one from the two clients without a sketch."""
    sketches = X.copy()
    sketches[[0, 7]] = NAN
    probability = not_none(select_after_query(9, 0, sketches)[0].probability)
    np.testing.assert_allclose(probability[[0, 7]], 1 / 9 / 2)
    assert probability.sum() == pytest.approx(1)


def test_the_number_of_strata() -> None:
    """10, or 3 in FedDiverse's version; never more than places in a cohort, or different clients."""
    spread_sketches = np.stack([np.arange(20.0) ** 3, np.zeros(20)], axis=1)
    assert len(np.unique(select_after_query(12, sketches=spread_sketches, strata=None)[1].stratum_of_client)) == 10
    assert len(np.unique(select_after_query(4, sketches=spread_sketches, strata=None)[1].stratum_of_client)) == 4
    assert len(np.unique(select_after_query(4, sketches=spread_sketches, strata=5)[1].stratum_of_client)) == 5
    assert len(np.unique(select_after_query(4, sketches=np.ones((20, 2)), strata=None)[1].stratum_of_client)) == 1
    state = feddiverse_state(spread_sketches)
    assert len(np.unique(state.stratum_of_client)) == 3


def feddiverse_state(rows: np.ndarray, cohort: int = 3) -> State:
    """The state after round 0, in which all clients sent `rows`, and the selection of round 1."""
    selector = hcs(variant="feddiverse_paper")
    K = len(rows)
    selection, state = selector.select(make_blank_state(K), make_context(0, cohort, K), {})
    assert selection.uncapped
    assert len(selection.clients) == K
    _, state = selector.observe(state, updates(list(range(K)), rows))
    return selector.select(state, make_context(1, cohort, K), {})[1]


@pytest.mark.parametrize("way", ["values", "shared_projection"])
def test_the_signal_is_the_sketch_of_the_gradient(way: str) -> None:
    federation, network = make_federation(), make_network()
    trainer = make_trainer(federation, network, epochs=1, batch=10)
    lab = SignalMeasurer(trainer.server, FlatModel(make_network()), federation, trainer.train_whole_job)
    signal = find_computed("compressed_gradient")
    sketches = signal.compute(lab, 0, ids(0, 2), {"rate": 0.1, "way": way, "key": 0})
    for row, k in zip(sketches, (0, 2), strict=True):
        gradient = lab.gradient(k).double().numpy()
        np.testing.assert_array_equal(row, sketch_gradient(gradient, 0.1, way, new_generator(0, "signal/sketch")))
    assert np.abs(sketches[0] - sketches[1]).max() > 0
    assert (signal.bytes_up, signal.passes) == (4, 3)


def test_every_client_can_be_selected_in_a_cohort_of_three() -> None:
    """Six clients of a class each: with ten strata for three places the same three would come in every round."""
    overrides = (
        "clients=6",
        "cohort=3",
        "rounds=30",
        "heterogeneity=iid",
        "partition=label_shards",
        "partition.shards=1",
    )
    run = run_without_files("selector=hcsfed", "model=logreg", "client.epochs=1", *overrides)
    assert {int(client) for report in run.reports for client in report.cohort} == set(range(6))


def test_all_clients_compress_with_the_same_random_numbers_in_every_round() -> None:
    """The key is a number of the method: results of earlier versions would change with it."""
    selector = hcs(recluster=2)
    for round in (0, 2):
        (probe,) = selector.plan(make_blank_state(), make_context(round, 4, 10))
        assert probe.options["key"] == 0
