"""Off-policy evaluation of a selector: what its cohorts would have gained, each for one step, in logged rounds.

    estimand:  theta = 1/T sum_t E[g_t(S)],  S drawn by the other selector in the state of round t of the logged run
    ratio:  rho_t = P(S_t; other selector) / P(S_t; run's selector),  S_t the run's cohort as a set
    inverse propensity:  1/T sum_t rho_t g_t
    self-normalised:  sum_t rho_t g_t / sum_t rho_t
    doubly robust:  1/T sum_t (E[q_t(S)] + rho_t (g_t - q_t(S_t)))
    difference to the run's cohorts:  1/T sum_t (E[q_t(S)] - E_run[q_t(S)] + (rho_t - 1) (g_t - q_t(S_t)))
    effective sample size:  (sum_t rho_t)^2 / sum_t rho_t^2

g_t is the gain of round t: the change of a metric in the step, positive if it improves. q_t is a ridge regression of
the gain, fitted on the other runs. Given the past, rho_t g_t - E[g_t(S)] has mean zero, so that the terms of a sum are
uncorrelated. docs/policy_evaluation.md has the assumptions, and how often the intervals cover.

Doubly robust: Jiang and Li, ICML 2016, arXiv 1511.03722, for one step. Self-normalised: Swaminathan and Joachims,
NeurIPS 2015.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.maths.successive_draws import CohortDistribution
from fedcohort.record.run_log import LoggedRound, RunLog
from fedcohort.results.difference import Mean, estimate_mean
from fedcohort.types import Values

CohortDistributions = tuple[CohortDistribution, CohortDistribution]  # of the run's selector and of the other one
DOUBLY_ROBUST_DIFFERENCE = "doubly robust difference"
ESTIMATORS = ("inverse propensity", "self-normalised", "doubly robust", DOUBLY_ROBUST_DIFFERENCE)
# whose 95 % intervals contain the true value in 90 % or more of the simulated samples
ESTIMATORS_WITH_INTERVAL = frozenset(ESTIMATORS) - {"inverse propensity"}
MIN_EFFECTIVE_SIZE = 20.0  # rounds; below it no estimate is given
MAX_UNCOVERED_SHARE = 0.01  # share of the other selector's cohorts that the run could not have drawn
N_DRAWN_COHORTS = 256  # drawn from each selector in each round
RIDGE_PENALTIES = np.logspace(-2, 4, 13)


@dataclass(frozen=True)
class ComparedRound:
    """A round of a run with the probabilities of its cohort under two selectors.

    Attributes:
        run: number of the run, from 0.
        gain: change of the metric in the step, positive if it improves.
        log_ratio: log of the ratio of the cohort's probabilities, -inf if the other selector cannot draw it.
        uncovered_share: share of the other selector's cohorts that the run's selector cannot draw; NaN if unknown.
        summary: summary of the run's cohort, [d] (`summarise_cohorts`).
        run_summary: mean summary of the cohorts of the run's selector, [d]; NaN where `uncovered_share` is.
        other_summary: mean summary of the other selector's cohorts, [d].
    """

    run: int
    gain: float
    log_ratio: float
    uncovered_share: float
    summary: Values
    run_summary: Values
    other_summary: Values


@dataclass(frozen=True)
class PolicyEvaluation:
    """The estimates of a selector's mean gain in the rounds of other runs.

    Attributes:
        n_rounds: number of rounds that count.
        effective_size: effective sample size of their probability ratios, in rounds.
        uncovered_share: mean share of the other selector's cohorts that the run's selector cannot draw.
        logged_gain: mean gain of the runs' own cohorts.
        estimates: mean gain with its 95 % interval, by the name of the estimator; empty if there is a `reason`.
        reason: why there are no estimates; "" if there are.
        excluded: number of excluded rounds by reason.
    """

    n_rounds: int
    effective_size: float
    uncovered_share: float
    logged_gain: Mean
    estimates: Mapping[str, Mean] = field(default_factory=dict)
    reason: str = ""
    excluded: Mapping[str, int] = field(default_factory=dict)


def compare_round(
    log: RunLog, round: LoggedRound, policies: CohortDistributions, history: "RunHistory", rng: np.random.Generator
) -> ComparedRound:
    """Return the round with the probabilities of its cohort under two selectors.

    Args:
        log: log of the run.
        round: the logged round.
        policies: distribution of the cohort by the run's selector, and by the other one.
        history: the rounds before this one, with the gains of the run.
        rng: random generator that draws further cohorts of both selectors.
    """
    run_policy, other_policy = policies
    cohorts = other_policy.draw_cohorts(N_DRAWN_COHORTS, rng)
    uncovered_share, cohort_summary = math.nan, history.summarise_cohorts(log, round.t, round.cohort[None])[0]
    run_summary = np.full(len(cohort_summary), math.nan)
    if run_policy.has_all_weights:
        uncovered_share = 1 - float(np.mean([run_policy.can_draw_cohort(cohort) for cohort in cohorts]))
        run_summary = history.summarise_cohorts(log, round.t, run_policy.draw_cohorts(N_DRAWN_COHORTS, rng)).mean(0)
    return ComparedRound(
        run=history.run,
        gain=history.gains[round.t],
        log_ratio=other_policy.log_probability(round.cohort) - run_policy.log_probability(round.cohort),
        uncovered_share=uncovered_share,
        summary=cohort_summary,
        run_summary=run_summary,
        other_summary=history.summarise_cohorts(log, round.t, cohorts).mean(axis=0),
    )


class RunHistory:
    """The facts that are known about a run's clients before each of its rounds.

    Attributes:
        run_number: number of the run, from 0.
        gains: change of the metric in each round, positive if it improves; NaN if it was not measured, [rounds].
        metric_levels: value of the metric before each round, [rounds].
    """

    def __init__(self, run_number: int, run_log: RunLog, metric_levels: Values, metric_sign: int) -> None:
        """Start before the first round of the run with the number `run_number` and the log `run_log`.

        `metric_levels` has the metric by step, [rounds + 1], NaN if it was not measured. `metric_sign` is -1 if smaller
        values are better.
        """
        self.run, self.metric_levels, self.gains = run_number, metric_levels[:-1], metric_sign * np.diff(metric_levels)
        self._last_loss = np.full(run_log.n_clients, np.nan)
        self._last_round = np.full(run_log.n_clients, -1)

    def add_round(self, round: LoggedRound) -> None:
        """Add the outcome of `round`: the reported training losses and the clients that arrived."""
        losses = round.signals["train_loss"]
        has_loss = np.isfinite(losses)
        self._last_loss[has_loss] = losses[has_loss]
        self._last_round[round.arrived_ids] = round.t

    def summarise_cohorts(
        self, run_log: RunLog, t: int, cohorts: Int64[np.ndarray, "n cohort"]
    ) -> Float64[np.ndarray, "n d"]:
        """Return the summary of each of `cohorts`, client ids in round `t` of `run_log`: the input of the regression.

        The summary has the metric before the round, log(1 + t), and the cohort's means of four numbers of its clients.
        These are the training samples and the expected seconds, both over the mean client's, the last reported loss,
        and log(1 + rounds since they trained). Next is the distance of its class shares from those of all clients. The
        means and the distance follow once more, times the metric.
        """
        mean_loss = np.nanmean(self._last_loss) if np.isfinite(self._last_loss).any() else 0.0
        client_features = [
            run_log.info.n_train / run_log.info.n_train.mean(),
            np.where(np.isfinite(self._last_loss), self._last_loss, mean_loss),
            np.log1p(t - self._last_round),
            run_log.info.expected_s / max(float(run_log.info.expected_s.mean()), 1e-12),
        ]
        class_counts, all_counts = run_log.info.class_counts[cohorts].sum(axis=1), run_log.info.class_counts.sum(axis=0)
        class_shares, all_shares = class_counts / class_counts.sum(axis=1, keepdims=True), all_counts / all_counts.sum()
        class_distance = np.abs(class_shares - all_shares).sum(axis=1) / 2
        cohort_means = np.stack([*(values[cohorts].mean(axis=1) for values in client_features), class_distance], axis=1)
        round_features = np.tile([self.metric_levels[t], math.log1p(t)], (len(cohorts), 1))
        return np.concatenate([round_features, cohort_means, cohort_means * self.metric_levels[t]], axis=1)


def predict_gains(rounds: Sequence[ComparedRound]) -> Float64[np.ndarray, "3 T"]:
    """Return the predicted gain of each cohort in `rounds`, and its mean over the cohorts of the two selectors.

    A ridge regression of the gain on the summary predicts them, fitted on the other runs. It is linear, so that the
    mean prediction is the prediction of the mean summary. NaN with one run, and for a summary that is not known.
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    runs, gains = np.array([r.run for r in rounds]), np.array([r.gain for r in rounds])
    summaries = np.array([[r.summary, r.run_summary, r.other_summary] for r in rounds]).swapaxes(0, 1)
    predictions = np.full((3, len(rounds)), math.nan)
    for run_number in np.unique(runs) if len(np.unique(runs)) > 1 else ():
        is_run = runs == run_number
        ridge = make_pipeline(StandardScaler(), RidgeCV(RIDGE_PENALTIES)).fit(summaries[0, ~is_run], gains[~is_run])
        for summary_index in range(3):
            rows = np.flatnonzero(is_run & np.isfinite(summaries[summary_index]).all(axis=1))
            predictions[summary_index, rows] = ridge.predict(summaries[summary_index, rows]) if len(rows) else math.nan
    return predictions


