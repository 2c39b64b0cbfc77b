"""The log of draws changes no selection of any selector, and its weights describe the cohort."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from case_loop import for_all
from failure_hints import failure_hint
from fedcohort.draw_log import DrawLog, LoggedGenerator
from fedcohort.maths.successive_draws import CohortDistribution
from fedcohort.rng import new_generator
from fedcohort.types import Ids, Selection
from selector_harness import Step
from selector_worlds import WORLDS, cached_selector, every_selector, played_rounds

WORLD_NAMES = ["all clients available", "half lost", "coming and going", "cohort of all clients", "one available"]
N_REPEATS = 120
MAX_Z = 5.0  # largest z-score of an inclusion frequency; keys are fixed, so that a correct selector always passes


def select_again(choice: str, step: Step, key: int, n_clients: int) -> tuple[Selection, DrawLog]:
    """Select in the state of a step with a logging generator; key 0 is that of the step."""
    selector: Any = cached_selector(choice)
    rng = LoggedGenerator(new_generator(key, "selector", step.ctx.round), np.arange(n_clients))
    ctx = replace(step.ctx, rng=rng)
    if key == 0 and len(ctx.available):
        selector.plan(step.before, ctx)
    rng.start_selection()
    selection, _ = selector.select(step.before, ctx, step.blocking_answers)
    return selection, rng.finish()


@every_selector
@for_all("world", WORLD_NAMES)
@failure_hint("Draw with `top`, `draw` or `draw_successively`, and read numbers from `ctx.rng` only.")
def test_the_log_changes_no_choice_and_describes_each_draw(choice: str, world: str) -> None:
    """The logged weights allow the logged order: infinite ones come first, zeros last."""
    for step in played_rounds(choice, world):
        selection, log = select_again(choice, step, 0, WORLDS[world].n_clients)
        assert np.array_equal(selection.clients, step.selection.clients)
        for draw in log.draws:
            weight_by_id = dict(zip(draw.pool.tolist(), draw.pool_weights.tolist(), strict=True))
            assert len(set(draw.clients.tolist())) == len(draw.clients)
            assert [weight_by_id[k] for k in draw.clients.tolist()] == draw.weights.tolist()
            assert len(draw.pool) == draw.pool_size
            assert np.isin(draw.pool, step.ctx.ready).all()
            kinds = np.where(np.isinf(draw.weights), 0, np.where(draw.weights > 0, 1, 2))
            assert (np.diff(kinds) >= 0).all()
            assert draw.n_zero_weights == np.count_nonzero(draw.pool_weights == 0)
            missed = np.setdiff1d(draw.pool, draw.clients)
            best_missed = max((weight_by_id[k] for k in missed.tolist()), default=-1.0)
            assert best_missed < np.inf
            assert (draw.weights > 0).all() or best_missed <= 0


@every_selector
@for_all("round", [1, 5])
@failure_hint(
    "The log says that the draws of `select` determine the probability of the cohort. Draw with `top`, `draw` or "
    "`draw_successively` only; the weights of a later draw must not depend on the clients of an earlier one."
)
def test_the_log_has_the_probability_of_the_cohort(choice: str, round: int) -> None:
    """With other keys, inclusion frequencies equal those from the probabilities of all cohorts."""
    step = played_rounds(choice, "all clients available")[round]
    selection, log = select_again(choice, step, 0, 12)
    law = CohortDistribution.from_draws(log, selection.clients)
    if law.unknown_reason:
        return
    chosen = [select_again(choice, step, key, 12)[0].clients for key in range(1, N_REPEATS if law.draws else 5)]
    if law.is_deterministic:
        assert all(np.array_equal(clients, selection.clients) for clients in chosen)
        return
    cohorts = [np.array(c, np.int64) for c in combinations(step.ctx.available.tolist(), len(selection.clients))]
    probabilities = np.exp([law.log_probability(cohort) for cohort in cohorts])
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    expected = count(cohorts, probabilities)
    counts = count(chosen, np.ones(len(chosen)))
    spread = np.sqrt(np.maximum(len(chosen) * expected * (1 - expected), 0.0))
    assert (np.abs(counts - len(chosen) * expected) <= MAX_Z * spread + 1e-9 * len(chosen)).all()


def count(cohorts: list[Ids], weights: np.ndarray) -> np.ndarray:
    """Return the sum of the weights of the cohorts with each client, [12]."""
    totals = np.zeros(12)
    for cohort, weight in zip(cohorts, weights, strict=True):
        totals[cohort] += weight
    return totals


def test_many_selectors_have_a_known_probability() -> None:
    """Without this test, a log without known probabilities would pass the law above."""
    choices_with_probability = {
        choice
        for choice in ("random", "fedpns", "feel", "oort", "hcsfed", "low_ratio", "powd", "ucb_cs", "full")
        for step in played_rounds(choice, "all clients available")[1:]
        if not CohortDistribution.from_draws(*_log_and_cohort(choice, step)).unknown_reason
    }
    assert len(choices_with_probability) == 9


def _log_and_cohort(choice: str, step: Step) -> tuple[DrawLog, Ids]:
    selection, log = select_again(choice, step, 0, 12)
    return log, selection.clients
