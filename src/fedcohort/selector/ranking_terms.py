"""The terms of Oort's ranking, each with its equation: utility, staleness, speed, and the shares of a cohort."""

import math
from collections.abc import Sequence

import numpy as np

from fedcohort.types import Ids, Values


def client_utilities(loss_counts: Values, loss_squares: Values) -> Values:
    """Return each client's utility, its number of samples times the root mean square of their losses, [n].

    Args:
        loss_counts: number of samples of each client whose losses were measured, [n].
        loss_squares: sum of the squared losses of these samples in nats^2, [n]. An invalid report gives NaN.
    """
    is_valid_report = np.isfinite(loss_counts) & np.isfinite(loss_squares) & (loss_counts >= 0) & (loss_squares >= 0)
    valid_loss_counts, valid_loss_squares = (np.where(is_valid_report, x, 0.0) for x in (loss_counts, loss_squares))
    # one root of the product would overflow first
    return np.where(is_valid_report, np.sqrt(valid_loss_counts) * np.sqrt(valid_loss_squares), np.nan)


def normalise_utilities(utilities: Values, utility_quantile: float) -> Values:
    """Return each client's utility, clipped at a quantile and scaled to about [0, 1], [n_clients]; NaN stays NaN.

    With the smallest utility a, the largest b and the quantile c: (min(utility, c) - .999 a) / max(b - .999 a, 1e-4).

    Args:
        utilities: utility of each client, [n_clients]; NaN if unknown.
        utility_quantile: quantile above which utilities are clipped, in [0, 1].
    """
    sorted_utilities = np.sort(utilities[np.isfinite(utilities)])
    if not len(sorted_utilities):
        return np.full(len(utilities), np.nan)
    max_utility = sorted_utilities[min(int(utility_quantile * len(sorted_utilities)), len(sorted_utilities) - 1)]
    lowest_utility = 0.999 * sorted_utilities[0]
    utility_range = max(sorted_utilities[-1] - lowest_utility, 1e-4)
    return np.asarray((np.minimum(utilities, max_utility) - lowest_utility) / utility_range)


def staleness_bonus(round: int, last_job_rounds: Ids) -> Values:
    """Return the bonus sqrt(.1 ln(round) / last_round) of each client, the larger the longer it is away, [n_clients].

    Args:
        round: number of the round, from 1.
        last_job_rounds: round in which each client last took part, from 1, [n_clients]; 0 for clients that never did,
            whose bonus is 0.
    """
    return np.where(last_job_rounds > 0, np.sqrt(0.1 * math.log(round) / np.maximum(last_job_rounds, 1)), 0.0)


def speed_factor(job_seconds: Values, T: float, penalty_exponent: float) -> Values:
    """Return Oort's factor for slow clients, (T / seconds)^exponent for durations above T, else 1, [n_clients].

    Args:
        job_seconds: duration of each client's job in seconds, [n_clients]; NaN counts as fast.
        T: preferred duration in seconds.
        penalty_exponent: exponent of the ratio of durations.
    """
    is_slow_client = job_seconds > T
    speed_factors = np.ones(len(job_seconds))
    speed_factors[is_slow_client] = (T / np.maximum(job_seconds[is_slow_client], 1e-4)) ** penalty_exponent
    return speed_factors


def count_explore_exploit(
    cohort: int, explore_share: float, n_untried: int, n_scored: int, rounding_draw: float | None = None
) -> tuple[int, int]:
    """Return how many clients of a cohort are new clients to explore, and how many are chosen by their scores.

    The share that explores is rounded down, but at least one client while it is above 0 and clients are untried. Small
    cohorts would otherwise never try them. More clients explore if too few have a score.

    Args:
        cohort: size of the cohort.
        explore_share: share of the cohort that explores, in [0, 1].
        n_untried: number of available clients that never trained.
        n_scored: number of available clients with a finite score.
        rounding_draw: uniform draw in [0, 1) that is added before the share is rounded down, so that the mean number is
            exact and may be 0; None for none.
    """
    min_places_to_explore = int(rounding_draw is None and explore_share > 0)
    n_places_to_explore = max(int(explore_share * cohort + (rounding_draw or 1e-9)), min_places_to_explore)
    n_explore = min(n_untried, cohort, max(n_places_to_explore, cohort - n_scored))
    return n_explore, min(n_scored, cohort - n_explore)


def candidates_above_cutoff(scores: Values, candidate_ids: Ids, n_exploit: int, min_score_ratio: float) -> Ids:
    """Return the ids of the candidates whose score is at least `min_score_ratio` times the `n_exploit`-th largest.

    Args:
        scores: score of each client, [n_clients].
        candidate_ids: ids of the clients to choose from, with finite scores.
        n_exploit: number of clients to be drawn by score; no candidate is returned if 0.
        min_score_ratio: least ratio of a client's score to the `n_exploit`-th largest one, in [0, 1].
    """
    if n_exploit == 0:
        return candidate_ids[:0]
    candidate_scores = scores[candidate_ids]
    return np.asarray(candidate_ids[candidate_scores >= min_score_ratio * np.sort(candidate_scores)[-n_exploit]])


def zero_other_weights(draw_weights: Values, clients: Ids) -> Values:
    """Return `draw_weights` [n_clients] with 0 for all clients whose ids are not in `clients`."""
    kept_weights = np.zeros(len(draw_weights))
    kept_weights[clients] = draw_weights[clients]
    return kept_weights


def expected_cohort_shares(weighted_draws: Sequence[tuple[Values, int]]) -> Values:
    """Return each client's expected share of the places of the cohort, [n_clients].

    Args:
        weighted_draws: the draw by score and the draw among new clients: each client's weight, [n_clients], and the
            number of places.
    """
    n_cohort_places = max(sum(n for _, n in weighted_draws), 1)
    exploit_shares, explore_shares = (n / n_cohort_places * w / max(float(w.sum()), 1e-300) for w, n in weighted_draws)
    return np.asarray(exploit_shares + explore_shares)
