"""Random: the chance of each client, exactly where there is a closed form, by Monte Carlo where there isn't."""

from itertools import permutations

import numpy as np

from fedcohort import rng
from fedcohort.selector.base import Stateless
from fedcohort.selector.random import Random
from fedcohort.types import RoundContext
from selector_harness import World, make_context, play_rounds

N = {"n_train": np.array([50, 30, 20])}


def inclusion(weights: str, draws: int) -> tuple[np.ndarray, list[int]]:
    """How often each of three clients is in a cohort of two, and the sizes of the cohorts."""
    generator = rng.new_generator(0, "monte carlo")
    ctx = RoundContext(0, 2, 3, np.arange(3), N, generator)
    picks = [Random(weights).select(Stateless(), ctx, {})[0].clients for _ in range(draws)]
    return np.bincount(np.concatenate(picks), minlength=3) / draws, [len(set(p.tolist())) for p in picks]


def test_proportional_inclusion_without_replacement() -> None:
    """P(k in S) for p = (.5, .3, .2), m = 2, summed over the orders in which two clients can be drawn."""
    p, exact = np.array([0.5, 0.3, 0.2]), np.zeros(3)
    for a, b in permutations(range(3), 2):
        exact[[a, b]] += p[a] * p[b] / (1 - p[a])
    np.testing.assert_allclose(exact, [0.8392857, 0.675, 0.4857143], atol=5e-8)
    share, sizes = inclusion("proportional", 10_000)
    assert (np.abs(share - exact) < 4 * np.sqrt(exact * (1 - exact) / 10_000)).all()
    assert set(sizes) == {2}


def test_uniform_selection_includes_each_client_equally_often() -> None:
    share, sizes = inclusion("uniform", 10_000)
    assert (np.abs(share - 2 / 3) < 4 * np.sqrt(2 / 9 / 10_000)).all()
    assert set(sizes) == {2}


def test_proportional_with_equal_sizes_is_uniform() -> None:
    for seed in range(20):
        ctx = make_context(cohort=3, n_clients=9, signals={"n_train": np.full(9, 7)}, seed=seed)
        repeat = make_context(cohort=3, n_clients=9, seed=seed)
        picks = [
            Random(weights).select(Stateless(), c, {})[0].clients.tolist()
            for weights, c in (("proportional", ctx), ("uniform", repeat))
        ]
        assert picks[0] == picks[1]


def test_clients_without_data_come_last() -> None:
    for seed in range(20):
        ctx = make_context(cohort=3, signals={"n_train": np.array([0, 5, 0, 5, 0])}, seed=seed)
        chosen = Random("proportional").select(Stateless(), ctx, {})[0].clients.tolist()
        assert {1, 3} < set(chosen)


def test_cohorts_of_different_rounds_differ() -> None:
    steps = play_rounds(Random("uniform"), World(), 6)
    assert len({tuple(step.selection.clients) for step in steps}) > 1


def test_sizes_are_read_only_where_they_count() -> None:
    for weights, needs in (("uniform", set()), ("proportional", {"n_train"})):
        world = World()
        play_rounds(Random(weights), world, 2)
        assert world.read_signals == Random(weights).needs == needs
