"""What must hold of every selector with its yaml's defaults; a new word is tested before its author writes a test."""

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedcohort.state import pack
from fedcohort.types import Ids
from known import known
from relabelling import check_relabelling
from saving import restore
from selector_harness import World, check_choice, cohorts, half_lost, play, play_round, reorder, some
from selector_toys import BREAKERS, TOYS
from yaml_words import aliases, words
from yaml_words import make as made

WORDS = [*words("selector"), *aliases("selector"), *TOYS]
ROUNDS = 8
every = pytest.mark.parametrize("word", WORDS)


def make(group: str, word: str) -> Any:
    """A word of the yaml files, or one of the toys: the commonest bandits, which no law may refuse."""
    return TOYS[word] if word in TOYS else made(group, word)


def same(a: Any, b: Any) -> bool:
    """Whether two states are equal to the last bit."""
    return _text(pack(a)) == _text(pack(b))


def _text(payload: Any) -> str:
    """Plain data as text, with the bits of every array."""
    if isinstance(payload, dict):
        return str([(key, _text(value)) for key, value in payload.items()])
    if isinstance(payload, list):
        return str([_text(item) for item in payload])
    if isinstance(payload, torch.Tensor):
        return str((payload.dtype, payload.shape, payload.numpy().tobytes()))
    return repr(payload)


@every
@pytest.mark.parametrize(
    "world",
    [
        pytest.param(World(), id="everybody available"),
        pytest.param(World(available=some, lost=half_lost), id="coming and going"),
        pytest.param(World(available=lambda t: [t % 12]), id="one available"),
        pytest.param(World(available=lambda t: [] if t % 3 == 0 else some(t)), id="nobody available at times"),
        pytest.param(World(cohort=12), id="cohort of everybody"),
        pytest.param(World(cohort=40, available=some), id="cohort above the population"),
        pytest.param(World(n_clients=1, cohort=1), id="one client"),
        pytest.param(World(lost=lambda t, cohort: cohort), id="everybody fails"),
    ],
)
def test_a_cohort_is_available_distinct_and_complete(word: str, world: World) -> None:
    for step in play(make("selector", word), world, ROUNDS):
        check_choice(step.selection, step.ctx.available, world.cohort)


@every
@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), 0.0, 1.0, 1e300, -1.0],
)
@pytest.mark.parametrize("share", ["all", "half"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_no_signal_makes_it_raise_or_warn(word: str, value: float, share: str) -> None:
    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(values)) % 2 < (2 if share == "all" else 1), value, values)

    world = World(corrupt=corrupt, available=some)
    for step in play(make("selector", word), world, ROUNDS):
        check_choice(step.selection, step.ctx.available, world.cohort)


@every
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_no_mixture_of_signals_makes_it_raise(word: str) -> None:
    """A third of all answers are nonsense, others in every round."""

    def corrupt(signal: str, values: np.ndarray) -> np.ndarray:
        generator = np.random.default_rng(int(1e9 * abs(values[0])))
        nonsense = generator.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, -1.0], len(values))
        return np.where(generator.random(len(values)) < 1 / 3, nonsense, values)

    for seed in range(5):
        world = World(seed=seed, corrupt=corrupt, available=some)
        for step in play(make("selector", word), world, ROUNDS):
            check_choice(step.selection, step.ctx.available, world.cohort)


@every
def test_equal_runs_are_equal(word: str) -> None:
    first, second = (play(make("selector", word), World(lost=half_lost), ROUNDS) for _ in range(2))
    assert cohorts(first) == cohorts(second)
    assert same(first[-1].after, second[-1].after)


@every
def test_global_generators_are_neither_read_nor_moved(word: str) -> None:
    runs = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        before = (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())  # noqa: NPY002
        runs.append(cohorts(play(make("selector", word), World(), ROUNDS)))
        assert before == (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())  # noqa: NPY002
    assert runs[0] == runs[1]


@every
def test_it_reads_exactly_what_it_declares(word: str) -> None:
    """Reading a word that is not in `needs` raises; declaring one that is never read would charge for nothing."""
    world = World()
    selector = make("selector", word)
    play(selector, world, 3 * ROUNDS)  # a warm-up may come first
    assert world.read == selector.needs


@every
def test_observe_draws_nothing(word: str) -> None:
    selector = make("selector", word)
    for step in play(selector, World(), 3):
        before = str(step.ctx.rng.bit_generator.state)
        first, second = (selector.observe(step.chosen, step.outcome) for _ in range(2))
        assert str(step.ctx.rng.bit_generator.state) == before
        assert same(first, second)


