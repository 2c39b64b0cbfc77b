"""FedPNS: the excluded clients and the cost of their search, by hand and against the definition."""

from typing import Any

import numpy as np
import pytest
import torch

from agg_harness import make_update
from config_options import make_typed
from engine_harness import make_federation, make_network, make_trainer
from fedcohort.flat import FlatModel
from fedcohort.selector.fedpns import (
    FedPns,
    State,
    agreements_after_removal,
    find_opposing_gradients,
    inner_products_per_step,
    normalise_gram_matrix,
    summed_agreement,
)
from fedcohort.signal.base import Derived, find_signal
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.types import Population, RoundOutcome, Selection
from optional_values import not_none
from round_harness import run_without_files
from selector_harness import World, derive, ids, make_context, play_rounds
from signal_kinds import find_derived, find_reported

G = np.array([[1.0, 0.0], [1.0, 0.5], [0.5, 1.0], [-1.0, 0.2]])
NAN = float("nan")


def pns(**changes: Any) -> FedPns:
    return make_typed(FedPns, "selector", "fedpns", **changes)


def make_round_outcome(clients: list[int], updates: np.ndarray, steps: list[float] | None = None) -> RoundOutcome:
    signals = {"update_gram": derive("update_gram", updates), "steps": np.array(steps or [1.0] * len(clients), float)}
    return RoundOutcome(0, Selection(ids(*clients)), ids(*clients), ids(), signals, {}, 1.0)


def make_initial_state(n_clients: int) -> State:
    return State(np.full(n_clients, 1 / n_clients), np.zeros(n_clients, np.int64), np.zeros(n_clients, np.int64))


def test_agreement_by_hand() -> None:
    """The sum of G is (1.5, 1.7): (2.25 + 2.89) / 4; without 3 it is (2.5, 1.5): 8.5 / 3."""
    H = G @ G.T
    assert summed_agreement(H, np.arange(4)) == pytest.approx(1.285)
    np.testing.assert_allclose(
        agreements_after_removal(H, np.arange(4)), [1.046667, 0.563333, 0.496667, 2.833333], atol=5e-7
    )
    np.testing.assert_array_equal(find_opposing_gradients(H, 3), [[3], [3]])
    np.testing.assert_array_equal(
        find_opposing_gradients(H, 1), [[3], [3]]
    )  # 2.83 is the most that three can have: no other client opposes
    assert not len(find_opposing_gradients(H, 4)[0])


def test_without_clients_there_is_no_agreement() -> None:
    assert summed_agreement(G @ G.T, ids()) == 0.0


def test_a_mean_would_label_one_more_client() -> None:
    """The departure's reason: over |A| the values are .32125, and .348889 without client 0."""
    H = G @ G.T
    mean = agreements_after_removal(H, np.arange(4)) / 3
    assert summed_agreement(H, np.arange(4)) / 4 == pytest.approx(0.32125)
    assert mean[0] == pytest.approx(0.348889, abs=5e-7)
    assert np.flatnonzero(mean > 0.32125).tolist() == [0, 3]


