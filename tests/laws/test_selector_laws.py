"""What must hold of every selector with its yaml's defaults; a new word is tested before its author writes a test."""

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from fedcohort.state import pack
from fedcohort.types import Ids
from known import known
from relabelling import check_relabelling
from remedies import remedy
from saving import restore
from selector_harness import Step, World, check_choice, cohorts, half_lost, play, play_round, reorder, some
from selector_toys import BREAKERS, TOYS
from yaml_words import aliases, words
from yaml_words import make as made

WORDS = [*words("selector"), *aliases("selector"), *TOYS]
ROUNDS = 8
every = pytest.mark.parametrize("word", WORDS)


def make(group: str, word: str) -> Any:
    """A word of the yaml files, or one of the toys: the commonest bandits, which no law may refuse."""
    return TOYS[word] if word in TOYS else made(group, word)


@cache
def the(word: str) -> Any:
    """One selector a word: what a run changes is in its state, or it would not repeat and resume as a new one does."""
    return make("selector", word)


def same(a: Any, b: Any) -> bool:
    """Whether two states are equal to the last bit."""
    return bool(bits(pack(a)) == bits(pack(b)))


def bits(payload: Any) -> Any:
    """Plain data that compare as equal where the bits of every array and the text of every number do."""
    if isinstance(payload, dict):
        return [(key, bits(value)) for key, value in payload.items()]
    if isinstance(payload, list):
        return [bits(item) for item in payload]
    if isinstance(payload, torch.Tensor):
        return payload.dtype, payload.shape, payload.numpy().tobytes()
    return repr(payload)


WORLDS = {
    "everybody available": World(),
    "half lost": World(lost=half_lost),
    "coming and going": World(available=some, lost=half_lost),
    "one available": World(available=lambda t: [t % 12]),
    "nobody available at times": World(available=lambda t: [] if t % 3 == 0 else some(t)),
    "cohort of everybody": World(cohort=12),
    "cohort above the population": World(cohort=40, available=some),
    "one client": World(n_clients=1, cohort=1),
    "everybody fails": World(lost=lambda t, cohort: cohort),
}


@cache
def played(word: str, world: str) -> list[Step]:
    """Eight rounds in a world, which several laws look at."""
    return play(the(word), WORLDS[world], ROUNDS)


@every
@pytest.mark.parametrize("world", WORLDS)
@remedy("Choose min(cohort, available) distinct clients of `ctx.available`, sorted: `top` and `draw` do it.")
def test_a_cohort_is_available_distinct_and_complete(word: str, world: str) -> None:
    for step in played(word, world):
        check_choice(step.selection, step.ctx.available, WORLDS[world].cohort)


@every
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 0.0, 1.0, 1e300, -1.0])
@pytest.mark.filterwarnings("error::RuntimeWarning")
@remedy("Signals may be NaN, infinite, 0, negative or huge: check them before you divide, sort or take roots.")
def test_no_signal_makes_it_raise_or_warn(word: str, value: float) -> None:
    """Everybody says the same, and then every other client does."""
    for stride in (1, 2):

        def corrupt(signal: str, values: np.ndarray, stride: int = stride) -> np.ndarray:
            out = values.copy()
            out[::stride] = value
            return out

        world = World(corrupt=corrupt, available=some)
        for step in play(the(word), world, ROUNDS):
            check_choice(step.selection, step.ctx.available, world.cohort)


@every
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@remedy("A single nonsensical value must not spoil the others: check each client's value on its own.")
def test_no_mixture_of_signals_makes_it_raise(word: str) -> None:
    """A third of all answers are nonsense, others in every round."""

    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        generator = np.random.default_rng(int(1e9 * abs(values[0])))
        nonsense = generator.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, -1.0], len(values))
        return np.where(generator.random(len(values)) < 1 / 3, nonsense, values)

    for seed in range(5):
        world = World(seed=seed, corrupt=corrupt, available=some)
        for step in play(the(word), world, ROUNDS):
            check_choice(step.selection, step.ctx.available, world.cohort)


@every
@remedy("Draw from `ctx.rng` only, and keep what changes in the State, not in the selector.")
def test_equal_runs_are_equal(word: str) -> None:
    first, second = played(word, "half lost"), play(make("selector", word), World(lost=half_lost), ROUNDS)
    assert cohorts(first) == cohorts(second)
    assert same(first[-1].after, second[-1].after)


