"""FedBalancer's deadline by hand: peaks of clients a second, and what moves them."""

from dataclasses import replace

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.deadline.base import PaceContext, compute_outcome
from fedcohort.deadline.fedbalancer import SECONDS_REQUIREMENT, FedBalancer, State, deadline_of_most_clients_per_s
from fedcohort.device.base import Timing
from fedcohort.errors import OptionError
from fedcohort.types import Population, RoundOutcome, Selection
from round_harness import run_without_files

E = 5
ZEROS = np.zeros(3)
SAMPLES_AND_DEADLINE = ("samples=fedbalancer", "samples.w=1", "samples.lss=0.3", "deadline=fedbalancer", "deadline.w=1")
FEW_EVALUATIONS = ("eval.every=100", "eval.clients_every=0", "checkpoint.every=1000")


def fedbalancer(w: int = 20, dss: float = 0.05, grid: float | None = None, warmup: bool = False) -> FedBalancer:
    return FedBalancer(w, dss, grid, warmup, partial_work=True)


def population(n: tuple[int, ...] = (10, 10, 10)) -> Population:
    return Population(len(n), 6, 3, {"n_train": np.array(n)})


def context(epoch: tuple[float, ...] = (1.0, 2.0, 8.0), infer: float = 0.0) -> PaceContext:
    """A second of travel, half of it each way."""
    half_s = np.full(len(epoch), 0.5)
    timing = Timing(half_s, half_s * 2 * infer, np.array(epoch), half_s)
    return PaceContext(3, np.arange(len(epoch)), E, timing, timing)


def make_loss_outcome(
    clients: tuple[int, ...], n_over_threshold: tuple[float, ...], loss_sum: float = 1.0
) -> RoundOutcome:
    """Those who arrived, each with ten samples of so many nats together."""
    ids, ones = np.array(clients, dtype=np.int64), np.ones(len(clients))
    signals = {"loss_count": np.array(n_over_threshold, dtype=float), "loss_sum": loss_sum * ones, "n_used": 10 * ones}
    return RoundOutcome(0, Selection(ids), ids, ids[:0], signals, {}, 9.0, 1.0)


@pytest.mark.parametrize(
    ("finish", "exact", "by_seconds"),
    [
        ((3, 4, 10), 4, 4),  # 1/3, 2/4, 3/10 clients a second
        ((3.2, 4.1, 10), 4.1, 5),  # .3125, .488, .3; by seconds 1/4, 2/5, ..., 3/10
        ((2, 4, 6), 2, 2),  # half a client a second at each: the first
        ((5, 5, 5), 5, 5),
        ((0.2, 0.3, 0.9), 0.3, 1),  # 5, 6.7, 3.3; all are done by the first second
        ((5.5, 5.6), 5.6, 6),  # no client is done by the fifth
    ],
)
def test_the_deadline_of_most_clients_per_second_by_hand(
    finish: tuple[float, ...], exact: float, by_seconds: float
) -> None:
    assert deadline_of_most_clients_per_s(np.array(finish, dtype=float)) == exact
    assert deadline_of_most_clients_per_s(np.array(finish, dtype=float), 1.0) == by_seconds


def test_without_clients_there_is_no_peak() -> None:
    assert deadline_of_most_clients_per_s(np.empty(0)) == deadline_of_most_clients_per_s(np.empty(0), 1.0) == 0


def test_the_exact_peak_is_no_worse_than_any_grid_s() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        finish = rng.exponential(20.0, 12)

        def rate(t: float, finish: np.ndarray = finish) -> float:
            return float((finish <= t).sum()) / t

        assert (
            rate(deadline_of_most_clients_per_s(finish))
            >= max(rate(deadline_of_most_clients_per_s(finish, grid)) for grid in (0.1, 1.0, 7.0)) - 1e-12
        )


