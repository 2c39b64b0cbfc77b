"""FedBalancer's deadline: as short as most clients per second make it, between one epoch and all (Shin et al. 2022).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients"
(MobiSys 2022), Algorithms 3 and 4. Its sample selection is `samples=fedbalancer`; either works without the other.

    T_i(e) = download + forward passes + e epochs on |OT_i| samples + upload      expected, i selected
    DDL-E(t) = #{i: T_i <= t} / t,      dl = argmax DDL-E for e = 1,   dh = argmax DDL-E for e = E
    announce = close = dl + (dh - dl) ddlr,      ddlr: `maths/pace_control.py`

|OT_i| is what client i last told (`loss_count`): samples above its threshold, or those that it trained on where no
sample selection keeps losses; all of its samples before it first arrives, and after a round that it was late in.
Between two completions DDL-E falls, so its maximum is at a completion: the first of those k / T_(k) that are largest.

Departures from the paper:
- null for `grid` tries all completions; the paper tries seconds from t = 1 on (grid=1), whatever the unit of time;
- epochs take as long as their samples do: the paper's (|OT| - 1) / batch of a batch's time is nothing for one sample;
- the paper doesn't say what becomes of the |OT_i| of who is late: while the threshold falls it is too small, and rounds
  that nobody is in time for would follow each other (the code adds ten seconds to all deadlines after such a round);
- dl and dh are put into order, as the fastest clients may have far to travel;
- deadlines are of the selected, as in the text; Alg. 4's N is said to be their total.

warmup=true does as the authors' code: until more than half of the clients, or 200, have arrived, the deadline is the
mean of everybody's whole job and forward passes. Not done here: the code takes the mean of the last five numbers of
samples trained for |OT|.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import EPOCHS, TIMED_DEVICE, Requirement
from fedcohort.deadline.base import Deadline, PaceContext
from fedcohort.maths.pace_control import PaceControl, Paced, PaceState, utility
from fedcohort.types import Ids, Population, RoundOutcome, Values

DEVICE_SECONDS = Requirement(
    lambda run: run.parts.device.in_seconds,
    "{option} goes by seconds of a clock, and those of {device} are multiples of what a sample takes, in a unit of "
    "choice",
)
ONE_PACE = Requirement(
    lambda run: not isinstance(run.parts.samples, Paced) or run.parts.samples.control.w == run.parts.deadline.control.w,
    "{option} has one controller with {samples} in the paper, but samples.w differs from deadline.w, so that each "
    "decides in rounds of its own",
)
MANY = 200  # clients of whom an arrival is known end the warm-up, however many there are


@dataclass(frozen=True)
class State:
    """What the server knows of the pace.

    Attributes:
        n_train: samples that each client has, [K].
        over: |OT_i| as it was last told, or n_train of who was late since, [K]; NaN for a client that never arrived.
    """

    pace: PaceState
    n_train: Ids
    over: Values


@dataclass(frozen=True)
class FedBalancer(Deadline[State]):
    """The deadline, with its options.

    Attributes:
        w: rounds between the controller's decisions.
        dss: its step of ddlr.
        grid: seconds between the deadlines that are tried, null for exactly all that count.
        warmup: whether it waits until many clients are known.
        partial_work: late clients do as many epochs as fit.
    """

    w: int
    dss: float
    grid: float | None
    warmup: bool
    partial_work: bool

    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "loss_sum", "n_used", "loss_count"})
    requirements: ClassVar[frozenset[Requirement]] = frozenset({TIMED_DEVICE, EPOCHS})

    def __post_init__(self) -> None:
        _ = self.control  # checks the ranges
        ranges.number("grid", self.grid, "(0, inf)", optional=True)
        ranges.flag("warmup", self.warmup)
        ranges.flag("partial_work", self.partial_work)

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({ONE_PACE} if self.grid is None else {ONE_PACE, DEVICE_SECONDS})

    @property
    def control(self) -> PaceControl:
        return PaceControl(self.w, dss=self.dss)

    def init(self, population: Population) -> State:
        """Nobody has arrived."""
        n = population.signals["n_train"]
        return State(self.control.start(), n, np.full(len(n), np.nan))

    def announce(self, state: State, ctx: PaceContext) -> float:
        """Return the deadline in seconds (Alg. 4)."""
        known = int(np.isfinite(state.over).sum())
        if self.warmup and 2 * known <= len(state.over) and known <= MANY:
            return whole_job(ctx)
        n, over = state.n_train[ctx.selected], state.over[ctx.selected]
        epoch = ctx.expected.unit * np.maximum(np.where(np.isnan(over), n, over), 1) / n
        travel = ctx.expected.probe() + ctx.expected.up
        low, high = sorted(peak(travel + epochs * epoch, self.grid) for epochs in (1, ctx.units))
        return low + (high - low) * state.pace.ddlr

    def close(self, state: State, finish: Values, announced: float) -> float:
        """What was announced."""
        return announced

    def describe(self, state: State) -> Mapping[str, float]:
        """Return ddlr."""
        return {"ddlr": state.pace.ddlr}

    def observe(self, state: State, outcome: RoundOutcome) -> State:
        """Control the ratio (Alg. 3), and remember what those who arrived tell of their samples."""
        told, late = outcome.signals, outcome.failed
        pace = self.control.observe(state.pace, utility(told["loss_sum"], told["n_used"], outcome.announced_s))
        over = state.over.copy()
        over[outcome.clients] = told["loss_count"]
        over[late] = np.where(np.isnan(over[late]), np.nan, state.n_train[late])
        return replace(state, pace=pace, over=over)


def whole_job(ctx: PaceContext) -> float:
    """Return the mean seconds of everybody's whole job, with those of the selected clients' forward passes.

    These are an aggregator's probes, which everybody's job has as well, and looks, which some of those selected take.
    """
    whole = float((ctx.expected_all.finish(ctx.units) - ctx.expected_all.infer).mean())
    return whole + float(ctx.expected.infer.mean()) if len(ctx.selected) else whole


def peak(finish: Values, grid: float | None = None) -> float:
    """Return the deadline that most clients a second are done by; the shortest of several, 0 for nobody.

    Of a grid's deadlines only the first after a completion can be it: the next are longer, for no more clients.

    Args:
        finish: seconds at which each would be done, [m].
        grid: seconds between the deadlines to try, from one on; null tries every completion.
    """
    if not len(finish):
        return 0.0
    ends = np.sort(finish)
    tried = ends
    if grid is not None:
        steps = np.ceil(ends / grid) + np.array([[-1.0], [0.0], [1.0]])  # the quotient was rounded
        tried = grid * np.unique(np.maximum(1.0, steps))
    done = np.searchsorted(ends, tried, side="right")
    return float(tried[np.argmax(done / tried)])