def estimate_gain(rounds: Sequence[ComparedRound], excluded_rounds: Mapping[str, int]) -> PolicyEvaluation:
    """Return the estimates of the other selector's mean gain, or the reason for which there are none.

    Args:
        rounds: the rounds in which both selectors draw with known probabilities.
        excluded_rounds: number of the other rounds, by reason.
    """
    gains, ratios = np.array([r.gain for r in rounds]), np.exp([r.log_ratio for r in rounds])
    uncovered_share = float(np.mean([r.uncovered_share for r in rounds])) if rounds else math.nan
    effective_size = float(ratios.sum() ** 2 / (ratios**2).sum()) if ratios.any() else 0.0
    base = PolicyEvaluation(
        len(rounds), effective_size, uncovered_share, estimate_mean(gains.tolist()), excluded=excluded_rounds
    )
    if reason := find_evaluation_refusal(base):
        return replace(base, reason=reason)
    return replace(base, estimates=dict(zip(ESTIMATORS, estimate(ratios, gains, predict_gains(rounds)), strict=True)))


def estimate(ratios: Values, gains: Values, predictions: Float64[np.ndarray, "3 T"]) -> tuple[Mean, ...]:
    """Return the estimates of a mean gain with their intervals, in the order of `ESTIMATORS`.

    The width of an interval is that of the mean of T terms. Terms of different rounds differ in expectation, too, which
    makes the intervals wider than needed.

    Args:
        ratios: rho_t, ratio of the cohort's probabilities under the other and the run's selector, [T].
        gains: g_t, change of the metric in each round, positive if it improves, [T].
        predictions: predicted gains by round, [3, T]: of the drawn cohort, and expected with the run's and the other
            selector.
    """
    predicted_gains, run_gains, other_gains = predictions
    weighted_gains, residuals = ratios * gains, ratios * (gains - predicted_gains)
    residual_differences = residuals - (gains - predicted_gains)
    normalised_gain = float(weighted_gains.sum() / ratios.sum())
    terms_by_value = (
        (float(weighted_gains.mean()), weighted_gains),
        (normalised_gain, ratios * (gains - normalised_gain) / ratios.mean()),
        (float((other_gains + residuals).mean()), residuals),
        (float((other_gains - run_gains + residual_differences).mean()), residual_differences),
    )
    return tuple(replace(estimate_mean(mean_terms.tolist()), mean=value) for value, mean_terms in terms_by_value)


def find_evaluation_refusal(evaluation: PolicyEvaluation) -> str:
    """Return why the rounds of `evaluation` allow no estimate; "" if they do."""
    if evaluation.n_rounds < 2:
        exclusions = "; ".join(f"{reason}, in {n} of the rounds" for reason, n in evaluation.excluded.items())
        return f"no overlap: in fewer than two rounds do both selectors draw with known probabilities ({exclusions})"
    if evaluation.uncovered_share > MAX_UNCOVERED_SHARE:
        return (
            f"no overlap: {100 * evaluation.uncovered_share:.1f} % of the other selector's cohorts have the "
            "probability zero under the run's selector"
        )
    if evaluation.effective_size < MIN_EFFECTIVE_SIZE:
        return (
            f"too little overlap: the effective sample size is {evaluation.effective_size:.1f} of "
            f"{evaluation.n_rounds} rounds, and at least {MIN_EFFECTIVE_SIZE:g} are needed. Evaluate more runs, or "
            "runs of a selector whose weights are closer to the other selector's"
        )
    return ""