@every
@remedy("Draw from `ctx.rng`, never from a global generator.")
def test_global_generators_are_neither_read_nor_moved(word: str) -> None:
    runs = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        before = (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())  # noqa: NPY002
        runs.append(cohorts(play(the(word), World(), ROUNDS)))
        assert before == (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())  # noqa: NPY002
    assert runs[0] == runs[1]


@every
@remedy("List in `needs` each signal that the selector reads, and no other.")
def test_it_reads_exactly_what_it_declares(word: str) -> None:
    """Reading a word that is not in `needs` raises; declaring one that is never read would charge for nothing."""
    world = World()
    steps = play(the(word), world, 1)
    while world.read != the(word).needs and len(steps) < 3 * ROUNDS:  # a warm-up may come first
        steps += play(the(word), world, 1, steps[-1].after, len(steps), steps[-1].failures)
    assert world.read == the(word).needs


@every
@remedy("Draw in `select`, from `ctx.rng`: `observe` must be a function of its arguments.")
def test_observe_draws_nothing(word: str) -> None:
    for step in played(word, "everybody available")[:3]:
        before = str(step.ctx.rng.bit_generator.state)
        first, second = (the(word).observe(step.chosen, step.outcome) for _ in range(2))
        assert str(step.ctx.rng.bit_generator.state) == before
        assert same(first, second)


@cache
def advice(word: str, world: str) -> list[Any]:
    """What it advises the aggregator after each round."""
    return [the(word).observe(step.chosen, step.outcome)[0] for step in played(word, world)]


@every
@remedy("Set `advises = True` where `observe` returns Advice.")
def test_only_those_that_say_so_advise(word: str) -> None:
    assert the(word).advises or advice(word, "everybody available") == [None] * ROUNDS


@every
@remedy("Return Advice from `observe`, or set `advises = False`: the matrix of updates is kept for it.")
def test_who_says_that_it_advises_does(word: str) -> None:
    """The matrix of updates is kept for its advice: a claim without any would cost memory for nothing."""
    assert any(each is not None for each in advice(word, "cohort of everybody")) == the(word).advises


@every
@remedy("Set `weighs = True` exactly where the Advice has weights.")
def test_who_says_that_it_weighs_does(word: str) -> None:
    told = advice(word, "cohort of everybody")
    assert any(each is not None and each.weights is not None for each in told) == the(word).weighs


@every
@remedy("Copy the arrays of the state before you write into them.")
def test_states_are_never_modified(word: str) -> None:
    selector = the(word)
    state = selector.init(World().population(selector.needs))
    for round in range(ROUNDS):
        before = bits(pack(state))
        step = play_round(selector, state, World(), round)
        chosen = bits(pack(step.chosen))
        selector.observe(step.chosen, step.outcome)
        assert bits(pack(state)) == before
        assert bits(pack(step.chosen)) == chosen
        state = step.after


@every
@pytest.mark.parametrize("stop", [1, 4])
@remedy("Keep everything that changes between rounds in the State: a resumed run has nothing else.")
def test_resuming_is_continuing(word: str, stop: int) -> None:
    whole = played(word, "coming and going")
    state, failures = restore(whole[stop - 1].after), restore(whole[stop - 1].failures)
    rest = play(make("selector", word), WORLDS["coming and going"], ROUNDS - stop, state, stop, failures)
    assert cohorts(rest) == cohorts(whole)[stop:]
    assert same(rest[-1].after, whole[-1].after)


ABSENT = np.array([3, 8, 17])  # of 20: they answer every question, and never arrive
SMALL_IS_GOOD = {"expected_s", "expected_unit_s", "expected_up_s", "noise_rate"}


def tempting(absent: Ids, factor: float) -> Callable[[str, np.ndarray], np.ndarray]:
    """All that those who are absent say is `factor` times as large, or as small where small is good."""

    def change(word: str, values: np.ndarray) -> np.ndarray:
        out = values.copy()
        if word in ("label_counts", "group_counts") and factor > 1:
            out[absent] = 20  # a perfect balance
        else:
            out[absent] = (out[absent] * (1 / factor if word in SMALL_IS_GOOD else factor)).astype(out.dtype)
        return out

    return change


