"""The contract of a deadline: when the server closes a round, and how much work clients finish by then."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Bool

from fedcohort.component import Component, Requirement
from fedcohort.device.base import Timing
from fedcohort.types import Ids, Population, ReadOnly, RoundOutcome, Values

S = TypeVar("S")
LATE_CLIENTS_REQUIREMENT = Requirement(
    lambda facts: facts.timed,
    "{option} has no effect: it drops late clients, but work takes no time with {device}, so that no client is "
    "late (choose device=shifted_exponential, or deadline=wait_for_all)",
)
JOB_PHASES = ("down", "infer", "train", "up")  # of a client's job, in the order in which they happen


@dataclass(frozen=True)
class PaceContext(ReadOnly):
    """The information that the server has before a round's training.

    Attributes:
        round: number of the round, from 0.
        selected_ids: sorted ids of the selected clients, [m].
        units: units of local work (epochs or steps) of each client, unless a selector sets others.
        expected_all: expected timing of every client of the population, on all of its data.
        expected: expected timing of the selected clients.
    """

    round: int
    selected_ids: Ids
    units: int
    expected_all: Timing
    expected: Timing


class Deadline(Component, Protocol[S]):
    """A deadline: the rule by which the server closes a round.

    Attributes:
        partial_work: whether a client that cannot finish in time does as many units as fit, instead of being dropped.
        bounded: False where the server waits for all clients, so that none is late.
        announces: whether clients receive a deadline before they train.
        needs: names of the signals that the deadline reads.
        carries: whether late clients go on working and arrive in a later round, instead of being dropped.
        refills: whether another client starts at each arrival, and not only when the server steps.
        smaller_cohort_advice: how a user can make `cohort_size` smaller by an option of the deadline; "" if by none.
    """

    partial_work: bool

    @property
    def bounded(self) -> bool:
        return True

    @property
    def announces(self) -> bool:
        return True

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def carries(self) -> bool:
        return False

    @property
    def refills(self) -> bool:
        return False

    @property
    def smaller_cohort_advice(self) -> str:
        return ""

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({LATE_CLIENTS_REQUIREMENT} if self.bounded else ())

    def suggest(self, units: int) -> str:
        """Return the options that the user should change if no client is in time, as text; "" if none would help.

        Args:
            units: largest number of units of local work that was requested from a client.
        """
        return "" if self.partial_work or not self.announces or units < 2 else "set deadline.partial_work=true"

    def cohort_size(self, cohort: int) -> int:
        """Return how many clients are selected in a round where the run requests `cohort`: as many, or more."""
        return cohort

    def max_arrivals(self, cohort: int) -> int:
        """Return the largest number of clients that arrive in a round that requests `cohort`.

        More may arrive if several clients finish at the same second as the last one, or if the server waits for others.
        """
        return self.cohort_size(cohort)

    def free_places(self, cohort_size: int, n_in_flight: int) -> int:
        """Return how many of `cohort_size` clients may be selected while `n_in_flight` others work; all by default."""
        return cohort_size

    def staleness_limit(self) -> int | None:
        """Return the largest staleness of an update that is not dropped, in server steps; None without a limit."""
        return None

    def awaited_staleness(self) -> int | None:
        """Return the staleness of updates for which the server waits before it steps; None if it waits for none."""
        return None

    def arrival_limit(self, state: S) -> int | None:
        """Return the number of arrivals that end the round, given `state`; None if something else ends it."""
        return None

    def discount(self, staleness: Ids) -> Values:
        """Return the factor of each update's weight, [m]; `staleness` is its age in server steps, [m]."""
        return np.ones(len(staleness))

    @abstractmethod
    def init(self, population: Population) -> S:
        """Return the state before round 0; `population.cohort` is the number of clients that the run requests."""

    def announce(self, state: S, ctx: PaceContext) -> float:
        """Return the deadline for clients, in seconds after the broadcast (inf: none), from `state` and `ctx`."""
        return math.inf

    def close(self, state: S, finish_s: Values, announced_s: float) -> float:
        """Return when the server stops waiting, in virtual seconds after the broadcast; by default at the deadline.

        Args:
            state: the current state.
            finish_s: seconds at which each selected client would complete all units, [m]. If the deadline `carries`,
                those of earlier rounds whose jobs are in flight follow them.
            announced_s: deadline that the clients received, in seconds after the broadcast; inf without one.
        """
        return announced_s

    def describe(self, state: S) -> Mapping[str, float]:
        """Return numbers of `state` that are logged after each round, by the last part of the metric's name."""
        return {}

    def observe(self, state: S, outcome: RoundOutcome) -> S:
        """Return the state that follows `state`; `outcome` has arrivals and failures of the round that has ended."""
        return state


