"""PyramidFL: Oort's ranking; then the fast do more work, and who matters less uploads less (Li et al. 2022).

Li, Zeng, Zhang, Cao, "PyramidFL: A Fine-grained Client Selection Framework for Efficient Federated Learning" (MobiCom
2022), after the authors' code. More work and smaller uploads are dealt so that nobody waits.

    S = the m that are expected to be done first, of the overcommit x m that Oort chooses
    I_k = ||D_k|| |B_k| / 100 when k last trained, n_k before;   rank_k of S by I_k, 0 the largest
    rho_k = low + rank_k (high - low) / m:   each tensor of k's update is left out with chance rho_k
    c_k = seconds of k's whole job - rho_k seconds of its upload,   R = max c_k
    M_k = 1 + min(10, beta floor((R - c_k) / seconds of a unit) / E):   k does M_k E units of local work instead of E

A tensor is averaged over those who sent it (drop_agg=per_tensor), or counts as zero where it wasn't (zeros, the code).

Departures from the paper:
- its text was not available: all of this is its code's, and what the text may have else is missing;
- the code takes the norm of D_k - w, an update minus a model; here it is the norm of D_k, as it arrived;
- zeros in the mean shrink the model: per_tensor is the default;
- |B_k| and the losses are Oort's here; the code has a moving mean of losses over batches instead;
- E is the run's client.epochs, or client.steps; the code's are mini-batches, however its options are called;
- the code caps work at 5 passes over a client's data, or E units where that is more: passes=5. It is off, as with
  epochs for units and E = 5 it would leave nobody more to do;
- M_k E is rounded, where the code cuts; durations are those expected of E units and a whole upload, as in the code;
- those whom the larger cohort lets go are as never asked; the code books them as having trained, at the mean utility
  and norm of those who did. Neither charges anything for them;
- new clients are explored by speed, from the first round on, and their number is rounded down; the code explores by
  data size and duration (explore=size) after a first round of its own, drawn uniformly, and rounds it up;
- the draw's probabilities are those of the larger cohort;
- R is the slowest's of the cohort, a deadline or not: where that drops the late, their added work makes some late.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector, top
from fedcohort.selector.ranking import Ranking
from fedcohort.selector.ranking import State as Ranked
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values

FINISHED_UPDATE = Requirement(
    lambda run: not run.parts.codec.hooks,
    "{option} leaves tensors out of updates, and the codec trains each client for its own upload: choose codec=none, "
    "or a codec that works on finished updates (codec=subsample, codec=quant, or codec.mode=posthoc for codec=lowrank)",
)
ANY_WORK = Requirement(
    lambda run: not any("client.steps" in options for options in run.config["requires"].values()),
    "{option} gives some clients several times the local work, and {agg} stands for the same number of steps at every "
    "client: choose another aggregator, or selector.beta=0",
)
FITTING_WORK = Requirement(
    lambda run: run.parts.deadline.partial_work or not run.parts.deadline.announces,
    "{option} gives fast clients extra epochs, which {deadline} discards: set deadline.partial_work=true, or "
    "selector.beta=0",
)


MOST = 10.0  # times E that may be added
LIMIT = 1e150  # the product of two such numbers doesn't overflow


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        importance: I, [n_clients].
        ranked: with everybody's expected seconds.
    """

    ranked: Ranked
    importance: Values


