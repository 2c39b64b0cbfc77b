"""UCB-CS: three rounds by hand, the two readings of sigma and of the index, and what a client must not gain by."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import make_component, make_typed
from fedcohort.selector.ucb_cs import State, UcbCs
from fedcohort.types import Population, Selection
from optional_values import not_none
from round_harness import run_without_files
from run_harness import startup_notices
from selector_harness import World, make_context, make_outcome, play_rounds

N = np.array([50, 30, 20])  # p = (.5, .3, .2)
NAN = float("nan")
# (who trained, mean loss, standard deviation of the batch losses), one a round
ONE_SELECTION_EACH = [(0, 2.0, 0.5), (1, 1.0, 0.3), (2, 3.0, 0.2)]


def ucb(**changes: Any) -> UcbCs:
    return make_typed(UcbCs, "selector", "ucb_cs", **{"tie": "id", **changes})


def replay_history(selector: UcbCs, history: Sequence[tuple[int, float, float]], n: np.ndarray = N) -> State:
    state = selector.init(Population(len(n), 2, 1, {"n_train": n}))
    for round, (client, loss, std) in enumerate(history):
        state = selector.observe(state, make_outcome(round, [client], train_loss=[loss], train_loss_std=[std]))[1]
    return state


def select_clients(selector: UcbCs, state: State, cohort: int = 1, seed: int = 0, n: np.ndarray = N) -> Selection:
    return selector.select(state, make_context(9, cohort, len(n), signals={"n_train": n}, seed=seed), {})[0]


def scores(selector: UcbCs, state: State) -> np.ndarray:
    client_scores = select_clients(selector, state).scores
    assert client_scores is not None
    return client_scores


def test_three_rounds_of_ucb_cs_by_hand() -> None:
    """L = (.7^2 2, .7, 3), N = (.49, .7, 1), T = 2.19; sigma = .5: U_k = sqrt(.5 ln 2.19 / N_k)."""
    state = replay_history(ucb(), ONE_SELECTION_EACH)
    np.testing.assert_allclose(state.discounted_sums.reward_sums, [0.98, 0.7, 3.0], rtol=1e-14)
    np.testing.assert_allclose(state.discounted_sums.pull_counts, [0.49, 0.7, 1.0], rtol=1e-14)
    assert state.discounted_sums.n_rounds == pytest.approx(2.19, rel=1e-14)
    assert state.sigma == 0.5
    np.testing.assert_allclose(state.width_terms, [0.89437103, 0.74828449, 0.62605972], atol=1e-8)
    np.testing.assert_allclose(scores(ucb(), state), [1.44718551, 0.52448535, 0.72521194], atol=1e-8)
    assert select_clients(ucb(), state).clients.tolist() == [0], "without p_k it would be 2"


def test_score_parts_are_the_two_terms_of_eq_4() -> None:
    parts = select_clients(ucb(), replay_history(ucb(), ONE_SELECTION_EACH)).score_terms
    np.testing.assert_allclose(parts["exploit"], [1.0, 0.3, 0.6], rtol=1e-14)  # p_k (2, 1, 3)
    np.testing.assert_allclose(parts["explore"], [0.447185515, 0.224485347, 0.125211944], atol=1e-8)


def test_sigma_last_round_is_the_deviation_of_the_last_round() -> None:
    """Only client 2's .2: every width shrinks to 2/5 of the above."""
    state = replay_history(ucb(sigma="last_round"), ONE_SELECTION_EACH)
    assert state.sigma == 0.2
    np.testing.assert_allclose(scores(ucb(), state), [1.17887421, 0.38979414, 0.65008478], atol=1e-8)


def test_algorithm_1_chooses_another_client() -> None:
    """A_0 = .5 * 2 in round 0 (ln T = 0), then twice times .7; A_1 is .7 of its value in round 1; only A_2 is new."""
    selector = ucb(index="algorithm1")
    state = replay_history(selector, ONE_SELECTION_EACH)
    np.testing.assert_allclose(scores(selector, state), [0.49, 0.31816817, 0.72521194], atol=1e-8)
    assert select_clients(selector, state).clients.tolist() == [2]


def test_the_exploration_bonus_grows_without_selections() -> None:
    """Only client 2 trains (loss 1, std .2): L_0 and N_0 decay by the same factor, so that client 0's width grows."""
    rows = [replay_history(ucb(), ONE_SELECTION_EACH + [(2, 1.0, 0.2)] * n_further) for n_further in range(5)]
    index = [scores(ucb(), state)[0] for state in rows]
    np.testing.assert_allclose(index, [1.447186, 1.581983, 1.728705, 1.895740, 2.089902], atol=5e-7)
    np.testing.assert_allclose([state.mean_terms[0] for state in rows], 2.0, rtol=1e-14)


