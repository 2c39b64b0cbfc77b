"""FEEL scheduling: a draw that trades a client's weight in the gradient against its latency (Ren et al. 2020).

Ren, He, Wen, Yu, Huang, Guo, "Scheduling for Cellular Federated Edge Learning with Importance and Channel Awareness"
(2020).

    minimise   rho sum q_k T_k + (1 - rho) sum a_k^2 / q_k   over sum q_k = 1,   a_k = n_k/n ||g_k||
    q_k = a_k sqrt((1 - rho) / (rho T_k + lambda)),   lambda > -rho min T the only root of sum q_k = 1
    S = m clients drawn one after the other, y_1 .. y_m, each in proportion to q among those left

agg=unbiased weighs the updates by Des Raj's ordered estimator: with w_k = n_k/n and q^(j) the chances at the j-th draw,

    t_j = sum_{i<j} w_{y_i} g_{y_i} + w_{y_j} g_{y_j} / q^(j)_{y_j},   g = (1/m) sum_j t_j,   E g = sum_k w_k g_k

Departures from the paper:
- the formula is derived from the objective above; how the paper draws several clients was not available to us, nor a
  value of rho: T is divided by its mean and a by its sum, so that rho has no unit. Both terms are 1 then where chances
  are a and all T alike, however many clients there are; with a^2 divided by its mean, as was tried, the second would be
  their number squared, and rho would do nothing;
- with several local steps there is no one gradient: g_k is the full-batch gradient at w_t, asked of everybody; the
  norm of the client's last update, for no poll, is importance=update_lag (their mean for clients without one);
- T_k is the expected time of a whole job: what it will really take is not known yet;
- agg=fedavg, the default, leaves the weights to the aggregator, as all other selectors do; unbiased weights need not
  sum to 1. Where selected clients fail, those of the others are raised to the same sum; where those who arrive have no
  samples, no weights of theirs have that sum, and none are advised;
- redraw=resolve solves for q anew among those left before each draw;
- over available clients only; a norm that is zero or not finite counts as 1e-12 of the largest, and all alike where
  every one is;
- a client that failed three times in a row is withheld for a while (`round/backoff.py`), and isn't polled: where nobody
  trains on its data, its gradient stays large.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Selector, answers, draw, successive
from fedcohort.types import Advice, Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

FLOOR = 1e-12  # of the largest importance: everybody can be drawn


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        norm: of each client's last update, NaN before.
        weights: Des Raj's of the present cohort, 0 for others.
    """

    norm: Values
    weights: Values


@dataclass(frozen=True)
class Feel(Selector[State]):
    """The selector, with its options.

    Attributes:
        rho: how much latency counts.
        importance: "grad" or "update_lag".
        redraw: "renormalise" or "resolve".
        agg: "fedavg" or "unbiased".
    """

    rho: float
    importance: str
    redraw: str
    agg: str

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("rho", self.rho, "[0, 1)")
        ranges.choice("importance", self.importance, "grad", "update_lag")
        ranges.choice("redraw", self.redraw, "renormalise", "resolve")
        ranges.choice("agg", self.agg, "fedavg", "unbiased")

    @property
    def advises(self) -> bool:
        return self.agg == "unbiased"

    @property
    def absolute(self) -> bool:
        return self.advises

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"n_train", "expected_s", "grad_norm" if self.importance == "grad" else "update_norm"})

    def init(self, population: Population) -> State:
        K = population.n_clients
        return State(np.full(K, np.nan), np.zeros(K))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return (Probe("grad_norm", ctx.available),) if self.importance == "grad" else ()

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        here, n = ctx.available, ctx.signals["n_train"].astype(float)
        norm = (
            answers(probes, "grad_norm").dense(ctx.n_clients) if self.importance == "grad" else fill_lagged(state.norm)
        )
        w = n / max(n[here].sum(), 1.0)
        a, T, q = (np.full(ctx.n_clients, np.nan) for _ in range(3))
        seconds = ctx.signals["expected_s"][here]
        T[here] = over_mean(seconds)
        a[here] = shares(w[here] * norm[here])
        q[here] = chances(a[here], T[here], self.rho)
        order, at_draw = self._draw(a, T, q, ctx)
        weights = np.zeros(ctx.n_clients)
        weights[order] = des_raj(w[order], at_draw)
        parts = {"importance": a, "latency": T}
        return Selection(np.sort(order), q, parts, q), replace(state, weights=weights)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[Advice | None, State]:
        norm = state.norm
        if self.importance == "update_lag":
            norm = norm.copy()
            norm[outcome.clients] = outcome.signals["update_norm"]
        state = replace(state, norm=norm)
        weights = state.weights[outcome.clients]
        if self.agg == "fedavg" or not weights.any():
            return None, state
        return Advice(weights=weights * (state.weights.sum() / weights.sum()), absolute=True), state

    def _draw(self, a: Values, T: Values, q: Values, ctx: RoundContext) -> tuple[Ids, Values]:
        """The clients in the order of drawing, and each one's chance at its own draw."""
        m = min(ctx.cohort, len(ctx.available))
        if self.redraw == "renormalise":
            order = successive(q, ctx.available, m, ctx.rng)
            left = (
                float(q[np.setdiff1d(ctx.available, order, assume_unique=True)].sum()) + np.cumsum(q[order][::-1])[::-1]
            )
            return order, q[order] / left
        order, at_draw, rest = np.empty(0, np.int64), np.empty(0), ctx.available
        for _ in range(m):
            q = np.zeros(ctx.n_clients)
            q[rest] = chances(shares(a[rest]), over_mean(T[rest]), self.rho)
            client = draw(q, rest, 1, ctx.rng)
            order, at_draw, rest = np.append(order, client), np.append(at_draw, q[client]), rest[rest != client]
        return order, at_draw


