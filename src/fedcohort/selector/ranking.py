"""Oort's ranking of clients by utility, staleness and speed, with exploration of new clients; used by PyramidFL too.

    score_k = (norm(U_k) + staleness_k) speed_k

Each term's equation stands with its function in `ranking_terms.py`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import draw
from fedcohort.selector.ranking_terms import (
    candidates_above_cutoff,
    client_utilities,
    count_explore_exploit,
    expected_cohort_shares,
    normalise_utilities,
    speed_factor,
    staleness_bonus,
    zero_other_weights,
)
from fedcohort.types import Ids, Population, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """State of the ranking that is kept between rounds.

    Attributes:
        utilities: utility of each client, [n_clients]; NaN before its first round, or if its report is invalid.
        last_rounds: round in which each client last took part, from 1, [n_clients]; 0 if it never did.
        seconds: duration of each client's last job in seconds, [n_clients]; NaN before the first.
        n_participations: number of rounds in which each client took part, [n_clients].
        eps: current share of the cohort that explores clients that never took part.
        preferred: preferred duration of a job, in the unit of `preferred_in`.
        utility_sums: sum of the arrived clients' utilities in each round since `window` rounds before the last change
            of `preferred`, [rounds].
    """

    utilities: Values
    last_rounds: Ids
    seconds: Values
    n_participations: Ids
    eps: float
    preferred: float
    utility_sums: Values


@dataclass(frozen=True)
class RankingOptions:
    """Oort's ranking of clients with its options; the selectors Oort and PyramidFL inherit from this class.

    Attributes:
        eps, eps_decay, eps_min: share of the cohort that explores new clients, its factor per round, its lower bound.
        preferred: preferred duration of a job; slower clients are penalised.
        preferred_in: unit of `preferred` and `step`: a "percentile" of all durations, or "seconds".
        penalty: exponent of the penalty on clients slower than the preferred duration.
        clip: quantile at which utilities are clipped.
        cutoff: clients are drawn among those with at least this share of the score of the last place in the cohort.
        pacer: rule that adapts the preferred duration every `window` rounds: it grows where the utility falls
            ("paper"), grows where the utility stays and shrinks where it rises by five times its value ("code"), or
            stays ("none").
        window: rounds between two decisions of the pacer.
        step: change of the preferred duration per decision.
        explore: weights of the draw among clients that never trained: expected "speed", or number of samples ("size").
        cap: number of arrivals after which a client is no longer selected by score; None for no limit.
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
        for option_name in ("eps", "eps_min", "clip", "cutoff"):
            ranges.number(option_name, getattr(self, option_name), "[0, 1]")
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
        signal_names = {"loss_count", "loss_squares", "duration"}
        if self.explore == "speed" or self.preferred_in == "percentile":
            signal_names.add("expected_s")
        return frozenset(signal_names | {"n_train"} if self.explore == "size" else signal_names)

    def initial_state(self, population: Population) -> State:
        """Return the ranking's state before round 0, for the clients of `population`."""
        K = population.n_clients
        zero_counts, nan_by_client = np.zeros(K, np.int64), np.full(K, np.nan)
        return State(nan_by_client, zero_counts, nan_by_client, zero_counts, self.eps, self.preferred, np.empty(0))

    def select_by_score(self, state: State, ctx: RoundContext) -> tuple[Selection, State]:
        """Draw the cohort of round `ctx` by Oort's scores; return it, and the state with the round's share `eps`."""
        eps = state.eps if ctx.is_refill else max(self.eps_decay * state.eps, self.eps_min)
        preferred_job_s = self._find_preferred_duration(state, ctx)
        utilities = normalise_utilities(state.utilities, self.clip)
        staleness = staleness_bonus(ctx.round + 1, state.last_rounds)
        speed_factors = speed_factor(state.seconds, preferred_job_s, self.penalty)
        scores = (utilities + staleness) * speed_factors
        available_ids = ctx.available
        untried_ids = available_ids[state.last_rounds[available_ids] == 0]
        has_reached_cap = state.n_participations >= (np.inf if self.cap is None else self.cap)
        scored_ids = available_ids[np.isfinite(scores[available_ids]) & ~has_reached_cap[available_ids]]
        rounding_draw, n_chosen = ctx.rng.random() if len(ctx.in_flight) else None, min(ctx.cohort, len(available_ids))
        n_explore, n_exploit = count_explore_exploit(n_chosen, eps, len(untried_ids), len(scored_ids), rounding_draw)
        exploited_ids = candidates_above_cutoff(scores, scored_ids, n_exploit, self.cutoff)
        exploit_weights = zero_other_weights(np.maximum(scores, 1e-12), exploited_ids)
        explore_weights = zero_other_weights(self._make_exploration_weights(state, ctx, preferred_job_s), untried_ids)
        weighted_draws = ((exploit_weights, n_exploit), (explore_weights, n_explore))
        chosen_ids = np.concatenate([draw(w, np.flatnonzero(w), n, ctx.rng) for w, n in weighted_draws])
        unchosen_ids = np.setdiff1d(available_ids, chosen_ids, assume_unique=True)
        extra_ids = draw(np.ones(ctx.n_clients), unchosen_ids, ctx.cohort - len(chosen_ids), ctx.rng)
        clients = np.sort(np.concatenate([chosen_ids, extra_ids]))
        score_terms = {"utility": utilities, "staleness": staleness, "system": speed_factors}
        return Selection(clients, scores, score_terms, expected_cohort_shares(weighted_draws)), replace(state, eps=eps)

    def store_client_reports(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state with the reports of the arrivals in `outcome`, and an adapted preferred duration."""
        arrived_ids, signals = outcome.clients, outcome.signals
        new_utilities = client_utilities(signals["loss_count"], signals["loss_squares"])
        stored_arrays = (state.utilities, state.last_rounds, state.seconds, state.n_participations)
        utilities, last_rounds, job_seconds, n_participations = (values.copy() for values in stored_arrays)
        utilities[arrived_ids], job_seconds[arrived_ids] = new_utilities, np.maximum(signals["duration"], 0.0)
        last_rounds[arrived_ids] = outcome.round + 1
        n_participations[arrived_ids] += 1
        utility_sums = np.append(state.utility_sums, np.nansum(new_utilities))
        preferred_duration, utility_sums = self._adapt_preferred_duration(state.preferred, utility_sums)
        return State(utilities, last_rounds, job_seconds, n_participations, state.eps, preferred_duration, utility_sums)

    def _find_preferred_duration(self, state: State, ctx: RoundContext) -> float:
        """Return the preferred duration of a job in round `ctx` in seconds; infinite for the 100th percentile."""
        if self.preferred_in == "seconds":
            return state.preferred
        if state.preferred >= 100:
            return math.inf
        job_seconds = np.sort(np.where(np.isnan(state.seconds), ctx.signals["expected_s"], state.seconds))
        return float(job_seconds[min(int(len(job_seconds) * state.preferred / 100), len(job_seconds) - 1)])

    def _make_exploration_weights(self, state: State, ctx: RoundContext, T: float) -> Values:
        """Return the weights of the draw among clients that never trained, positive, [n_clients].

        Args:
            state: the ranking's state.
            ctx: the round's context, with expected durations or data set sizes.
            T: preferred duration of a job, in seconds.
        """
        if self.explore == "speed":
            return np.asarray(1.0 / np.maximum(ctx.signals["expected_s"], 1e-4))
        data_weights: Values = np.maximum(ctx.signals["n_train"].astype(float), 1e-12)
        if self.preferred_in == "percentile":
            data_weights = np.maximum(data_weights * speed_factor(ctx.signals["expected_s"], T, self.penalty), 1e-12)
        return data_weights

    def _adapt_preferred_duration(self, preferred_duration: float, utility_sums: Values) -> tuple[float, Values]:
        """Return the preferred duration after the rule `pacer` has compared the utilities of the last two windows.

        Args:
            preferred_duration: the previous preferred duration, in the unit of `preferred_in`.
            utility_sums: sum of the clients' utilities in each round, from `window` rounds before the last comparison
                on, [rounds]. There is a decision only after 2 x `window` rounds.

        Returns:
            The preferred duration in the unit of `preferred_in`, and the sums to keep, [rounds].
        """
        window = self.window
        if len(utility_sums) < 2 * window:
            return preferred_duration, utility_sums
        earlier_utility_sum, latest_utility_sum = float(utility_sums[:window].sum()), float(utility_sums[window:].sum())
        max_preferred_duration = 100.0 if self.preferred_in == "percentile" else math.inf
        is_utility_stable = abs(latest_utility_sum - earlier_utility_sum) <= 0.1 * earlier_utility_sum
        is_longer_by_pacer = {
            "paper": earlier_utility_sum > latest_utility_sum,
            "code": is_utility_stable,
            "none": False,
        }
        if is_longer_by_pacer[self.pacer]:
            preferred_duration = min(max_preferred_duration, preferred_duration + self.step)
        elif self.pacer == "code" and abs(latest_utility_sum - earlier_utility_sum) >= 5 * earlier_utility_sum:
            preferred_duration = max(min(self.step, preferred_duration), preferred_duration - self.step)
        return preferred_duration, utility_sums[window:]