def test_the_bonus_of_algorithm_1_shrinks_without_selections() -> None:
    """The departure's reason: there, the same index only decays, by .7 a round."""
    selector = ucb(index="algorithm1")
    index = [
        scores(selector, replay_history(selector, ONE_SELECTION_EACH + [(2, 1.0, 0.2)] * n_further))[0]
        for n_further in range(5)
    ]
    np.testing.assert_allclose(index, 0.49 * 0.7 ** np.arange(5), rtol=1e-12)


def test_every_client_is_selected_once_before_any_is_selected_twice() -> None:
    """+inf for the unvisited: K = 3, m = 1."""
    state = replay_history(ucb(), ONE_SELECTION_EACH[:1])
    assert np.isinf(scores(ucb(), state)).tolist() == [False, True, True]
    first = {select_clients(ucb(tie="random"), state, seed=seed).clients[0] for seed in range(30)}
    assert first == {1, 2}, "in random order"


def test_exploration_never_vanishes() -> None:
    """T tends to 1/(1 - .7), ln T to 1.204: client 2's width, trained every round, to sqrt(2 .25 1.204 .3)."""
    state = replay_history(ucb(), ONE_SELECTION_EACH + [(2, 1.0, 0.2)] * 60)
    assert np.log(state.discounted_sums.n_rounds) == pytest.approx(1.2039728, abs=1e-7)
    assert state.width_terms[2] == pytest.approx(np.sqrt(0.5 * 1.2039728 * 0.3), abs=1e-7)


def test_a_single_step_means_pure_exploitation() -> None:
    """Its standard deviation is 0."""
    history = [(client, loss, 0.0) for client, loss, _ in ONE_SELECTION_EACH]
    np.testing.assert_allclose(scores(ucb(), replay_history(ucb(), history)), N / 100 * [2.0, 1.0, 3.0], rtol=1e-14)


@pytest.mark.parametrize("index", ["eq4", "algorithm1"])
def test_without_memory_only_the_last_round_counts(index: str) -> None:
    """discount = 0: T = 1, so that there is no width, and p_k times the last loss; Algorithm 1 lets it fall to 0."""
    selector = ucb(discount=0.0, index=index)
    client_scores = scores(selector, replay_history(selector, ONE_SELECTION_EACH))
    np.testing.assert_allclose(
        client_scores, [0.5 * 2.0, 0.3, 0.2 * 3.0] if index == "eq4" else [0.0, 0.0, 0.6], rtol=1e-14
    )


def test_without_discount_and_with_equal_sizes_it_is_ucb1() -> None:
    """discount = 1, p = 1/3: mean + sigma sqrt(2 ln T / N), over 3."""
    history = [(0, 2.0, 1.0), (1, 1.0, 1.0), (2, 3.0, 1.0), (0, 4.0, 1.0)]
    state = replay_history(ucb(discount=1.0), history, np.ones(3, np.int64))
    expected = (np.array([3.0, 1.0, 3.0]) + np.sqrt(2 * np.log(4) / np.array([2, 1, 1]))) / 3
    selection = select_clients(ucb(discount=1.0), state, n=np.ones(3, np.int64)).scores
    np.testing.assert_allclose(not_none(selection), expected, rtol=1e-14)


@pytest.mark.parametrize("non_finite", [NAN, float("inf"), -float("inf")])
def test_a_loss_that_is_not_finite_is_not_preferred_until_there_is_a_finite_one(non_finite: float) -> None:
    state = replay_history(ucb(), [*ONE_SELECTION_EACH, (0, non_finite, NAN)])
    assert scores(ucb(), state)[0] == -np.inf
    assert np.isfinite(state.discounted_sums.reward_sums).all()
    later = replay_history(ucb(), [*ONE_SELECTION_EACH, (0, non_finite, NAN), (0, 2.0, 0.5)])
    assert np.isfinite(scores(ucb(), later)[0])


def test_a_client_without_finite_losses_is_not_selected_for_ever() -> None:
    state = replay_history(ucb(), [(0, NAN, NAN)])
    assert scores(ucb(), state).tolist() == [-np.inf, np.inf, np.inf]


def fail_rounds(selector: UcbCs, state: State, rounds: Sequence[Sequence[int]]) -> State:
    """Rounds without arrivals."""
    for round, failed_ids in enumerate(rounds):
        state = selector.observe(state, make_outcome(round, [], failed=failed_ids, train_loss=[], train_loss_std=[]))[1]
    return state


