"""pow-d: the m largest losses among the queried clients; querying d = m and d = K clients equals other methods."""

from typing import Any

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.selector.base import Stateless, draw
from fedcohort.selector.powd import PowD
from fedcohort.types import Population, ProbeResult
from selector_harness import World, ids, make_context, play_rounds, to_list

NAN, INF = float("nan"), float("inf")


def select_clients(queried_ids: list[int], losses: list[float], **kwargs: Any) -> list[int]:
    answers = {"loss": ProbeResult(ids(*queried_ids), np.array(losses))}
    return to_list(PowD(None, "size").select(Stateless(), make_context(**kwargs), answers)[0].clients)


def test_the_largest_losses_are_selected() -> None:
    """Ascending order would give {1, 4}; positions among the candidates instead of ids, {1, 2}."""
    assert select_clients([1, 3, 4], [0.2, 0.9, 0.5]) == [3, 4]


@pytest.mark.parametrize("non_finite", [NAN, INF, -INF])
def test_a_loss_that_is_not_finite_is_never_preferred(non_finite: float) -> None:
    for seed in range(20):
        assert select_clients([0, 1, 3, 4], [non_finite, 0.1, non_finite, 0.2], seed=seed) == [1, 4]


def test_too_few_finite_losses_are_filled_up_with_answering_clients() -> None:
    picks = {tuple(select_clients([0, 1, 3], [NAN, 0.1, NAN], seed=seed)) for seed in range(40)}
    assert picks == {(0, 1), (1, 3)}


def test_too_few_answers_are_filled_up_with_available_clients() -> None:
    picks = {tuple(select_clients([1], [0.1], available=[0, 1, 4], seed=seed)) for seed in range(40)}
    assert picks == {(0, 1), (1, 4)}
    assert len(select_clients([], [], cohort=3)) == 3


def test_equal_losses_at_the_cut_are_equally_likely() -> None:
    """1600 seeds; one standard deviation of the share is 1.25 %, and four are 5 %."""
    n_with_client_1 = sum(select_clients([0, 1, 3], [0.9, 0.5, 0.5], seed=seed) == [0, 1] for seed in range(1600))
    assert 0.45 < n_with_client_1 / 1600 < 0.55


@for_all(
    "candidates, cohort, available, n_queried",
    [(None, 2, 12, 4), (None, 8, 12, 12), (5, 2, 12, 5), (3, 3, 12, 3), (12, 3, 12, 12), (5, 3, 4, 4), (5, 3, 2, 2)],
)
def test_the_number_of_candidates_follows_the_options(
    candidates: int | None, cohort: int, available: int, n_queried: int
) -> None:
    """d = min(candidates or 2 m, those available)."""
    world = World(12, cohort, available=lambda t: range(available))
    (probe,) = play_rounds(PowD(candidates, "size"), world, 1)[0].probes
    assert len(np.unique(probe.clients)) == n_queried
    assert probe.signal == "loss"
    assert not probe.concurrent


def test_querying_only_the_cohort_is_proportional_sampling() -> None:
    """d = m: S = A, the draw in proportion to n_k that `random` makes with weights=proportional."""
    world = World(cohort=4)
    for step in play_rounds(PowD(4, "size"), world, 10):
        ctx = world.context(step.ctx.round, frozenset({"n_train"}))
        proportional = draw(world.values("n_train").astype(float), ctx.available, 4, ctx.rng)
        assert step.selection.clients.tolist() == step.probes[0].clients.tolist() == proportional.tolist()


def test_querying_all_clients_selects_the_globally_largest_losses() -> None:
    world = World()
    for step in play_rounds(PowD(12, "uniform"), world, 10):
        largest = np.argsort(-world.values("loss", step.ctx.round))[:3]
        assert step.selection.clients.tolist() == sorted(largest.tolist())


@pytest.mark.parametrize("candidates", [2, 13])
def test_fewer_candidates_than_the_cohort_or_more_than_there_are_clients(candidates: int) -> None:
    with pytest.raises(OptionError, match=rf"candidates must be an integer in \[3, 12\].*got {candidates}"):
        PowD(candidates, "size").init(Population(12, 10, 3, {}))


def test_candidates_are_drawn_by_size() -> None:
    """One candidate of three with n = (50, 30, 20): chances .5, .3, .2; uniform: 1/3 each. 4 sigma of 1000 draws."""
    n = {"n_train": np.array([50, 30, 20])}
    for candidate, chances in (("size", [0.5, 0.3, 0.2]), ("uniform", [1 / 3] * 3)):
        rounds = (make_context(t, 1, 3, signals=n) for t in range(1000))
        drawn = [PowD(1, candidate).plan(Stateless(), ctx)[0].clients[0] for ctx in rounds]
        p = np.array(chances)
        assert (np.abs(np.bincount(drawn, minlength=3) / 1000 - p) < 4 * np.sqrt(p * (1 - p) / 1000)).all()


def test_sizes_are_read_only_where_they_count() -> None:
    for candidate, needs in (("uniform", {"loss"}), ("size", {"loss", "n_train"})):
        world = World()
        play_rounds(PowD(None, candidate), world, 2)
        assert world.read_signals == PowD(None, candidate).needs == needs


def test_scores_are_the_reported_losses() -> None:
    answers = {"loss": ProbeResult(ids(0, 3), np.array([0.5, NAN]))}
    scores = PowD(None, "size").select(Stateless(), make_context(), answers)[0].scores
    np.testing.assert_array_equal(scores, [0.5, NAN, NAN, -INF, NAN])