@pytest.mark.parametrize("grid", [0.1, 0.3, 0.7, 1 / 3, 2.5])
def test_a_grid_s_peak_is_the_best_of_all_its_deadlines(grid: float) -> None:
    """All deadlines of the grid up to the last completion; completions are on the grid and between its points."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        finish = np.maximum(0.1, rng.exponential(9.0, 6).round(1))
        deadlines_s = grid * np.arange(1, np.ceil(finish.max() / grid) + 2)
        n_finished = (finish <= deadlines_s[:, None]).sum(1)
        assert deadline_of_most_clients_per_s(finish, grid) == deadlines_s[np.argmax(n_finished / deadlines_s)]


def test_a_fine_grid_takes_no_longer() -> None:
    """10^14 deadlines up to the last completion: what is tried is as many as there are clients."""
    assert deadline_of_most_clients_per_s(np.array([3.0, 4.0, 100.0]), 1e-12) == pytest.approx(4.0, rel=1e-9)


@pytest.mark.parametrize(("ddlr", "deadline"), [(1.0, 11.0), (0.5, 7.0), (0.0, 3.0)])
def test_the_deadline_is_between_one_epoch_and_all(ddlr: float, deadline: float) -> None:
    """T(1) = (2, 3, 9): 2/3 a second at 3. T(5) = (6, 11, 41): 2/11 at 11. The deadline is 3 + 8 ddlr."""
    part = fedbalancer(w=1, dss=1 - ddlr)
    state = part.init(population())
    for loss in (2.0, 1.0):  # less is learned than before: one step down
        state = part.observe(state, make_loss_outcome((0, 1, 2), (10, 10, 10), loss))
    assert state.pace.ddlr == ddlr
    assert part.announce(state, context()) == pytest.approx(deadline)


def test_fewer_samples_above_the_threshold_take_less_time() -> None:
    """Clients 0 and 2 told of 5 and 0 of 10 samples: epochs of .5, 2 and, for one sample at least, .8 s.

    T(1) = (1.5, 3, 1.8): 2 of 1.8 s is the most; T(5) = (3.5, 11, 5): 2 of 5 s.
    """
    part = fedbalancer()
    state = part.observe(part.init(population()), make_loss_outcome((0, 2), (5, 0)))
    assert part.announce(state, context()) == pytest.approx(5.0)
    assert np.isnan(state.over[1])


@pytest.mark.filterwarnings("error")
def test_the_deadline_is_finite_if_clients_report_no_samples() -> None:
    """Attackers may report that they have no samples: each then counts with one, whose epoch takes 1, 2 or 8 s."""
    deadline = fedbalancer()
    reported, honest = (deadline.announce(deadline.init(population((n, n, n))), context()) for n in (0, 10))
    assert reported == honest


def test_a_late_client_uses_all_of_its_samples_again() -> None:
    """Two clients report one sample: T(5) = (1.5, 2, 41); after a round without arrivals it is (6, 11, 41) again."""
    part = fedbalancer()
    state = part.observe(part.init(population()), make_loss_outcome((0, 1), (1, 1)))
    assert part.announce(state, context()) == pytest.approx(2.0)
    late_outcome = replace(make_loss_outcome((), ()), failed=np.arange(3))
    after = part.observe(state, late_outcome)
    assert part.announce(after, context()) == pytest.approx(11.0)
    assert after.pace == state.pace
    assert np.isnan(after.over[2]), "who never arrived isn't known"


def test_rounds_without_arrivals_end_at_the_deadline() -> None:
    """While the threshold falls, reported numbers of samples are too small; a round without arrivals restores them."""
    run = run_without_files(*SAMPLES_AND_DEADLINE, "client.lr=1", "rounds=60", *FEW_EVALUATIONS)
    arrived = np.array([report.metrics["round/arrived"] for report in run.reports[1:]])
    assert (arrived == 0).any()
    empty = arrived == 0
    assert not (empty[:-2] & empty[1:-1] & empty[2:]).any()


def test_samples_and_deadline_are_controlled_by_the_same_rounds() -> None:
    """With equal options ltr is 1 - ddlr, rounds without arrivals or not."""
    run = run_without_files(*SAMPLES_AND_DEADLINE, "deadline.dss=0.3", "client.lr=1", "rounds=40", *FEW_EVALUATIONS)
    names = ("round/arrived", "samples/ltr", "deadline/ddlr")
    arrived, ltr, ddlr = (np.array([report.metrics[name] for report in run.reports[1:]]) for name in names)
    assert (arrived == 0).any()
    assert len(set(ltr.tolist())) > 2
    assert ltr == pytest.approx(1 - ddlr)


def test_the_pass_over_all_samples_takes_time() -> None:
    """With one more second for all clients T(5) = (7, 12, 42), and two of them finish within 12 s."""
    part = fedbalancer()
    assert part.announce(part.init(population()), context(infer=1.0)) == pytest.approx(12.0)


def test_the_bounds_are_sorted() -> None:
    """A far and a fast client: T(1) = (10, 11) peaks at 11, T(9) = (10, 91) at 10."""
    selected = np.arange(2)
    timing = Timing(np.array([10.0, 1.0]), ZEROS[:2], np.array([0.0, 10.0]), ZEROS[:2])
    ctx = PaceContext(0, selected, 9, timing, timing)
    part = fedbalancer(w=1, dss=1.0)
    state = part.init(population((10, 10)))
    assert part.announce(state, ctx) == 11.0
    for loss in (2.0, 1.0):
        state = part.observe(state, make_loss_outcome((0, 1), (10, 10), loss))
    assert part.announce(state, ctx) == 10.0


def test_warm_up_as_released_until_more_than_half_are_known() -> None:
    """T = mean(6, 11, 41) = 58/3, and a second's look; two of three known end it."""
    part = fedbalancer(warmup=True)
    state = part.observe(part.init(population()), make_loss_outcome((0,), (10,)))
    ctx = context(infer=1.0)
    assert part.announce(state, replace(ctx, expected_all=context().expected)) == pytest.approx(58 / 3 + 1)
    # An aggregator's probe is a second of every client's whole job, and the same second of those selected.
    assert part.announce(state, ctx) == pytest.approx(58 / 3 + 1)
    state = part.observe(state, make_loss_outcome((1,), (10,)))
    assert part.announce(state, context()) == pytest.approx(11.0)


