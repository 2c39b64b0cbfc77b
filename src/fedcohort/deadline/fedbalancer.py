"""FedBalancer's deadline: maximises clients per second, between one epoch and all epochs (Shin et al. 2022).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601, Algorithms 3 and 4. Its sample selection is samples=fedbalancer; each works without the
other.

    T_i(e):  download + forward passes + e epochs on |OT_i| samples + upload, expected, for the selected clients
    DDL-E(t):  #{i: T_i <= t} / t
    limits:  dl = argmax DDL-E for e = 1,  dh = argmax DDL-E for e = E
    announce = close:  dl + (dh - dl) ddlr, ddlr from `maths/pace_control.py`

|OT_i| is what client i reported last (`loss_count`): its samples above the loss threshold, or those that it trained on
without a sample selection that keeps losses. It is all of its samples before its first arrival, and after a round in
which it was late. DDL-E decreases between two completions, so that its maximum is at a completion: the first of the
largest k / T_(k).

Departures from the paper:
- grid=null tries all completions. The paper tries seconds from t = 1 on (grid=1), whatever the unit of time.
- Epochs take as long as their samples. The paper's (|OT| - 1) / batch of a batch's time is zero for one sample.
- The paper does not say what |OT_i| a late client has. While the threshold falls the old one is too small, and rounds
  without arrivals would follow each other. The code adds ten seconds to all deadlines after such a round.
- dl and dh are sorted: the clients with the fastest training may have slow links.
- Deadlines are computed from the selected clients, as in the text. Alg. 4 defines N as the total number of clients.
- warmup=true follows the authors' code: until more than half of the clients, or more than 200, have arrived, the
  deadline is the mean duration of all clients' whole jobs and forward passes.
- The code takes the mean of the last five numbers of trained samples for |OT|, which is not implemented.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import EPOCH_TRAINING, TIMED_DEVICE, Requirement
from fedcohort.deadline.base import Deadline, PaceContext
from fedcohort.maths.pace_control import PaceControl, PaceControlledComponent, PaceState, pace_utility
from fedcohort.types import Ids, Population, RoundOutcome, Values

SECONDS_REQUIREMENT = Requirement(
    lambda facts: facts.components.device.in_seconds,
    "{option} compares deadlines in seconds, but {device} has times in an arbitrary unit: choose device=phones",
)
PACE_REQUIREMENT = Requirement(
    lambda facts: (
        not isinstance(facts.components.samples, PaceControlledComponent)
        or facts.components.samples.control.w == facts.components.deadline.control.w
    ),
    "{option} and {samples} share one controller in the paper, but samples.w differs from deadline.w, so that they "
    "adapt in different rounds: set both to the same value",
)
MAX_WARMUP_CLIENTS = 200  # clients that may have arrived during the warm-up, whatever the population


@dataclass(frozen=True)
class State:
    """State of FedBalancer's deadline that is kept between rounds.

    Attributes:
        pace: the state of the pace controller.
        n_train: training samples of each client, [n_clients].
        over: samples above the loss threshold, |OT_i|, as each client last reported them, [n_clients]; `n_train` for a
            client that has failed or was late since, NaN for one that never arrived.
    """

    pace: PaceState
    n_train: Ids
    over: Values


@dataclass(frozen=True)
class FedBalancer(Deadline[State]):
    """FedBalancer's deadline, between the most efficient deadlines for one local epoch and for all local epochs.

    Attributes:
        w: rounds between the controller's decisions.
        dss: the controller's step of ddlr, the position between these two deadlines in [0, 1].
        grid: seconds between the deadlines that are tried, None to try all completions.
        warmup: whether the first rounds have the deadline of the authors' code.
        partial_work: whether late clients do as many epochs as fit.
    """

    w: int
    dss: float
    grid: float | None
    warmup: bool
    partial_work: bool

    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "loss_sum", "n_used", "loss_count"})
    requirements: ClassVar[frozenset[Requirement]] = frozenset({TIMED_DEVICE, EPOCH_TRAINING})

    def __post_init__(self) -> None:
        _ = self.control  # checks the ranges
        ranges.number("grid", self.grid, "[1e-9, 1e12]", allow_null=True)
        ranges.flag("warmup", self.warmup)
        ranges.flag("partial_work", self.partial_work)

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({PACE_REQUIREMENT} if self.grid is None else {PACE_REQUIREMENT, SECONDS_REQUIREMENT})

    @property
    def control(self) -> PaceControl:
        return PaceControl(self.w, dss=self.dss)

    def init(self, population: Population) -> State:
        """Return the state before round 0, in which no client of `population` has reported its number of samples."""
        n_train = population.signals["n_train"]
        return State(self.control.first_state(), n_train, np.full(len(n_train), np.nan))

    def announce(self, state: State, ctx: PaceContext) -> float:
        """Return the deadline in virtual seconds after the broadcast, by Algorithm 4.

        `state` is the deadline's state; `ctx` has the expected times.
        """
        n_arrived_clients = int(np.isfinite(state.over).sum())
        if self.warmup and 2 * n_arrived_clients <= len(state.over) and n_arrived_clients <= MAX_WARMUP_CLIENTS:
            return mean_job_seconds(ctx)
        n_train, n_above_threshold = state.n_train[ctx.selected_ids], state.over[ctx.selected_ids]
        n_used = np.maximum(np.where(np.isnan(n_above_threshold), n_train, n_above_threshold), 1)
        epoch_s = ctx.expected.unit_s * n_used / np.maximum(n_train, 1)  # attackers may report 0 samples
        transfer_s = ctx.expected.query_s() + ctx.expected.up_s
        shortest_job_s, longest_job_s = sorted(
            deadline_of_most_clients_per_s(transfer_s + n_epochs * epoch_s, self.grid) for n_epochs in (1, ctx.units)
        )
        return shortest_job_s + (longest_job_s - shortest_job_s) * state.pace.ddlr

    def describe(self, state: State) -> Mapping[str, float]:
        """Return the metric ddlr in `state`, the position of the deadline between its two bounds, in [0, 1]."""
        return {"ddlr": state.pace.ddlr}

    def observe(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state after the controller's decision (Alg. 3), with the reports of the arrivals.

        Args:
            state: state before the round.
            outcome: arrivals and failures of the round.
        """
        signals, failed_ids = outcome.signals, outcome.failed
        pace_state = self.control.observe(
            state.pace, pace_utility(signals["loss_sum"], signals["n_used"], outcome.announced_s)
        )
        n_above_threshold = state.over.copy()
        n_above_threshold[outcome.clients] = signals["loss_count"]
        n_above_threshold[failed_ids] = np.where(
            np.isnan(n_above_threshold[failed_ids]), np.nan, state.n_train[failed_ids]
        )
        return replace(state, pace=pace_state, over=n_above_threshold)


