"""rpow-d: last losses by hand, new clients, clients that always fail, and the definition of the loss."""

from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.errors import OptionError
from fedcohort.selector.rpowd import RPowD, State
from fedcohort.types import Population
from optional_values import not_none
from selector_harness import World, make_context, make_outcome, play_rounds

NAN, INF = float("nan"), float("inf")


def rpowd(**changes: Any) -> RPowD:
    return make_typed(RPowD, "selector", "rpowd", **{"candidate": "uniform", "tie": "id", **changes})


def test_five_rounds_of_rpowd_by_hand() -> None:
    """K = 4, m = 1, d = 2 = those available, so that A is known. Zeros at the start would never try 2 or 3."""
    selector = rpowd()
    state = selector.init(Population(4, 2, 1, {}))
    rounds = [([0, 2], 0, 0.3), ([0, 2], 2, 0.7), ([0, 2], 2, 0.1), ([0, 3], 3, 0.5), ([0, 3], 3, 0.2)]
    for round, (candidates, expected, loss) in enumerate(rounds):
        selection, state = selector.select(state, make_context(round, 1, 4, candidates), {})
        assert selection.clients.tolist() == [expected]
        state = selector.observe(state, make_outcome(round, [expected], train_loss=[loss]))[1]
    assert state.last_losses.tolist() == [0.3, INF, 0.1, 0.2]


def test_only_candidates_are_compared() -> None:
    """d = 1 of three clients with n = (50, 30, 20): the drawn client is selected; 4 sigma of 1000 draws."""
    state = State(np.array([0.1, 0.5, 0.9]))
    n = {"n_train": np.array([50, 30, 20])}
    selector = rpowd(candidates=1, candidate="size")
    selections = [selector.select(state, make_context(t, 1, 3, signals=n), {}) for t in range(1000)]
    p = np.array([0.5, 0.3, 0.2])
    share = np.bincount([s.clients[0] for s, _ in selections], minlength=3) / 1000
    assert (np.abs(share - p) < 4 * np.sqrt(p * (1 - p) / 1000)).all()
    np.testing.assert_allclose(not_none(selections[0][0].probability), p, rtol=1e-14)


def test_with_all_candidates_the_globally_largest_losses_are_selected() -> None:
    world = World()
    for step in play_rounds(rpowd(candidates=12), world, 8)[4:]:
        largest = np.argsort(-step.before.last_losses)[:3]
        assert step.selection.clients.tolist() == sorted(largest.tolist())
        np.testing.assert_array_equal(step.selection.scores, step.before.last_losses)


def test_every_client_is_selected_once_before_any_is_selected_twice() -> None:
    steps = play_rounds(rpowd(candidates=12, tie="random"), World(), 4)
    visited = np.concatenate([step.selection.clients for step in steps])
    assert sorted(visited.tolist()) == list(range(12))
    assert visited.tolist() != list(range(12)), "in random order"


@pytest.mark.parametrize("non_finite", [NAN, INF, -INF])
def test_a_loss_that_is_not_finite_is_not_preferred_until_there_is_a_finite_one(non_finite: float) -> None:
    selector = rpowd()
    state = selector.observe(State(np.array([0.3, 0.2])), make_outcome(0, [0], train_loss=[non_finite]))[1]
    assert state.last_losses.tolist() == [-INF, 0.2]
    assert selector.select(state, make_context(1, 1, 2), {})[0].clients.tolist() == [1]
    state = selector.observe(state, make_outcome(1, [0], train_loss=[0.9]))[1]
    assert selector.select(state, make_context(2, 1, 2), {})[0].clients.tolist() == [0]


def test_the_initial_loss_is_queried_from_the_cohort_during_training() -> None:
    """`loss` of w_t, not the path's average; the probe foresees the cohort without moving the draws."""
    world = World(find_failing=lambda t, cohort: cohort[:1])
    start, path = (
        play_rounds(rpowd(loss_at="start", tie="random"), world, 6),
        play_rounds(rpowd(tie="random"), world, 1),
    )
    assert start[0].selection.clients.tolist() == path[0].selection.clients.tolist()
    for step in start:
        (probe,) = step.probes
        assert probe.concurrent
        assert probe.clients.tolist() == step.selection.clients.tolist()
        arrived = step.outcome.clients
        np.testing.assert_array_equal(step.after.last_losses[arrived], world.values("loss", step.ctx.round)[arrived])
        assert (
            step.after.last_losses[step.outcome.failed].tolist()
            == step.before.last_losses[step.outcome.failed].tolist()
        )


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({}, {"train_loss"}),
        ({"candidate": "size"}, {"train_loss", "n_train"}),
        ({"loss_at": "start"}, {"loss"}),
        ({"loss_at": "start", "candidate": "size"}, {"loss", "n_train"}),
    ],
)
def test_only_the_signals_of_the_options_are_needed(changes: dict[str, Any], needs: set[str]) -> None:
    world = World()
    play_rounds(rpowd(**changes), world, 2)
    assert world.read_signals == rpowd(**changes).needs == needs


@pytest.mark.parametrize("candidates", [2, 13])
def test_fewer_candidates_than_the_cohort_or_more_than_there_are_clients(candidates: int) -> None:
    with pytest.raises(OptionError, match=rf"candidates must be an integer in \[3, 12\].*got {candidates}"):
        rpowd(candidates=candidates).init(Population(12, 10, 3, {}))
