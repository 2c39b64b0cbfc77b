"""Oort's ranking of clients, which PyramidFL narrows down: utility, staleness and speed, with exploration beside them.

score = (normalise(U) + staleness) slowness;   each term's equation stands with its function below
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import draw
from fedcohort.types import Ids, Population, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        utility: U, NaN before the first round or where it is nonsense.
        last: 1-based, 0 before.
        seconds: t, NaN before.
        rounds: how often a client arrived.
        preferred: T, in the unit of `preferred_in`.
        sums: of U, round by round, since the round that is W before the pacer's last decision.
    """

    utility: Values
    last: Ids
    seconds: Values
    rounds: Ids
    eps: float
    preferred: float
    sums: Values


@dataclass(frozen=True)
class Ranking:
    """Oort's ranking with its options, for selectors to inherit.

    Attributes:
        eps, eps_decay, eps_min: share of exploration.
        preferred: T in "percentile" or "seconds" (`preferred_in`).
        penalty: alpha.
        clip: the quantile c.
        cutoff: share of the n-th score.
        pacer: "paper", "code" or "none", with `window` rounds (W) and `step` (Delta) in the unit of T.
        explore: "speed" or "size".
        cap: rounds a client, or null.
    """

    eps: float
    eps_decay: float
    eps_min: float
    preferred: float
    preferred_in: str
    penalty: float
    clip: float
    cutoff: float
    pacer: str
    window: int
    step: float
    explore: str
    cap: int | None

    def __post_init__(self) -> None:
        for name in ("eps", "eps_min", "clip", "cutoff"):
            ranges.number(name, getattr(self, name), "[0, 1]")
        ranges.number("eps_decay", self.eps_decay, "(0, 1]")
        ranges.number("preferred", self.preferred, "(0, inf)")
        ranges.choice("preferred_in", self.preferred_in, "percentile", "seconds")
        if self.preferred_in == "percentile" and self.preferred > 100:
            raise ranges.refuse("preferred", "a number in (0, 100] with preferred_in=percentile", self.preferred)
        ranges.number("penalty", self.penalty, "[0, inf)")
        ranges.choice("pacer", self.pacer, "paper", "code", "none")
        ranges.integer("window", self.window, "[1, inf)")
        ranges.number("step", self.step, "(0, inf)")
        ranges.choice("explore", self.explore, "speed", "size")
        ranges.integer("cap", self.cap, "[1, inf)", optional=True)

    @property
    def needs(self) -> frozenset[str]:
        words = {"loss_count", "loss_squares", "duration"}
        if self.explore == "speed" or self.preferred_in == "percentile":
            words.add("expected_s")
        return frozenset(words | {"n_train"} if self.explore == "size" else words)

    def start(self, population: Population) -> State:
        K = population.n_clients
        never, nan = np.zeros(K, np.int64), np.full(K, np.nan)
        return State(nan, never, nan, never, self.eps, self.preferred, np.empty(0))

    def rank(self, state: State, ctx: RoundContext) -> tuple[Selection, State]:
        """Return the cohort with its scores, and the state with the share of exploration decayed."""
        eps = max(self.eps_decay * state.eps, self.eps_min)
        T = self._preferred_s(state, ctx)
        utility, bonus = normalise(state.utility, self.clip), staleness(ctx.round + 1, state.last)
        system = slowness(state.seconds, T, self.penalty)
        scores = (utility + bonus) * system
        here = ctx.available
        new = here[state.last[here] == 0]
        capped = state.rounds >= (np.inf if self.cap is None else self.cap)
        known = here[np.isfinite(scores[here]) & ~capped[here]]
        n_explore, n_exploit = shares(min(ctx.cohort, len(here)), eps, len(new), len(known))
        exploited = only(np.maximum(scores, 1e-12), admit(scores, known, n_exploit, self.cutoff))
        explored = only(self._promise(state, ctx, T), new)
        chosen = np.concatenate(
            [draw(w, np.flatnonzero(w), n, ctx.rng) for w, n in ((exploited, n_exploit), (explored, n_explore))]
        )
        filling = draw(
            np.ones(ctx.n_clients), np.setdiff1d(here, chosen, assume_unique=True), ctx.cohort - len(chosen), ctx.rng
        )
        clients = np.sort(np.concatenate([chosen, filling]))
        parts = {"utility": utility, "staleness": bonus, "system": system}
        probability = mixture(((exploited, n_exploit), (explored, n_explore)))
        return Selection(clients, scores, parts, probability), replace(state, eps=eps)

    def learn(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state after the reports of the clients that arrived, and the pacer's decision."""
        arrived, signals = outcome.clients, outcome.signals
        U = utilities(signals["loss_count"], signals["loss_squares"])
        utility, last, seconds, rounds = (
            column.copy() for column in (state.utility, state.last, state.seconds, state.rounds)
        )
        utility[arrived], seconds[arrived] = U, np.maximum(signals["duration"], 0.0)
        last[arrived] = outcome.round + 1
        rounds[arrived] += 1
        preferred, sums = self._pace(state.preferred, np.append(state.sums, np.nansum(U)))
        return State(utility, last, seconds, rounds, state.eps, preferred, sums)

    def _preferred_s(self, state: State, ctx: RoundContext) -> float:
        """T in seconds; the 100th percentile is no limit."""
        if self.preferred_in == "seconds":
            return state.preferred
        if state.preferred >= 100:
            return math.inf
        seconds = np.sort(np.where(np.isnan(state.seconds), ctx.signals["expected_s"], state.seconds))
        return float(seconds[min(int(len(seconds) * state.preferred / 100), len(seconds) - 1)])

    def _promise(self, state: State, ctx: RoundContext, T: float) -> Values:
        """Weights of the draw among clients that have not trained yet, positive, [n_clients]."""
        if self.explore == "speed":
            speed: Values = 1.0 / np.maximum(ctx.signals["expected_s"], 1e-4)
            return speed
        size: Values = np.maximum(ctx.signals["n_train"].astype(float), 1e-12)
        if self.preferred_in == "percentile":
            size = np.maximum(size * slowness(ctx.signals["expected_s"], T, self.penalty), 1e-12)
        return size

    def _pace(self, preferred: float, sums: Values) -> tuple[float, Values]:
        """T after the pacer's decision, which is due when 2 W sums are there; W of them stay for the next."""
        W = self.window
        if len(sums) < 2 * W:
            return preferred, sums
        before, now = float(sums[:W].sum()), float(sums[W:].sum())
        most = 100.0 if self.preferred_in == "percentile" else math.inf
        relax = {"paper": before > now, "code": abs(now - before) <= 0.1 * before, "none": False}
        if relax[self.pacer]:
            preferred = min(most, preferred + self.step)
        elif self.pacer == "code" and abs(now - before) >= 5 * before:
            preferred = max(min(self.step, preferred), preferred - self.step)
        return preferred, sums[W:]


def utilities(count: Values, squares: Values) -> Values:
    """U = n sqrt(sum of loss^2 / n); NaN where the two numbers can't be a count and a sum of squares."""
    sane = np.isfinite(count) & np.isfinite(squares) & (count >= 0) & (squares >= 0)
    n, s = (np.where(sane, column, 0.0) for column in (count, squares))
    return np.where(sane, np.sqrt(n) * np.sqrt(s), np.nan)  # n s would overflow first


def normalise(utility: Values, clip: float) -> Values:
    """norm(min(U, c)): 0 to 1, [n_clients], NaN where U is."""
    known = np.sort(utility[np.isfinite(utility)])
    if not len(known):
        return np.full(len(utility), np.nan)
    c = known[min(int(clip * len(known)), len(known) - 1)]
    low = 0.999 * known[0]
    norm: Values = (np.minimum(utility, c) - low) / max(known[-1] - low, 1e-4)
    return norm


def staleness(round: int, last: Ids) -> Values:
    """sqrt(.1 ln R / last), 0 for a client that never trained; round: R, from 1."""
    bonus: Values = np.sqrt(0.1 * math.log(round) / np.maximum(last, 1))
    return np.where(last > 0, bonus, 0.0)


def slowness(seconds: Values, T: float, penalty: float) -> Values:
    """Return (T / t)^penalty where t > T, else 1."""
    slow = seconds > T
    out = np.ones(len(seconds))
    out[slow] = (T / np.maximum(seconds[slow], 1e-4)) ** penalty
    return out


def shares(m: int, eps: float, n_new: int, n_known: int) -> tuple[int, int]:
    """Return how many to explore and to exploit: eps m but at least one, or more where too few are known.

    Rounded down to none, eps m of a small cohort would leave clients untried for ever.
    """
    wanted = max(int(eps * m + 1e-9), 1) if eps else 0
    n_explore = min(n_new, m, max(wanted, m - n_known))
    return n_explore, min(n_known, m - n_explore)


def admit(scores: Values, known: Ids, count: int, cutoff: float) -> Ids:
    """Return those of `known` whose score is at least `cutoff` times the count-th largest."""
    if count == 0:
        return known[:0]
    best: Ids = known[scores[known] >= cutoff * np.sort(scores[known])[-count]]
    return best


def only(weights: Values, clients: Ids) -> Values:
    """Return the `weights` of the clients, 0 for all others."""
    out = np.zeros(len(weights))
    out[clients] = weights[clients]
    return out


def mixture(halves: Sequence[tuple[Values, int]]) -> Values:
    """Return each client's chance of one place of the cohort: by weight in a half, by places between them."""
    places = max(sum(n for _, n in halves), 1)
    first, second = (n / places * w / max(float(w.sum()), 1e-300) for w, n in halves)
    return np.asarray(first + second)