@dataclass(frozen=True)
class DeadlineOutcome(ReadOnly):
    """The clients that arrived before a round closed, the work that each completed, and its durations.

    Attributes:
        units_done: units (epochs or steps) completed by each selected client, 0 if it is late, [m].
        is_in_time: whether each client is in time, [m].
        finish_s: seconds until the server has each client's update after these units, [m].
        train_s: seconds until the round closed.
        phase_s: seconds of each of `JOB_PHASES` of a client's job, [m] by name; for a late client those of the whole
            job.
        units_asked: units of local work requested of each client, [m].
        announced_s: deadline that the clients received, in seconds after the broadcast; inf without one.
    """

    units_done: Ids
    is_in_time: Bool[np.ndarray, "n"]
    finish_s: Values
    train_s: float
    phase_s: Mapping[str, Values]
    units_asked: Ids
    announced_s: float = math.inf


def compute_outcome(
    timing: Timing,
    units_asked: "Ids | int",
    close_s: float,
    partial_work: bool,
    announced_s: float = math.inf,
    wall_time: Callable[[Values], Values] = lambda seconds: seconds,
) -> DeadlineOutcome:
    """Return which clients arrive before a round closes, and the work that each completes.

    A client that can complete its work by `close_s` does. Any other client completes as many units as fit with
    `partial_work`, and is dropped without it or if less than one unit fits. If a client is dropped, the server waits
    until `close_s`, so that the full deadline is charged, and otherwise until the last update.

    Args:
        timing: seconds of each phase of the clients' jobs.
        units_asked: units (epochs or steps) requested, of each client or of all.
        close_s: second after the broadcast at which the server closes the round. It decides which clients are late.
        partial_work: whether late clients do as many units as fit.
        announced_s: deadline that the clients received, in seconds after the broadcast, copied to the result; or inf.
        wall_time: not decreasing function from the clients' seconds of work, [m], to the seconds until the work is
            complete, which are more if a client is not ready in between.
    """
    full_job_s = wall_time(timing.finish_s(units_asked))
    late_client_units = _count_units_in_time(timing, units_asked, close_s, wall_time) if partial_work else 0
    units_done = np.where(full_job_s <= close_s, units_asked, late_client_units).astype(np.int64)
    is_in_time = units_done > 0
    finish_s = wall_time(timing.finish_s(units_done))
    round_end_s = float(finish_s[is_in_time].max(initial=0.0)) if is_in_time.all() else float(close_s)
    all_units_asked = np.broadcast_to(units_asked, units_done.shape)
    phase_s = _compute_phase_seconds(timing, np.where(is_in_time, units_done, all_units_asked), wall_time)
    return DeadlineOutcome(units_done, is_in_time, finish_s, round_end_s, phase_s, all_units_asked, announced_s)


def time_of_arrival(finish_s: Values, arrival_number: int) -> float:
    """Return the second of arrival number `arrival_number`, or of the last one if fewer are expected; 0 without any.

    Args:
        finish_s: seconds at which each client's update would arrive, [m].
        arrival_number: number of arrivals that are waited for.
    """
    n = min(arrival_number, len(finish_s))
    return float(np.partition(finish_s, n - 1)[n - 1]) if n else 0.0


def _compute_phase_seconds(timing: Timing, units_done: Ids, wall_time: Callable[[Values], Values]) -> dict[str, Values]:
    """Return the seconds of each of `JOB_PHASES`, [m], including those in which the client was away.

    The arguments are those of `compute_outcome`; `units_done` has the shape [m].
    """
    cumulative_work_s = np.cumsum([timing.down_s, timing.infer_s, units_done * timing.unit_s, timing.up_s], axis=0)
    phase_ends_s = np.array([np.zeros(len(units_done)), *(wall_time(work_s) for work_s in cumulative_work_s)])
    with np.errstate(invalid="ignore"):  # a client that never returns has one infinite phase and none after it
        phase_s = np.nan_to_num(np.diff(phase_ends_s, axis=0), posinf=np.inf)
    return dict(zip(JOB_PHASES, phase_s, strict=True))


def _count_units_in_time(
    timing: Timing, units_asked: "Ids | int", close_s: float, wall_time: Callable[[Values], Values]
) -> Ids:
    """Return the most units, of those requested, that each client completes by `close_s`, int64 [m].

    Bisection finds them: the completion time does not decrease with the units. A job may end 1e-9 units late.
    The arguments are those of `compute_outcome`.
    """
    feasible_units = np.zeros(len(timing.unit_s), dtype=np.int64)
    infeasible_units = feasible_units + units_asked + 1
    while (infeasible_units - feasible_units > 1).any():
        candidate_units = (feasible_units + infeasible_units) // 2
        is_in_time = wall_time(timing.finish_s(candidate_units)) <= close_s + 1e-9 * timing.unit_s
        infeasible_units = np.where(is_in_time, infeasible_units, np.maximum(candidate_units, feasible_units + 1))
        feasible_units = np.where(is_in_time, candidate_units, feasible_units)
    return feasible_units