@pytest.mark.parametrize("index", ["eq4", "algorithm1"])
def test_a_failure_counts_as_a_selection_without_reward(index: str) -> None:
    """L_0 = .7^3 2, N_0 = .7^3 + 1, T = 1 + .7 2.19; a client that only failed has an index, of its width alone."""
    selector = ucb(index=index)
    state = fail_rounds(selector, replay_history(selector, ONE_SELECTION_EACH), [[0]])
    np.testing.assert_allclose(
        [state.discounted_sums.reward_sums[0], state.discounted_sums.pull_counts[0]], [0.686, 1.343], rtol=1e-14
    )
    width = 0.5 * np.sqrt(2 * np.log(2.533) / 1.343)
    assert scores(selector, state)[0] == pytest.approx(0.5 * (0.686 / 1.343 + width), rel=1e-12)
    unobserved = fail_rounds(selector, replay_history(selector, ONE_SELECTION_EACH[:2]), [[2]])
    assert unobserved.mean_terms[2] == 0.0
    assert 0 < scores(selector, unobserved)[2] < np.inf


def test_a_cohort_of_clients_that_never_arrive_does_not_stop_the_run() -> None:
    """Six of twelve clients always fail, with a cohort of three: each is tried like the others, and then backs off."""
    world = World(find_failing=lambda t, cohort: cohort[cohort % 2 == 0])
    steps = play_rounds(ucb(tie="random"), world, 60)
    selected_ids = np.concatenate([step.selection.clients for step in steps[:4]])
    assert sorted(selected_ids.tolist()) == list(range(12))
    later = [len(step.outcome.clients) for step in steps[20:]]
    assert sum(later) > 0.8 * 3 * len(later)
    assert min(later) > 0


def test_no_client_is_left_out_in_a_long_first_lap() -> None:
    """K / m = 100 rounds, after which .7^100 = 3e-16 of a count is left: no client is twice in any of three laps."""
    world = World(n_clients=200, cohort=2, corrupt=lambda signal, values: np.full(len(values), 1.0))
    world = replace(world, change_static=lambda signal, values: np.full(len(values), 50))
    cohorts = np.stack([step.selection.clients for step in play_rounds(ucb(tie="random"), world, 300)])
    for cycle in cohorts.reshape(3, 200):
        assert sorted(cycle.tolist()) == list(range(200))


def test_a_non_finite_deviation_keeps_the_last_one() -> None:
    state = replay_history(ucb(), [*ONE_SELECTION_EACH, (0, 1.0, NAN)])
    assert state.loss_deviations.tolist() == [0.5, 0.3, 0.2]
    assert state.sigma == 0.5


def test_rounds_without_arrivals_count() -> None:
    """L and N shrink together, T and with it every width grows; sigma stays."""
    for sigma in ("all_latest", "last_round"):
        state = replay_history(ucb(sigma=sigma), ONE_SELECTION_EACH)
        empty = ucb(sigma=sigma).observe(state, make_outcome(3, [], train_loss=[], train_loss_std=[]))[1]
        np.testing.assert_allclose(empty.mean_terms, state.mean_terms, rtol=1e-14)
        assert (empty.width_terms > state.width_terms).all()
        assert empty.sigma == state.sigma


def test_an_unselected_client_has_no_exploitation_term() -> None:
    (step,) = play_rounds(make_component("selector", "ucb_cs"), World(), 1)
    assert step.selection.score_terms["exploit"].tolist() == [0.0] * 12
    assert np.isinf(step.selection.score_terms["explore"]).all()


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (("agg=fedsgd",), True),
        (("client.steps=1",), True),
        (("client.steps=1", "client.epochs=5"), True),
        (("client.steps=2", "client.epochs=1", "client.batch=null"), False),
        (("client.epochs=1", "client.batch=null"), True),
        (("client.epochs=2", "client.batch=null"), False),
        (("client.epochs=1", "client.batch=100000"), True),
        (("client.epochs=1", "client.batch=10"), False),
        (("client=adam", "client.steps=1"), True),
        ((), False),
    ],
)
def test_a_notice_says_that_single_steps_disable_exploration(overrides: tuple[str, ...], expected: bool) -> None:
    lines = startup_notices("selector=ucb_cs", *overrides)
    assert (
        any(line.startswith("selector=ucb_cs explores in proportion to the spread of a client's") for line in lines)
        == expected
    )


@pytest.mark.parametrize(
    "overrides", [("client.epochs=1", "client.batch=100000"), ("client.epochs=1", "client.batch=10")]
)
def test_the_notice_on_steps_is_true(overrides: tuple[str, ...]) -> None:
    run = run_without_files("selector=ucb_cs", *overrides, "rounds=1")
    has_spread = bool(np.nanmax(run.last.clients["signal_train_loss_std"]) > 0)
    assert has_spread == (overrides[1] != "client.batch=100000")