@cache
def play_with_absent(word: str, cohort: int, factor: float) -> list[Step]:
    """Fifty rounds in which three of twenty clients never arrive; `factor` makes the selector prefer them."""
    change = tempting(ABSENT, factor)
    world = World(20, cohort, lost=lambda t, asked: np.intersect1d(asked, ABSENT), corrupt=change, facts=change)
    return play(the(word), world, 50)


@every
@pytest.mark.parametrize(("cohort", "factor"), [(3, 10.0), (5, 1.0)])
@remedy("Set `backs_off = True`, or lower the score of clients in `outcome.failed`.")
def test_clients_that_never_arrive_do_not_hold_a_runs_places(word: str, cohort: int, factor: float) -> None:
    """They have at most 1.2 times their share of the later 30 of 50 rounds, and the run does not stall on them."""
    later = play_with_absent(word, cohort, factor)[20:]
    places = sum(len(step.selection.clients) for step in later)
    lost = sum(len(step.outcome.failed) for step in later)
    assert lost <= 1.2 * places * len(ABSENT) / 20
    empty = [not len(step.outcome.clients) for step in later]
    assert sum(empty) <= 2
    assert not any(one and other for one, other in itertools.pairwise(empty))


@every
def test_a_client_that_failed_repeatedly_is_offered_when_its_back_off_ends(word: str) -> None:
    """Selectors with `backs_off` are not offered it before; all others are offered every client that is ready."""
    selector, counts, back = the(word), dict.fromkeys(ABSENT.tolist(), 0), dict.fromkeys(ABSENT.tolist(), 0)
    lap = -(-20 // selector.shortlist(3))
    for step in play_with_absent(word, 3, 10.0):
        offered = np.isin(ABSENT, step.ctx.available)
        due = [not selector.backs_off or step.ctx.round >= back[k] for k in ABSENT.tolist()]
        assert offered.tolist() == due
        assert len(step.ctx.ready) == 20
        for k in step.outcome.failed.tolist():
            counts[k] += 1
            if counts[k] >= 3:
                back[k] = step.ctx.round + 1 + lap * min(2 ** (counts[k] - 3), 8)
    assert max(counts.values()) >= (3 if selector.backs_off else 0)


@every
@remedy("Index the state by `outcome.clients`, never by position in the round.")
def test_the_order_of_arrival_does_not_matter(word: str) -> None:
    selector, world = the(word), World(lost=half_lost)
    last = played(word, "half lost")[3]
    back = np.arange(len(last.outcome.clients))[::-1]
    signals = {signal: reorder(signal, column, back) for signal, column in last.outcome.signals.items()}
    turned = replace(last.outcome, clients=last.outcome.clients[::-1].copy(), signals=signals)
    a = play(selector, world, 2, last.after, 4, last.failures)
    b = play(selector, world, 2, selector.observe(last.chosen, turned)[1], 4, last.failures)
    assert cohorts(a) == cohorts(b)
    for one, other in zip(a, b, strict=True):
        if one.selection.scores is not None:
            np.testing.assert_allclose(one.selection.scores, known(other.selection.scores), rtol=1e-7)


@every
@remedy("Return scores for all clients, [n_clients], and parts `exploit` and `explore` that add up to them.")
def test_scores_are_one_a_client_and_their_parts_add_up(word: str) -> None:
    for step in played(word, "everybody available"):
        scores, parts = step.selection.scores, step.selection.parts
        if scores is None:
            assert not parts
            continue
        assert scores.shape == (12,)
        assert all(part.shape == (12,) for part in parts.values())
        if {"exploit", "explore"} == set(parts):
            np.testing.assert_allclose(parts["exploit"] + parts["explore"], scores, atol=1e-9)


@every
@remedy("Return from `trace` pairs of a finite mean and a deviation of at least 0.")
def test_traces_are_means_and_deviations(word: str) -> None:
    steps = played(word, "everybody available")
    for state in (steps[0].before, steps[-1].after):
        for mean, sd in the(word).trace(state).values():
            assert isinstance(mean, float)
            assert np.isfinite(mean)
            assert sd >= 0


@every
@remedy("Break ties at random (`top`, `draw`), not by client id.")
def test_relabelled_clients_have_relabelled_scores(word: str) -> None:
    check_relabelling(the(word))


@pytest.mark.parametrize("breaker", BREAKERS)
def test_who_prefers_low_ids_is_found_out(breaker: str) -> None:
    with pytest.raises(AssertionError):
        check_relabelling(BREAKERS[breaker])
