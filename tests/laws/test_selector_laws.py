"""Laws of every selector with the defaults of its yaml file; they also test a method that has no other tests."""

import random
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from case_loop import for_all
from client_relabelling import check_relabelling
from failure_hints import failure_hint
from fedcohort.state import pack_state
from optional_values import not_none
from selector_harness import (
    World,
    changing_clients,
    check_selection,
    list_cohorts,
    lose_half,
    play_round,
    play_rounds,
    reorder,
)
from selector_worlds import (
    ROUNDS,
    WORLDS,
    bits,
    cached_selector,
    equal_states,
    every_selector,
    make_selector,
    played_rounds,
)
from state_saving import save_and_restore
from toy_selectors import LAW_BREAKERS, RequiredAnswers


@every_selector
@for_all("world", list(WORLDS))
@failure_hint(
    "Choose min(cohort, available) distinct clients of `ctx.available`, sorted: `top` and `draw` do it. Set "
    "`may_choose_fewer = True` if the size of a cohort is a result of the method."
)
def test_a_cohort_is_available_distinct_and_complete(choice: str, world: str) -> None:
    for step in played_rounds(choice, world):
        check_selection(cached_selector(choice), step.selection, step.ctx.available, WORLDS[world].cohort)


@every_selector
@for_all("value", [float("nan"), float("inf"), -float("inf"), 0.0, 1.0, 1e300, -1.0])
@pytest.mark.filterwarnings("error::RuntimeWarning")
@failure_hint("Signals may be NaN, infinite, 0, negative or huge: check them before you divide, sort or take roots.")
def test_no_signal_value_makes_a_selector_raise_or_warn(choice: str, value: float) -> None:
    """First all clients report the value, then every second client."""
    for stride in (1, 2):

        def corrupt(signal: str, values: np.ndarray, stride: int = stride) -> np.ndarray:
            corrupted = values.copy()
            corrupted[::stride] = value
            return corrupted

        world = World(corrupt=corrupt, available=changing_clients)
        for step in play_rounds(cached_selector(choice), world, ROUNDS):
            check_selection(cached_selector(choice), step.selection, step.ctx.available, world.cohort)


@every_selector
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@failure_hint("A single nonsensical value must not spoil the others: check each client's value on its own.")
def test_no_mixture_of_signal_values_makes_a_selector_raise(choice: str) -> None:
    """A third of all answers are invalid, of different clients in each round."""

    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        generator = np.random.default_rng(int(1e9 * abs(values[0])))
        invalid = generator.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, -1.0], len(values))
        return np.where(generator.random(len(values)) < 1 / 3, invalid, values)

    for seed in range(5):
        world = World(seed=seed, corrupt=corrupt, available=changing_clients)
        for step in play_rounds(cached_selector(choice), world, ROUNDS):
            check_selection(cached_selector(choice), step.selection, step.ctx.available, world.cohort)


@every_selector
@failure_hint("Draw from `ctx.rng` only, and keep what changes in the State, not in the selector.")
def test_equal_seeds_give_equal_selections(choice: str) -> None:
    first, second = (
        played_rounds(choice, "half lost"),
        play_rounds(make_selector(choice), World(find_failing=lose_half), ROUNDS),
    )
    assert list_cohorts(first) == list_cohorts(second)
    assert equal_states(first[-1].after, second[-1].after)


@every_selector
@failure_hint("Draw from `ctx.rng`, never from a global generator.")
def test_global_generators_are_neither_read_nor_moved(choice: str) -> None:
    runs = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        before = (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())  # noqa: NPY002
        runs.append(list_cohorts(play_rounds(cached_selector(choice), World(), ROUNDS)))
        assert before == (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())  # noqa: NPY002
    assert runs[0] == runs[1]


@every_selector
@failure_hint("List in `needs` each signal that the selector reads, and no other.")
def test_selectors_read_exactly_the_signals_that_they_declare(choice: str) -> None:
    """Reading a signal that is not in `needs` raises; one that is declared and never read is charged for nothing."""
    world = World()
    steps = play_rounds(cached_selector(choice), world, 1)
    while (
        world.read_signals != cached_selector(choice).needs and len(steps) < 3 * ROUNDS
    ):  # a method may have a warm-up
        steps += play_rounds(cached_selector(choice), world, 1, steps[-1].after, len(steps), steps[-1].failures)
    assert world.read_signals == cached_selector(choice).needs


@every_selector
@failure_hint("Draw in `select`, from `ctx.rng`: `observe` must be a function of its arguments.")
def test_observe_uses_no_random_numbers(choice: str) -> None:
    for step in played_rounds(choice, "all clients available")[:3]:
        before = str(step.ctx.rng.bit_generator.state)
        first, second = (cached_selector(choice).observe(step.chosen, step.outcome) for _ in range(2))
        assert str(step.ctx.rng.bit_generator.state) == before
        assert equal_states(first, second)


@cache
def advice(choice: str, world: str) -> list[Any]:
    """Return the advice to the aggregator after each round."""
    return [cached_selector(choice).observe(step.chosen, step.outcome)[0] for step in played_rounds(choice, world)]