def mean_job_seconds(ctx: PaceContext) -> float:
    """Return the mean seconds of all clients' whole jobs, with the forward passes of the selected clients.

    These passes are the queries of an aggregator, which every job has, and first losses, which only some of the
    selected clients compute.

    Args:
        ctx: the expected times of the round.
    """
    mean_job_s = float((ctx.expected_all.finish_s(ctx.units) - ctx.expected_all.infer_s).mean())
    return mean_job_s + float(ctx.expected.infer_s.mean()) if len(ctx.selected_ids) else mean_job_s


def deadline_of_most_clients_per_s(finish_s: Values, grid_step_s: float | None = None) -> float:
    """Return the deadline with the most completed clients per second, in seconds; 0 without clients.

    Of several such deadlines it is the shortest. On a grid only the deadlines next to a completion are tried, as later
    ones are longer for the same clients.

    Args:
        finish_s: seconds at which each client would be complete, [m].
        grid_step_s: seconds between the deadlines to try, from one on; None tries every completion.
    """
    if not len(finish_s):
        return 0.0
    sorted_finish_s = np.sort(finish_s)
    deadlines_s = sorted_finish_s
    if grid_step_s is not None:
        # the quotient was rounded
        grid_positions = np.ceil(sorted_finish_s / grid_step_s) + np.array([[-1.0], [0.0], [1.0]])
        deadlines_s = grid_step_s * np.unique(np.maximum(1.0, grid_positions))
    return float(deadlines_s[np.argmax(np.searchsorted(sorted_finish_s, deadlines_s, side="right") / deadlines_s)])