@for_all(
    "n_clients, n_measured, is_warm_up",
    [
        (4, 2, True),
        (4, 3, False),
        (5, 2, True),
        (5, 3, False),
        (1000, 200, True),
        (1000, 201, False),
        (402, 201, False),
    ],
)
def test_the_warm_up_ends_when_most_clients_are_measured(n_clients: int, n_measured: int, is_warm_up: bool) -> None:
    """More than half of the clients, or more than 200 of them, end it; then the deadline is by |OT|, a sample each."""
    part = fedbalancer(warmup=True)
    n_over_threshold = np.full(n_clients, np.nan)
    n_over_threshold[:n_measured] = 1.0
    state = State(part.control.first_state(), np.full(n_clients, 10), n_over_threshold)
    assert (part.announce(state, context()) == pytest.approx(58 / 3)) == is_warm_up


@pytest.mark.filterwarnings("error")
def test_an_empty_cohort_still_gets_a_deadline() -> None:
    no_clients = Timing(*(np.empty(0) for _ in range(4)))
    ctx = replace(context(infer=1.0), selected_ids=np.empty(0, dtype=np.int64), expected=no_clients)
    part = fedbalancer(warmup=True)
    assert part.announce(part.init(population()), ctx) == pytest.approx(58 / 3)


def test_only_epochs_that_end_before_the_deadline_count() -> None:
    """20 s less 2 down, 3 up and 1 of looking leave 14: three epochs of 4, none of 15."""
    ones = np.ones(2)
    timing = Timing(2 * ones, ones, np.array([4.0, 15.0]), 3 * ones)
    assert compute_outcome(timing, E, 20.0, fedbalancer().partial_work).units_done.tolist() == [3, 0]


@pytest.mark.parametrize(("option", "wrong"), [("w", 0), ("dss", 2.0), ("grid", 0.0), ("grid", 1e-320), ("warmup", 1)])
def test_option_ranges_are_checked(option: str, wrong: float) -> None:
    with pytest.raises(OptionError, match=option):
        replace(fedbalancer(), **{option: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(("grid", "recommends_seconds"), [(None, False), (1.0, True)])
def test_a_grid_in_seconds_recommends_a_device_timed_in_seconds(grid: float | None, recommends_seconds: bool) -> None:
    assert (SECONDS_REQUIREMENT in fedbalancer(grid=grid).recommendations) is recommends_seconds
