"""Relabel clients: a selector must treat them as before, independently of their ids."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedcohort.selector.base import TIE_TOLERANCE
from fedcohort.types import Ids, Population, ProbeResult, RoundOutcome, Selection
from selector_harness import World, play_rounds, reorder

ROUNDS = 8


class Relabelled(np.random.Generator):
    """Generator of the same draws, in which draws of one number per client follow the clients' new ids.

    Attributes:
        others: number of other draws, which relabelling does not change.

    """

    def __init__(self, generator: np.random.Generator, new_ids: Ids) -> None:
        super().__init__(generator.bit_generator)
        self.new_ids, self.others = new_ids, 0

    def relabel(self, drawn: Any) -> Any:
        if not isinstance(drawn, np.ndarray) or drawn.shape[-1:] != (len(self.new_ids),):
            self.others += 1
            return drawn
        relabelled = np.empty_like(drawn)
        relabelled[..., self.new_ids] = drawn
        return relabelled


def _relabels(name: str) -> Callable[..., Any]:
    return lambda self, *args, **options: self.relabel(getattr(np.random.Generator, name)(self, *args, **options))


DISTRIBUTIONS = (
    "random uniform normal standard_normal exponential standard_exponential gumbel beta gamma standard_gamma"
)
for _name in (DISTRIBUTIONS + " integers choice permutation").split():
    setattr(Relabelled, _name, _relabels(_name))


def forced_cohort(round: int) -> list[int]:
    """Return three of twelve clients in turn, which forces a cohort of three; after four rounds return all."""
    return list(range(12)) if round >= 4 else list(range(3 * round, 3 * round + 3))


def check_relabelling(selector: Any) -> None:
    """Check that scores and cohorts of relabelled clients are the relabelled ones.

    Draws of one number per client are relabelled too, because scores may contain them. The comparison ends where a
    selection depends on another draw or on a tie.
    """
    new_ids = np.random.default_rng(5).permutation(12)
    world = World(available=forced_cohort)
    steps = play_rounds(selector, world, ROUNDS)
    state = selector.init(_population(world, selector.needs, new_ids))
    for round, step in enumerate(steps):
        ctx = world.context(round, selector.needs)
        signals = {w: _permute(v, new_ids) if np.ndim(v) else v for w, v in ctx.signals.items()}
        draws = Relabelled(ctx.rng, new_ids)
        ctx = replace(ctx, available=np.sort(new_ids[ctx.available]), signals=signals, rng=draws)
        selector.plan(state, ctx)
        answers = {w: _relabel_answers(p, new_ids) for w, p in step.blocking_answers.items()}
        selection, state = selector.select(state, ctx, answers)
        scores = step.selection.scores
        if scores is not None:
            np.testing.assert_allclose(selection.scores, _permute(scores, new_ids), rtol=1e-6, atol=1e-9)
        if step.selection.probability is not None:
            probability = _permute(step.selection.probability, new_ids)
            np.testing.assert_allclose(selection.probability, probability, rtol=1e-6, atol=1e-9)
        if not np.array_equal(selection.clients, np.sort(new_ids[step.selection.clients])):
            assert round >= 4
            is_tied = scores is not None and _is_tied_at_cut(scores[step.ctx.available], world.cohort)
            assert draws.others or is_tied
            return
        state = selector.observe(state, _relabelled_outcome(step.outcome, selection, new_ids))[1]


def _permute(values: np.ndarray, new_ids: Ids) -> np.ndarray:
    permuted = np.empty_like(values)
    permuted[new_ids] = values
    return permuted


def _population(world: World, needs: frozenset[str], new_ids: Ids) -> Population:
    population = world.population(needs)
    return replace(population, signals={w: _permute(v, new_ids) for w, v in population.signals.items()})


def _relabel_answers(answers: ProbeResult, new_ids: Ids) -> ProbeResult:
    order = np.argsort(new_ids[answers.clients])
    return ProbeResult(new_ids[answers.clients][order], answers.values[order])


def _relabelled_outcome(outcome: RoundOutcome, selection: Selection, new_ids: Ids) -> RoundOutcome:
    order = np.argsort(new_ids[outcome.clients])
    return replace(
        outcome,
        selection=selection,
        clients=new_ids[outcome.clients][order],
        signals={w: reorder(w, column, order) for w, column in outcome.signals.items()},
        probes={w: _relabel_answers(answers, new_ids) for w, answers in outcome.probes.items()},
    )


def _is_tied_at_cut(scores: np.ndarray, cohort: int) -> bool:
    worst_selected, best_unselected = np.sort(scores)[::-1][cohort - 1 : cohort + 1]
    return bool(
        worst_selected == best_unselected
        or abs(worst_selected - best_unselected) <= TIE_TOLERANCE * max(1.0, abs(worst_selected), abs(best_unselected))
    )