@dataclass(frozen=True)
class PyramidFl(Ranking, Selector[State]):
    """The selector, with its options.

    Attributes:
        overcommit, low, high, beta, passes: see the module.
        drop_agg: "per_tensor" or "zeros".
        per_step: whether I_k is also divided by the steps that k took. The others are those of `Ranking`.
    """

    overcommit: float
    low: float
    high: float
    beta: float
    passes: int | None
    per_step: bool
    drop_agg: str

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("overcommit", self.overcommit, "[1, inf)")
        ranges.number("low", self.low, "[0, 1)")
        ranges.number("high", self.high, "[0, 1)")
        if self.high < self.low:
            raise ranges.refuse("high", f"a number in [low, 1), with low={self.low:g}", self.high)
        ranges.number("beta", self.beta, "[0, 1]")
        ranges.integer("passes", self.passes, "[1, inf)", optional=True)
        ranges.flag("per_step", self.per_step)
        ranges.choice("drop_agg", self.drop_agg, "per_tensor", "zeros")
        super().__post_init__()

    @property
    def needs(self) -> frozenset[str]:
        words = {"n_train", "expected_s", "expected_unit_s", "expected_up_s", "update_norm"}
        words |= {"pass_units"} if self.passes is not None else set()
        words |= {"steps"} if self.per_step else set()
        return (super().needs - {"duration"}) | words

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({FINISHED_UPDATE} if self.high > 0 else ()) | ({ANY_WORK} if self.beta > 0 else set())

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({CLEAN_LABELS} | ({FITTING_WORK} if self.beta > 0 else set()))

    def shortlist(self, cohort: int) -> int:
        return int(self.overcommit * cohort + 1e-9)

    def init(self, population: Population) -> State:
        seconds = population.signals["expected_s"].astype(np.float64)
        ranked = replace(self.start(population), seconds=seconds)
        return State(ranked, population.signals["n_train"].astype(np.float64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        wide = replace(ctx, cohort=self.shortlist(ctx.cohort))
        choice, ranked = self.rank(state.ranked, wide)
        chosen = top(-ctx.signals["expected_s"], choice.clients, ctx.cohort, ctx.rng)
        rho, M = np.zeros(ctx.n_clients), np.ones(ctx.n_clients)
        rho[chosen] = drop_rates(state.importance[chosen], self.low, self.high, ctx.cohort)
        unit_s = ctx.signals["expected_unit_s"][chosen]
        M[chosen] = multipliers(predict(ctx, chosen, rho[chosen]), unit_s, ctx.units, self.beta)
        parts = {"importance": state.importance, "drop": rho, "work": M}
        selection = replace(
            choice,
            clients=chosen,
            parts={**choice.parts, **parts},
            units=self._units(ctx, M),
            upload=1.0 - rho,
            zero_fill=self.drop_agg == "zeros",
        )
        return selection, replace(state, ranked=ranked)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        clients, signals = outcome.clients, outcome.signals
        count = signals["loss_count"]
        steps = np.maximum(np.nan_to_num(signals["steps"], nan=1.0), 1.0) if self.per_step else np.ones(len(clients))
        importance = state.importance.copy()
        importance[clients] = importances(signals["update_norm"], count, steps)
        facts = {
            "loss_count": count,
            "loss_squares": signals["loss_squares"],
            "duration": state.ranked.seconds[clients],
        }
        return None, State(self.learn(state.ranked, replace(outcome, signals=facts)), importance)

    def _units(self, ctx: RoundContext, M: Values) -> Ids:
        """M_k E, rounded, [n_clients]; not above `passes` passes unless E is."""
        units = np.floor(M * ctx.units + 0.5)
        if self.passes is not None:
            units = np.minimum(units, np.maximum(self.passes * ctx.signals["pass_units"], ctx.units))
        return np.asarray(np.maximum(units, 1.0).astype(np.int64))


def importances(norm: Values, count: Values, steps: Values) -> Values:
    """||D|| |B| / 100, over the steps taken; 0 where the numbers make no sense: such a client uploads least."""
    sane = np.isfinite(norm) & np.isfinite(count) & (norm >= 0) & (count >= 0)
    a, b = (np.minimum(np.where(sane, column, 0.0), LIMIT) for column in (norm, count))
    return np.asarray(a * b / 100.0 / steps)


def drop_rates(importance: Values, low: float, high: float, m: int) -> Values:
    """Return rho; equals share the better rank, which is the number of those above."""
    rank = (importance[None, :] > importance[:, None]).sum(1)
    return np.asarray(low + rank * (high - low) / m)


def predict(ctx: RoundContext, chosen: Ids, rho: Values) -> Values:
    """Return c, the virtual seconds that each of `chosen` is expected to take."""
    whole, up = ctx.signals["expected_s"][chosen], ctx.signals["expected_up_s"][chosen]
    return np.asarray(whole - rho * up)


def multipliers(seconds: Values, unit_s: Values, E: int, beta: float) -> Values:
    """M, for those who are expected to need `seconds` each."""
    room = seconds.max(initial=0.0) - seconds
    free = np.divide(room, unit_s, out=np.zeros(len(seconds)), where=unit_s > 0)
    return np.asarray(1.0 + np.minimum(MOST, beta * np.floor(free + 1e-9) / E))