def test_the_gram_matrix_gives_the_same_labels_as_the_updates() -> None:
    """Against sum_i <g_i, mean> with vectors, for every client left out."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        g = rng.standard_normal((7, 50))
        H, members = g @ g.T, np.sort(rng.choice(7, 5, replace=False))

        def direct(A: np.ndarray, g: np.ndarray = g) -> float:
            return float(sum(g[i] @ g[A].mean(0) for i in A))

        assert summed_agreement(H, members) == pytest.approx(direct(members), abs=1e-10)
        expected = [direct(members[members != k]) for k in members]
        np.testing.assert_allclose(agreements_after_removal(H, members), expected, atol=1e-10)
        steps = rng.integers(1, 9, 7).astype(np.float64)
        g_step = g / steps[:, None]
        np.testing.assert_allclose(inner_products_per_step(H, steps), g_step @ g_step.T, atol=1e-10)


def test_before_the_first_round_all_counts_are_zero() -> None:
    start = pns().init(Population(4, 2, 2, {}))
    assert start.probability.tolist() == [0.25] * 4
    assert start.rounds_arrived.tolist() == start.rounds_labelled.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("times", "prob"),
    [
        ([(1, 1)], [1 / 3, 1 / 3, 1 / 3, 0.0]),  # (1 + .7)^2 > 1: all of it
        ([(1, 4)], [0.32520833, 0.32520833, 0.32520833, 0.024375]),  # .95^2 = .9025 of .25
        ([(1, 4), (2, 8)], [0.33254115, 0.33254115, 0.33254115, 0.00237656]),
    ],
)
def test_labels_reduce_the_probability(times: list[tuple[int, int]], prob: list[float]) -> None:
    probabilities = np.full(4, 0.25)
    for labels, selections in times:
        probabilities = pns().update_probabilities(probabilities, ids(3), np.array([labels / selections]))
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(probabilities, prob, atol=2e-8)


def test_two_labels_give_their_probability_to_the_others() -> None:
    """Clients with .3 and .1 lose .49 of their probability at ratio 0: .196 in all, shared equally by the others."""
    probabilities = pns().update_probabilities(np.array([0.3, 0.1, 0.2, 0.4]), ids(0, 1), np.zeros(2))
    np.testing.assert_allclose(probabilities, [0.153, 0.051, 0.298, 0.498], rtol=1e-12)


def test_a_round_by_hand() -> None:
    """Five clients, 4 absent: client 3 is left out, and loses all (1 of 1); the others gain, the absent one too."""
    selector = pns(keep=0.75)
    advice, state = selector.observe(make_initial_state(5), make_round_outcome([0, 1, 2, 3], G))
    assert advice is not None
    assert advice.keep is not None
    assert not_none(not_none(advice).keep).tolist() == [True, True, True, False]
    assert advice.weights is None
    assert state.rounds_arrived.tolist() == [1, 1, 1, 1, 0]
    assert state.rounds_labelled.tolist() == [0, 0, 0, 1, 0]
    np.testing.assert_allclose(state.probability, [0.25, 0.25, 0.25, 0.0, 0.25], atol=1e-7)
    assert state.probability[3] > 0
    advice, state = selector.observe(state, make_round_outcome([0, 1], G[:2]))
    assert advice is None
    assert state.rounds_arrived.tolist() == [2, 2, 1, 1, 0]


def test_keep_is_a_share_of_the_arrived_clients() -> None:
    """.8 of 4 is 3.2, so all four stay; .8 of 10 is 8."""
    assert pns().observe(make_initial_state(4), make_round_outcome([0, 1, 2, 3], G))[0] is None
    g = np.concatenate([np.ones((5, 1)), -np.ones((4, 1)), np.ones((1, 1))])
    advice = pns().observe(make_initial_state(10), make_round_outcome(list(range(10)), g))[0]
    assert advice is not None
    assert np.flatnonzero(~not_none(advice.keep)).tolist() == [5, 6]


def test_updates_are_divided_by_steps() -> None:
    """Updates are compared per step: what looks unequal may be the same gradient, taken more often."""
    few = pns(keep=0.5).observe(make_initial_state(2), make_round_outcome([0, 1], np.array([[5.0], [-1.0]]), [5, 1]))
    assert few[0] is not None, "1 and -1: each alone has E = 1, together 0"
    divided = pns(keep=0.5).observe(make_initial_state(2), make_round_outcome([0, 1], np.array([[5.0], [2.0]]), [5, 2]))
    assert divided[0] is None, "1 and 1: together 2"
    single_steps = pns(keep=0.5).observe(
        make_initial_state(2), make_round_outcome([0, 1], np.array([[1.0], [0.1]]), [1, 1])
    )
    assert single_steps[0] is not None, "1 and .1 have 1.21 / 2 together, 1 alone has more"


@pytest.mark.parametrize("non_finite", [NAN, float("inf"), 1e300])
def test_a_non_finite_update_does_not_affect_the_comparison(non_finite: float) -> None:
    """It is neither compared nor left out here: the engine has done so. The others are compared as ever."""
    g = G.copy()
    g[1] = non_finite
    advice, state = pns(keep=0.5).observe(make_initial_state(4), make_round_outcome([0, 1, 2, 3], g))
    assert not_none(not_none(advice).keep).tolist() == [True, True, True, False]
    assert state.rounds_labelled.tolist() == [0, 0, 0, 1]
    assert state.probability.sum() == pytest.approx(1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-160, 1e154])
def test_the_size_of_updates_does_not_matter(size: float) -> None:
    """At 1e154 each product is a number, and a sum of all of them, 5.14e308, is none."""
    advice, state = pns(keep=0.5).observe(make_initial_state(4), make_round_outcome([0, 1, 2, 3], size * G))
    assert not_none(not_none(advice).keep).tolist() == [True, True, True, False]
    assert state.rounds_labelled.tolist() == [0, 0, 0, 1]
    assert not normalise_gram_matrix(np.zeros((2, 2))).any()


def test_ties_go_by_id_whatever_the_order_of_arrival() -> None:
    g = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        state = pns(keep=0.75).observe(make_initial_state(4), make_round_outcome(order, g[order]))[1]
        assert np.flatnonzero(state.rounds_labelled).tolist() == [0]


def test_the_draw_follows_the_probabilities() -> None:
    """4 sigma of 4000 draws; a client of probability near 0 is drawn if no other is available."""
    state = State(np.array([0.5, 0.3, 0.2 - 1e-8, 1e-8]), np.zeros(4, np.int64), np.zeros(4, np.int64))
    selector = pns()
    picks = [selector.select(state, make_context(0, 1, 4, seed=seed), {})[0].clients[0] for seed in range(4000)]
    p = state.probability
    assert (np.abs(np.bincount(picks, minlength=4) / 4000 - p) <= 4 * np.sqrt(p * (1 - p) / 4000)).all()
    selection = pns().select(state, make_context(0, 1, 4, available=[1, 2]), {})[0]
    np.testing.assert_allclose(not_none(selection.probability), [0, 0.6, 0.4, 0], atol=1e-7)
    assert pns().select(state, make_context(0, 1, 4, available=[3]), {})[0].clients.tolist() == [3]


def observe_losses(losses: dict[tuple[int, ...], float], keep: float = 0.4) -> tuple[Any, State]:
    """Five clients of whom 3 and 4 oppose the others, 4 more so; losses: by the members of a plain mean."""
    g = np.array([[1.0], [1.0], [1.0], [-1.0], [-2.0]])

    def trial(weights: np.ndarray) -> float:
        members = np.flatnonzero(weights)
        np.testing.assert_allclose(weights[members], 1 / len(members))
        return losses[tuple(members.tolist())]

    outcome = make_round_outcome([0, 1, 2, 3, 4], g)
    outcome.signals["server_loss"] = trial  # type: ignore[index]
    advice, state = pns(keep=keep, loss_check=True).observe(make_initial_state(5), outcome)
    return advice, state


def test_the_loss_check_by_hand() -> None:
    """E(all) = 0; without 4 it is 4 / 4, then without 3 it is 9 / 3. Who lowers the loss is labelled, and stays."""
    all_clients, four, three = (0, 1, 2, 3, 4), (0, 1, 2, 3), (0, 1, 2)
    advice, state = observe_losses({all_clients: 3.0, four: 2.0, three: 1.0})
    assert not_none(not_none(advice).keep).tolist() == [True, True, True, False, False]
    assert state.rounds_labelled.tolist() == [0, 0, 0, 1, 1]
    advice, state = observe_losses({all_clients: 3.0, four: 2.0, three: 2.5})
    assert not_none(not_none(advice).keep).tolist() == [True, True, True, True, False]
    assert state.rounds_labelled.tolist() == [0, 0, 0, 1, 1], "labelled all the same"
    assert state.probability[3] == pytest.approx(1e-8, rel=1e-3)
    advice, state = observe_losses({all_clients: 1.0, four: 2.0})
    assert advice is None
    assert state.rounds_labelled.tolist() == [0, 0, 0, 0, 1]
    assert observe_losses({all_clients: 2.0, four: 2.0, three: 2.0})[0].keep.sum() == 3, (
        "equal losses leave it out, as in the code"
    )
    assert observe_losses({all_clients: 2.0, four: NAN})[0] is None, "no loss is as bad as none"
    assert observe_losses({all_clients: NAN, four: 2.0, three: 1.0})[0].keep.sum() == 3


def test_the_loss_check_uses_the_updated_model() -> None:
    """Against the engine's own lab: w_t + (2 D_0 + D_2) / 4."""
    federation, network = make_federation(), make_network()
    trainer = make_trainer(federation, network, epochs=1, batch=10)
    lab = SignalMeasurer(trainer.server, FlatModel(make_network()), federation, trainer.train_whole_job)
    updates = torch.stack([trainer.train_whole_job(4, k).delta.double() for k in range(3)])
    w = trainer.server.w.clone()
    trial = find_derived("server_loss").make(lab, updates)
    assert trial(np.array([0.5, 0.0, 0.25])) == lab.server_loss_after(0.5 * updates[0] + 0.25 * updates[2])
    assert trial(np.array([1.0, 0.0, 0.0])) != trial(np.zeros(3))
    assert torch.equal(trainer.server.w, w), "w_t is as it was"


def test_a_run_with_the_loss_check_completes() -> None:
    """It is read, costs no bytes, and leaves no more out than the rule without it."""
    overrides = ("selector=fedpns", "selector.keep=0.3", "cohort=6", "partition=dirichlet", "partition.alpha=0.1")
    checked, unchecked = (run_without_files(*overrides, f"selector.loss_check={f}") for f in ("true", "false"))
    assert checked.last.metrics["comm/up_bytes"] == unchecked.last.metrics["comm/up_bytes"]
    n_kept = [(r.reports[1].clients["weight"] > 0).sum() for r in (checked, unchecked)]
    assert n_kept[0] >= n_kept[1]
    assert pns(loss_check=True).needs == {"update_gram", "steps", "server_loss"}
    assert pns().needs == {"update_gram", "steps"}


def test_probabilities_always_sum_to_one() -> None:
    for step in play_rounds(pns(keep=0.3), World(cohort=6), 30):
        assert step.after.probability.sum() == pytest.approx(1.0, abs=1e-12)
        assert (step.after.probability > 0).all()


def test_the_signals_are_declared() -> None:
    assert isinstance(find_signal("update_gram"), Derived)
    assert find_reported("steps").read(make_update(0, [0.0], steps=7)) == 7.0
