"""Every deadline is deterministic, monotone, independent of the time unit, and valid without arrivals."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.deadline.base import PaceContext, compute_outcome
from fedcohort.device.base import Timing
from fedcohort.errors import IncompatibleConfig
from fedcohort.types import Population, RoundOutcome, Selection
from global_rng_guard import forbid_global_rng
from run_harness import startup_notices
from state_saving import save_and_restore

K, UNITS, COHORT = 20, 5, 6
POPULATION = Population(K, 10, COHORT, {"n_train": np.arange(10, 10 + K)})


@pytest.fixture(params=list_options("deadline"))
def deadline(request: pytest.FixtureRequest) -> Any:
    return make_component("deadline", request.param)


def context(seed: int = 0, scale: float = 1.0, n_selected: int = COHORT) -> PaceContext:
    rng = np.random.default_rng(seed)
    phases = [scale * rng.exponential(1.0, K) for _ in range(4)]
    selected = np.sort(rng.choice(K, n_selected, replace=False))
    return PaceContext(1, selected, UNITS, Timing(*phases), Timing(*(phase[selected] for phase in phases)))


def close_round(deadline: Any, ctx: PaceContext, finish: np.ndarray) -> float:
    state = deadline.init(POPULATION)
    return float(deadline.close(state, finish, deadline.announce(state, ctx)))


@failure_hint("Compute the deadline from its arguments: no global generator.")
def test_deadlines_are_deterministic_without_global_generators(deadline: Any) -> None:
    with forbid_global_rng():
        first = close_round(deadline, context(), context().expected.finish_s(UNITS))
    with forbid_global_rng():
        assert close_round(deadline, context(), context().expected.finish_s(UNITS)) == first


@failure_hint("Announce and close after the start of the round: seconds above 0.")
def test_deadlines_are_announced_and_closed_after_the_start(deadline: Any) -> None:
    for seed in range(20):
        ctx = context(seed)
        assert deadline.announce(deadline.init(POPULATION), ctx) > 0
        close = close_round(deadline, ctx, ctx.expected.finish_s(UNITS))
        assert 0 < close < np.inf


@failure_hint("Set `announces` to whether `announce` returns a finite number.")
def test_announces_is_true_exactly_if_clients_get_a_finite_deadline(deadline: Any) -> None:
    deadline_s = deadline.announce(deadline.init(POPULATION), context())
    assert deadline.announces == bool(np.isfinite(deadline_s))


@failure_hint("Close at the announced deadline or when the last client has finished, whichever is first.")
def test_the_round_never_lasts_longer_than_announced_or_than_the_slowest_client(deadline: Any) -> None:
    for seed in range(20):
        ctx = context(seed)
        finish = ctx.expected.finish_s(UNITS)
        deadline_s = deadline.announce(deadline.init(POPULATION), ctx)
        close = close_round(deadline, ctx, finish)
        assert close <= (deadline_s if np.isfinite(deadline_s) else finish.max())


@failure_hint("Set `bounded` to whether a client can be late.")
def test_no_client_is_late_if_the_deadline_waits_for_all(deadline: Any) -> None:
    """`bounded` states whether partial work can have an effect."""
    deadlines_s = {deadline.announce(deadline.init(POPULATION), context(seed)) for seed in range(20)}
    assert deadline.bounded or deadlines_s == {np.inf}
    ctx = context(n_selected=deadline.cohort_size(COHORT))
    slow = close_round(deadline, ctx, 100 * ctx.expected.finish_s(UNITS))
    assert (slow < 100 * ctx.expected.finish_s(UNITS).max()) == deadline.bounded


@failure_hint("Use sorted times or quantiles, never positions in the cohort.")
def test_the_order_of_clients_does_not_matter(deadline: Any) -> None:
    ctx = context()
    finish = ctx.expected.finish_s(UNITS)
    assert close_round(deadline, ctx, finish[::-1].copy()) == close_round(deadline, ctx, finish)


@failure_hint("Let the closing time grow with each client's finishing time.")
def test_a_slower_client_never_closes_the_round_earlier(deadline: Any) -> None:
    for seed in range(20):
        ctx = context(seed)
        finish = ctx.expected.finish_s(UNITS)
        before = close_round(deadline, ctx, finish)
        for i in range(len(finish)):
            slower = finish.copy()
            slower[i] *= 3
            assert close_round(deadline, ctx, slower) >= before


@failure_hint("Use no constant in seconds: all times may be a thousand times longer.")
def test_scaling_all_times_scales_the_deadline(deadline: Any) -> None:
    """If all times are a thousand times longer, so are the announced and the closing time."""
    for seed in range(10):
        ctx, slow = context(seed), context(seed, scale=1000.0)
        state = deadline.init(POPULATION)
        assert deadline.announce(state, slow) == pytest.approx(1000 * deadline.announce(state, ctx))
        finish = ctx.expected.finish_s(UNITS)
        assert close_round(deadline, slow, 1000 * finish) == pytest.approx(1000 * close_round(deadline, ctx, finish))


@failure_hint("Leave the state as it is where no client has arrived.")
def test_a_first_round_without_arrivals_changes_nothing(deadline: Any) -> None:
    state, ctx = deadline.init(POPULATION), context()
    before = deadline.announce(state, ctx)
    no_clients = np.empty(0, dtype=np.int64)
    signals = {signal: np.empty(0) for signal in deadline.needs}
    outcome = RoundOutcome(1, Selection(ctx.selected_ids), no_clients, ctx.selected_ids, signals, {}, 9.0)
    assert deadline.announce(deadline.observe(state, outcome), ctx) == before


@failure_hint("Return from `ask` an int that is at least the cohort and grows with it.")
def test_the_selected_number_is_at_least_the_cohort_and_monotone_in_it(deadline: Any) -> None:
    n_selected = np.array([deadline.cohort_size(cohort) for cohort in range(1, 60)])
    assert all(isinstance(deadline.cohort_size(cohort), int) for cohort in (1, 10))
    assert (n_selected >= np.arange(1, 60)).all()
    assert (np.diff(n_selected) >= 0).all()


@pytest.mark.parametrize("pause_s", [0.0, 2.5])
@failure_hint("Count arrivals and units at the closing time; both must grow with it.")
def test_a_later_close_never_has_fewer_arrivals_or_less_work(deadline: Any, pause_s: float) -> None:
    """Test uninterrupted work, and work with a pause of 2.5 s for all clients from second 2."""
    for seed in range(5):
        timing = context(seed).expected
        close = close_round(deadline, context(seed), timing.finish_s(UNITS))
        closed = [
            compute_outcome(
                timing, UNITS, factor * close, deadline.partial_work, wall_time=lambda s: s + pause_s * (s > 2.0)
            )
            for factor in (0.25, 0.5, 0.9, 1.0, 1.1, 2.0, 4.0)
        ]
        assert (np.diff([outcome.is_in_time.sum() for outcome in closed]) >= 0).all()
        assert (np.diff([outcome.units_done for outcome in closed], axis=0) >= 0).all()
        assert (np.diff([outcome.train_s for outcome in closed]) >= 0).all()


@pytest.mark.parametrize("units", [1, 5])
@failure_hint("Name in the message an option that this deadline has, and that would help.")
def test_the_suggested_remedy_is_an_existing_option_that_helps(deadline: Any, units: int) -> None:
    """The suggestion to set `partial_work` is made only where it has an effect."""
    options = [field.name for field in fields(deadline) if field.init]
    assert ("deadline.partial_work=true" in deadline.suggest(units)) <= (
        "partial_work" in options and not deadline.partial_work and units > 1
    )


@failure_hint("Let the start-up message say that no client can be late here.")
def test_a_notice_appears_if_no_client_can_be_late(deadline: Any) -> None:
    overrides = (f"deadline={deadline.__module__.split('.')[-1]}", "device=instant", "label_noise=none")
    try:
        has_notice = any("device=instant" in line and "is late" in line for line in startup_notices(*overrides))
    except IncompatibleConfig as error:
        has_notice = "device=instant takes no time" in str(error)
    assert has_notice == deadline.bounded


@failure_hint("Keep everything that changes between rounds in the State dataclass.")
def test_a_restored_state_continues_identically(deadline: Any) -> None:
    ctx = context()
    signals = {signal: np.linspace(1.0, 2.0, COHORT) for signal in deadline.needs}
    no_clients = np.empty(0, dtype=np.int64)
    outcome = RoundOutcome(1, Selection(ctx.selected_ids), ctx.selected_ids, no_clients, signals, {}, 9.0)
    state = deadline.observe(deadline.init(POPULATION), outcome)
    assert deadline.announce(save_and_restore(state), ctx) == deadline.announce(state, ctx)


@failure_hint("Let at most as many clients arrive as `most` says.")
def test_at_most_the_stated_number_of_clients_arrives(deadline: Any) -> None:
    """All clients have different durations; deadlines that count arrivals wait for exactly this number."""
    for seed in range(20):
        ctx = context(seed, n_selected=deadline.cohort_size(COHORT))
        finish = ctx.expected.finish_s(UNITS)
        arrived = compute_outcome(
            ctx.expected, UNITS, close_round(deadline, ctx, finish), deadline.partial_work
        ).is_in_time.sum()
        assert arrived <= deadline.max_arrivals(COHORT)
        assert arrived == deadline.max_arrivals(COHORT) or deadline.announces