@every
def test_only_those_that_say_so_advise(word: str) -> None:
    selector = make("selector", word)
    advice = [selector.observe(step.chosen, step.outcome)[0] for step in play(selector, World(), 3)]
    assert selector.advises or advice == [None, None, None]


@every
def test_who_says_that_it_advises_does(word: str) -> None:
    """The matrix of updates is kept for its advice: a claim without any would cost memory for nothing."""
    selector = make("selector", word)
    steps = play(selector, World(cohort=12), ROUNDS)
    advice = [selector.observe(step.chosen, step.outcome)[0] for step in steps]
    assert any(each is not None for each in advice) == selector.advises


@every
def test_who_says_that_it_weighs_does(word: str) -> None:
    selector = make("selector", word)
    steps = play(selector, World(cohort=12), ROUNDS)
    advice = [selector.observe(step.chosen, step.outcome)[0] for step in steps]
    assert any(each is not None and each.weights is not None for each in advice) == selector.weighs


@every
def test_states_are_never_modified(word: str) -> None:
    selector = make("selector", word)
    state = selector.init(World().population(selector.needs))
    for round in range(ROUNDS):
        before = pack(state)
        step = play_round(selector, state, World(), round)
        chosen = pack(step.chosen)
        selector.observe(step.chosen, step.outcome)
        assert _text(pack(state)) == _text(before)
        assert _text(pack(step.chosen)) == _text(chosen)
        state = step.after


@every
@pytest.mark.parametrize("stop", [1, 4])
def test_resuming_is_continuing(word: str, stop: int) -> None:
    world = World(available=some, lost=half_lost)
    whole = play(make("selector", word), world, ROUNDS)
    rest = play(make("selector", word), world, ROUNDS - stop, restore(whole[stop - 1].after), start=stop)
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


@every
@pytest.mark.parametrize(("cohort", "factor"), [(3, 10.0), (5, 1.0)])
def test_clients_that_never_arrive_do_not_hold_a_runs_places(word: str, cohort: int, factor: float) -> None:
    """Three of twenty have at most 1.2 times their share of the later 50 of 80 rounds, and nobody waits for them."""
    change = tempting(ABSENT, factor)
    world = World(20, cohort, lost=lambda t, asked: np.intersect1d(asked, ABSENT), corrupt=change, facts=change)
    later = play(make("selector", word), world, 80)[30:]
    places = sum(len(step.selection.clients) for step in later)
    lost = sum(len(step.outcome.failed) for step in later)
    assert lost <= 1.2 * places * len(ABSENT) / 20
    empty = [not len(step.outcome.clients) for step in later]
    assert sum(empty) <= 3
    assert not any(one and other for one, other in itertools.pairwise(empty))


@every
def test_the_order_of_arrival_does_not_matter(word: str) -> None:
    selector, world = make("selector", word), World(lost=half_lost)
    steps = play(selector, world, 4)
    last = steps[-1]
    back = np.arange(len(last.outcome.clients))[::-1]
    signals = {signal: reorder(signal, column, back) for signal, column in last.outcome.signals.items()}
    turned = replace(last.outcome, clients=last.outcome.clients[::-1].copy(), signals=signals)
    a = play(selector, world, 2, last.after, start=4)
    b = play(selector, world, 2, selector.observe(last.chosen, turned)[1], start=4)
    assert cohorts(a) == cohorts(b)
    for one, other in zip(a, b, strict=True):
        if one.selection.scores is not None:
            np.testing.assert_allclose(one.selection.scores, known(other.selection.scores), rtol=1e-7)


@every
def test_scores_are_one_a_client_and_their_parts_add_up(word: str) -> None:
    for step in play(make("selector", word), World(), ROUNDS):
        scores, parts = step.selection.scores, step.selection.parts
        if scores is None:
            assert not parts
            continue
        assert scores.shape == (12,)
        assert all(part.shape == (12,) for part in parts.values())
        if {"exploit", "explore"} == set(parts):
            np.testing.assert_allclose(parts["exploit"] + parts["explore"], scores, atol=1e-9)


@every
def test_traces_are_means_and_deviations(word: str) -> None:
    selector = make("selector", word)
    steps = play(selector, World(), ROUNDS)
    for state in (steps[0].before, steps[-1].after):
        for mean, sd in selector.trace(state).values():
            assert isinstance(mean, float)
            assert np.isfinite(mean)
            assert sd >= 0


@every
def test_relabelled_clients_have_relabelled_scores(word: str) -> None:
    check_relabelling(make("selector", word))


@pytest.mark.parametrize("breaker", BREAKERS)
def test_who_prefers_low_ids_is_found_out(breaker: str) -> None:
    with pytest.raises(AssertionError):
        check_relabelling(BREAKERS[breaker])