def fill_lagged(norm: Values) -> Values:
    """The last known norms; their mean for a client without a finite one, 1 where there is none at all."""
    known = np.isfinite(norm)
    largest = norm[known].max(initial=0.0)
    if not largest > 0:
        return np.ones(len(norm))
    return np.where(known, norm, largest * (norm[known] / largest).mean())  # a plain sum could overflow


def shares(raw: Values) -> Values:
    """Importances over their sum, none below 1e-12 of the largest; all alike where none is positive and finite."""
    good = np.isfinite(raw) & (raw > 0)
    if not good.any():
        return np.full(len(raw), 1 / max(len(raw), 1))
    relative = np.maximum(np.where(good, raw, 0.0) / raw[good].max(), FLOOR)
    return np.asarray(relative / relative.sum())


def over_mean(seconds: Values) -> Values:
    """Times over their mean."""
    return seconds / max(seconds.mean(), 1e-300) if len(seconds) else seconds


def chances(a: Values, T: Values, rho: float) -> Values:
    """The chances q of being drawn, which sum to 1.

    Args:
        a: what each client would add, positive, [n].
        T: how long each takes, in seconds, positive, [n].
        rho: in [0, 1).
    """
    if not len(a):
        return np.empty(0)
    T = np.where(a > 1e-9 * a.max(), T, T.max())  # nobody is chosen for its speed alone, without a usable norm
    q = _chances(a, _costs(T, rho), rho, _root(a, T, rho))
    return np.asarray(q / q.sum())


def multiplier(a: Values, T: Values, rho: float) -> float:
    """lambda, which may be negative."""
    return _root(a, T, rho) - rho * float(T.min())


def _root(a: Values, T: Values, rho: float) -> float:
    """s = lambda + rho min T, by bisection; it is positive, and its digits would be lost in lambda's.

    s >= (1 - rho) a_j^2 with j the fastest client, whose q_j alone would be 1 there; s <= (1 - rho) (sum a)^2, which
    it is where all T are equal.
    """
    low, high = (1 - rho) * float(a[np.argmin(T)]) ** 2, (1 - rho) * float(a.sum()) ** 2
    cost = _costs(T, rho)
    for _ in range(200):
        middle = (low + high) / 2
        total = float(_chances(a, cost, rho, middle).sum())
        if abs(total - 1) < 1e-12:
            break
        low, high = (middle, high) if total > 1 else (low, middle)
    return (low + high) / 2


def _costs(T: Values, rho: float) -> Values:
    """What latency adds to s."""
    cost: Values = rho * (T - T.min())
    return cost


def _chances(a: Values, cost: Values, rho: float, s: float) -> Values:
    q = cost + s
    np.divide(1 - rho, q, out=q)
    np.sqrt(q, out=q)
    q *= a
    return q


def des_raj(w: Values, at_draw: Values) -> Values:
    """The coefficient of each g in (1/m) sum t_j, in the order of drawing: w_i ((m - i) + 1 / q^(i)) / m, i from 1.

    Args:
        w: of the m clients drawn.
        at_draw: their chances, each at its own draw.
    """
    m = len(w)
    return w * (np.arange(m - 1, -1, -1) + 1.0 / at_draw) / max(m, 1)