@every_selector
@failure_hint("Set `advises = True` where `observe` returns an AggregationOverride.")
def test_only_selectors_with_the_flag_return_advice(choice: str) -> None:
    assert cached_selector(choice).advises or advice(choice, "all clients available") == [None] * ROUNDS


@every_selector
@failure_hint(
    "Return an AggregationOverride from `observe`, or set `advises = False`: the matrix of updates is kept for it."
)
def test_selectors_with_the_flag_return_advice(choice: str) -> None:
    """The matrix of updates is kept for its advice, which costs memory."""
    items = (*advice(choice, "cohort of all clients"), *advice(choice, "all clients available"))
    assert any(item is not None for item in items) == cached_selector(choice).advises


@every_selector
@failure_hint("Set `weighs = True` exactly where the override has weights.")
def test_a_selector_that_weighs_returns_weights(choice: str) -> None:
    items = (*advice(choice, "cohort of all clients"), *advice(choice, "all clients available"))
    assert any(item is not None and item.weights is not None for item in items) == cached_selector(choice).weighs


@every_selector
@failure_hint("Copy the arrays of the state before you write into them.")
def test_states_are_never_modified(choice: str) -> None:
    selector = cached_selector(choice)
    state = selector.init(World().population(selector.needs))
    for round in range(ROUNDS):
        before = bits(pack_state(state))
        step = play_round(selector, state, World(), round)
        chosen = bits(pack_state(step.chosen))
        selector.observe(step.chosen, step.outcome)
        assert bits(pack_state(state)) == before
        assert bits(pack_state(step.chosen)) == chosen
        state = step.after


@every_selector
@for_all("stop", [1, 4])
@failure_hint("Keep everything that changes between rounds in the State: a resumed run has nothing else.")
def test_a_resumed_selector_continues_identically(choice: str, stop: int) -> None:
    complete = played_rounds(choice, "coming and going")
    state, failures = save_and_restore(complete[stop - 1].after), save_and_restore(complete[stop - 1].failures)
    resumed = play_rounds(make_selector(choice), WORLDS["coming and going"], ROUNDS - stop, state, stop, failures)
    assert list_cohorts(resumed) == list_cohorts(complete)[stop:]
    assert equal_states(resumed[-1].after, complete[-1].after)


@every_selector
@failure_hint("Index the state by `outcome.clients`, never by position in the round.")
def test_the_order_of_arrival_does_not_matter(choice: str) -> None:
    selector, world = cached_selector(choice), World(find_failing=lose_half)
    last = played_rounds(choice, "half lost")[3]
    reversed_order = np.arange(len(last.outcome.clients))[::-1]
    signals = {signal: reorder(signal, column, reversed_order) for signal, column in last.outcome.signals.items()}
    reversed_outcome = replace(last.outcome, clients=last.outcome.clients[::-1].copy(), signals=signals)
    a = play_rounds(selector, world, 2, last.after, 4, last.failures)
    b = play_rounds(selector, world, 2, selector.observe(last.chosen, reversed_outcome)[1], 4, last.failures)
    assert list_cohorts(a) == list_cohorts(b)
    for first_step, second_step in zip(a, b, strict=True):
        if first_step.selection.scores is not None:
            np.testing.assert_allclose(first_step.selection.scores, not_none(second_step.selection.scores), rtol=1e-7)


@every_selector
@failure_hint("Return scores for all clients, [n_clients], and parts `exploit` and `explore` that add up to them.")
def test_there_is_one_score_per_client_and_its_parts_add_up(choice: str) -> None:
    for step in played_rounds(choice, "all clients available"):
        scores, parts = step.selection.scores, step.selection.score_terms
        if scores is None:
            assert not parts
            continue
        assert scores.shape == (12,)
        assert all(part.shape == (12,) for part in parts.values())
        if {"exploit", "explore"} == set(parts):
            np.testing.assert_allclose(parts["exploit"] + parts["explore"], scores, atol=1e-9)


@every_selector
@failure_hint("Return from `trace` pairs of a finite mean and a deviation of at least 0.")
def test_traces_hold_means_and_standard_deviations(choice: str) -> None:
    steps = played_rounds(choice, "all clients available")
    for state in (steps[0].before, steps[-1].after):
        for mean, sd in cached_selector(choice).trace(state).values():
            assert isinstance(mean, float)
            assert np.isfinite(mean)
            assert sd >= 0


@every_selector
@failure_hint("Break ties at random (`top`, `draw`), not by client id.")
def test_relabelled_clients_have_relabelled_scores(choice: str) -> None:
    check_relabelling(cached_selector(choice))


@pytest.mark.parametrize("breaker", LAW_BREAKERS)
def test_a_preference_for_low_ids_is_detected(breaker: str) -> None:
    with pytest.raises(AssertionError):
        check_relabelling(LAW_BREAKERS[breaker])


def test_a_missing_answer_names_the_function_that_reads_it() -> None:
    assert len(play_rounds(RequiredAnswers(), WORLDS["one available"], ROUNDS)) == ROUNDS
    with pytest.raises(KeyError, match=r"Read its answers by find_answers\(probes, 'loss'\)"):
        play_rounds(RequiredAnswers(), WORLDS["no client available at times"], ROUNDS)
