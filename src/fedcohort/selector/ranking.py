"""Oort's ranking of clients by utility, staleness and speed, with exploration of new clients; used by PyramidFL too.

    score_k = (norm(U_k) + staleness_k) speed_k

Each term's equation stands with its function below.
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
    """State of the ranking that is kept between rounds.

    Attributes:
        utility: U_k, NaN before a client's first round or where its report is invalid, [n_clients].
        last, rounds: round of the last participation (from 1, 0 before), and number of participations, [n_clients].
        seconds: t_k, duration of the last participation, NaN before, [n_clients].
        eps: share of the cohort that explores.
        preferred: T, in the unit of `preferred_in`.
        sums: sum of U over the arrivals of each round, since W rounds before the pacer's last decision.
    """

    utility: Values
    last: Ids
    seconds: Values
    rounds: Ids
    eps: float
    preferred: float
    sums: Values


@dataclass(frozen=True)
class RankingOptions:
    """Oort's ranking of clients with its options; the selectors Oort and PyramidFL inherit it.

    Attributes:
        eps, eps_decay, eps_min: share of the cohort that explores, its factor per round, and its lower bound.
        preferred, preferred_in: T, the preferred duration, as a "percentile" of all durations or in "seconds".
        penalty: alpha, exponent of the penalty on slow clients.
        clip: quantile at which utilities are clipped.
        cutoff: share of the n-th largest score from which on clients are admitted.
        pacer: when T is adapted: "paper", "code" or "none".
        window, step: W, rounds between the pacer's decisions, and Delta, the change of T per decision.
        explore: weights of the draw among new clients: "speed" or "size".
        cap: number of rounds after which a client is no longer exploited, or None.
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
            raise ranges.range_error("preferred", "a number in (0, 100] with preferred_in=percentile", self.preferred)
        ranges.number("penalty", self.penalty, "[0, inf)")
        ranges.choice("pacer", self.pacer, "paper", "code", "none")
        ranges.integer("window", self.window, "[1, inf)")
        ranges.number("step", self.step, "(0, inf)")
        ranges.choice("explore", self.explore, "speed", "size")
        ranges.integer("cap", self.cap, "[1, inf)", allow_null=True)

    @property
    def needs(self) -> frozenset[str]:
        signals = {"loss_count", "loss_squares", "duration"}
        if self.explore == "speed" or self.preferred_in == "percentile":
            signals.add("expected_s")
        return frozenset(signals | {"n_train"} if self.explore == "size" else signals)

    def initial_state(self, population: Population) -> State:
        """Return the ranking's state before round 0."""
        K = population.n_clients
        zero_counts, nan = np.zeros(K, np.int64), np.full(K, np.nan)
        return State(nan, zero_counts, nan, zero_counts, self.eps, self.preferred, np.empty(0))

    def select_by_score(self, state: State, ctx: RoundContext) -> tuple[Selection, State]:
        """Return the cohort drawn by Oort's scores, and the state with a share of exploration lower by `eps_decay`."""
        eps = max(self.eps_decay * state.eps, self.eps_min)
        preferred_s = self._preferred_s(state, ctx)
        utility, staleness = (normalise_utilities(state.utility, self.clip), staleness_bonus(ctx.round + 1, state.last))
        speed = speed_factor(state.seconds, preferred_s, self.penalty)
        scores = (utility + staleness) * speed
        available = ctx.available
        untried_ids = available[state.last[available] == 0]
        is_capped = state.rounds >= (np.inf if self.cap is None else self.cap)
        scored_ids = available[np.isfinite(scores[available]) & ~is_capped[available]]
        n_explore, n_exploit = split_cohort(min(ctx.cohort, len(available)), eps, len(untried_ids), len(scored_ids))
        exploit_weights = mask_weights(
            np.maximum(scores, 1e-12), clients_above_cutoff(scores, scored_ids, n_exploit, self.cutoff)
        )
        explore_weights = mask_weights(self._exploration_weights(state, ctx, preferred_s), untried_ids)
        weighted_draws = ((exploit_weights, n_exploit), (explore_weights, n_explore))
        chosen_ids = np.concatenate([draw(w, np.flatnonzero(w), n, ctx.rng) for w, n in weighted_draws])
        filler_ids = draw(
            np.ones(ctx.n_clients),
            np.setdiff1d(available, chosen_ids, assume_unique=True),
            ctx.cohort - len(chosen_ids),
            ctx.rng,
        )
        clients = np.sort(np.concatenate([chosen_ids, filler_ids]))
        score_terms = {"utility": utility, "staleness": staleness, "system": speed}
        probability = expected_cohort_shares(weighted_draws)
        return Selection(clients, scores, score_terms, probability), replace(state, eps=eps)

    def store_reports(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state after the reports of the arrivals, and after the pacer's decision."""
        arrived_ids, signals = outcome.clients, outcome.signals
        new_utilities = client_utilities(signals["loss_count"], signals["loss_squares"])
        utility, last_rounds, seconds, rounds = (
            column.copy() for column in (state.utility, state.last, state.seconds, state.rounds)
        )
        utility[arrived_ids], seconds[arrived_ids] = new_utilities, np.maximum(signals["duration"], 0.0)
        last_rounds[arrived_ids] = outcome.round + 1
        rounds[arrived_ids] += 1
        preferred, sums = self._adapt_preferred(state.preferred, np.append(state.sums, np.nansum(new_utilities)))
        return State(utility, last_rounds, seconds, rounds, state.eps, preferred, sums)

    def _preferred_s(self, state: State, ctx: RoundContext) -> float:
        """Return the preferred duration T in seconds; infinite for the 100th percentile."""
        if self.preferred_in == "seconds":
            return state.preferred
        if state.preferred >= 100:
            return math.inf
        seconds = np.sort(np.where(np.isnan(state.seconds), ctx.signals["expected_s"], state.seconds))
        return float(seconds[min(int(len(seconds) * state.preferred / 100), len(seconds) - 1)])

    def _exploration_weights(self, state: State, ctx: RoundContext, T: float) -> Values:
        """Return the weights of the draw among clients that never trained, positive, [n_clients]."""
        if self.explore == "speed":
            speed_weights: Values = 1.0 / np.maximum(ctx.signals["expected_s"], 1e-4)
            return speed_weights
        size_weights: Values = np.maximum(ctx.signals["n_train"].astype(float), 1e-12)
        if self.preferred_in == "percentile":
            size_weights = np.maximum(size_weights * speed_factor(ctx.signals["expected_s"], T, self.penalty), 1e-12)
        return size_weights

    def _adapt_preferred(self, preferred: float, utility_sums: Values) -> tuple[float, Values]:
        """Return T after the pacer's decision, due once there are 2 W sums of utilities, and the last W sums."""
        window = self.window
        if len(utility_sums) < 2 * window:
            return preferred, utility_sums
        old_sum, new_sum = float(utility_sums[:window].sum()), float(utility_sums[window:].sum())
        max_preferred = 100.0 if self.preferred_in == "percentile" else math.inf
        should_relax = {"paper": old_sum > new_sum, "code": abs(new_sum - old_sum) <= 0.1 * old_sum, "none": False}
        if should_relax[self.pacer]:
            preferred = min(max_preferred, preferred + self.step)
        elif self.pacer == "code" and abs(new_sum - old_sum) >= 5 * old_sum:
            preferred = max(min(self.step, preferred), preferred - self.step)
        return preferred, utility_sums[window:]


def client_utilities(loss_counts: Values, loss_squares: Values) -> Values:
    """Return U = n sqrt(sum of loss^2 / n), [n]; NaN if the reports cannot be a count and a sum of squares."""
    is_valid = np.isfinite(loss_counts) & np.isfinite(loss_squares) & (loss_counts >= 0) & (loss_squares >= 0)
    valid_counts, valid_squares = (np.where(is_valid, column, 0.0) for column in (loss_counts, loss_squares))
    return np.where(is_valid, np.sqrt(valid_counts) * np.sqrt(valid_squares), np.nan)  # n s would overflow first


def normalise_utilities(utility: Values, clip: float) -> Values:
    """Return (min(U, c) - .999 min U) / max(max U - .999 min U, 1e-4), [n_clients]; NaN if U is NaN."""
    sorted_utilities = np.sort(utility[np.isfinite(utility)])
    if not len(sorted_utilities):
        return np.full(len(utility), np.nan)
    clip_value = sorted_utilities[min(int(clip * len(sorted_utilities)), len(sorted_utilities) - 1)]
    low_utility = 0.999 * sorted_utilities[0]
    normalised: Values = (np.minimum(utility, clip_value) - low_utility) / max(sorted_utilities[-1] - low_utility, 1e-4)
    return normalised


def staleness_bonus(round: int, last_round: Ids) -> Values:
    """Return sqrt(.1 ln R / last), [n_clients]; 0 if last = 0, for clients that never trained. R is `round`."""
    bonuses: Values = np.sqrt(0.1 * math.log(round) / np.maximum(last_round, 1))
    return np.where(last_round > 0, bonuses, 0.0)


def speed_factor(seconds: Values, T: float, penalty: float) -> Values:
    """Return Oort's factor for slow clients, (T / t)^penalty if the duration t exceeds T, else 1, [n_clients]."""
    is_slow = seconds > T
    factors = np.ones(len(seconds))
    factors[is_slow] = (T / np.maximum(seconds[is_slow], 1e-4)) ** penalty
    return factors


def split_cohort(cohort: int, eps: float, n_untried: int, n_scored: int) -> tuple[int, int]:
    """Return how many clients of a cohort are new clients to explore, and how many are exploited.

    eps m clients explore, rounded down, but at least one while eps > 0 and untried clients are left: small cohorts
    would otherwise never try them. More explore where fewer than the others can be exploited.

    Args:
        cohort: size of the cohort.
        eps: share that explores.
        n_untried: available clients that never trained.
        n_scored: available clients with a finite score.
    """
    n_wanted = max(int(eps * cohort + 1e-9), 1) if eps else 0
    n_explore = min(n_untried, cohort, max(n_wanted, cohort - n_scored))
    return n_explore, min(n_scored, cohort - n_explore)


def clients_above_cutoff(scores: Values, candidate_ids: Ids, n_exploit: int, cutoff: float) -> Ids:
    """Return the clients with a score of at least `cutoff` times the count-th largest among `candidate_ids`."""
    if n_exploit == 0:
        return candidate_ids[:0]
    admitted_ids: Ids = candidate_ids[scores[candidate_ids] >= cutoff * np.sort(scores[candidate_ids])[-n_exploit]]
    return admitted_ids


def mask_weights(weights: Values, clients: Ids) -> Values:
    """Return `weights` [n_clients] with 0 for all clients that are not in `clients`."""
    masked_weights = np.zeros(len(weights))
    masked_weights[clients] = weights[clients]
    return masked_weights


def expected_cohort_shares(weighted_draws: Sequence[tuple[Values, int]]) -> Values:
    """Return each client's expected share of the places of the cohort, [n_clients].

    Each half's places are shared by its weights.

    Args:
        weighted_draws: weights [n_clients] and number of places, of exploitation and of exploration.
    """
    n_places = max(sum(n for _, n in weighted_draws), 1)
    exploit_shares, explore_shares = (n / n_places * w / max(float(w.sum()), 1e-300) for w, n in weighted_draws)
    return np.asarray(exploit_shares + explore_shares)
