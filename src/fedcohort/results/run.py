"""The result of a run: the mean of its evaluations in the last sixth of the horizon.

    x = mean{v(t) : 5H/6 < t <= H}; the last three evaluations where fewer lie in that window

The untrained model (t = 0) never counts. On the virtual clock the mean is weighted by the time for which each model was
the newest, and the untrained model is one of them. A single evaluation has twice the spread between seeds, and the best
evaluation shrinks differences
(Bouthillier et al. 2021, MLSys; Agarwal et al. 2021, NeurIPS).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

LATE_WINDOW_SHARE = 1 / 6  # of the horizon
MIN_LATE_EVALUATIONS = 3  # evaluations
STEP_TOLERANCE = 1e-9  # in rounds, for the rounding error of a limit that is a fraction of a round
ResultKind = Literal["late", "last", "best"]
RESULT_KINDS: tuple[ResultKind, ...] = ("late", "last", "best")
Values = Float64[np.ndarray, "evaluations"]
Numbers = Sequence[float] | Values


def find_late_window(steps: Values, horizon: float | None = None) -> Bool[np.ndarray, "evaluations"]:
    """Return which evaluations are in the last sixth of the run, bool [evaluations]; at least the last three.

    Args:
        steps: rounds of the evaluations, increasing; 0 for the untrained model.
        horizon: last round that counts; None for the last evaluation.
    """
    is_trained = steps > 0
    window_end = (steps[-1] if len(steps) else 0.0) if horizon is None else horizon
    is_in_horizon = is_trained & (steps <= window_end)
    is_in_window = is_in_horizon & (steps > window_end * (1 - LATE_WINDOW_SHARE) + STEP_TOLERANCE)
    if is_in_window.sum() < MIN_LATE_EVALUATIONS:
        is_in_window = np.zeros(len(steps), dtype=bool)
        is_in_window[np.flatnonzero(is_in_horizon)[-MIN_LATE_EVALUATIONS:]] = True
    return is_in_window


@dataclass(frozen=True)
class Evaluations:
    """The evaluations of one metric in a run, up to the horizon.

    Attributes:
        steps: rounds, increasing; 0 is the untrained model.
        values: the metric at these rounds.
        costs: cumulative costs at these rounds, by name: `virtual_s` in seconds, and others.
        clock_s: virtual seconds at which the run ends; NaN without a clock, and with a horizon, which replaces it.
    """

    steps: Values
    values: Values
    costs: Mapping[str, Values]
    clock_s: float = math.nan

    @property
    def has_clock(self) -> bool:
        """Whether the run ends at a limit of virtual time instead of a number of rounds."""
        return math.isfinite(self.clock_s)

    def cut_at_horizon(self, horizon: int | None, clock_s: float) -> "Evaluations":
        """Return the evaluations up to round `horizon`; if it is None, all of them, with their end `clock_s` in s."""
        if horizon is None:
            return replace(self, clock_s=clock_s)
        is_in_horizon = self.steps <= horizon
        costs_in_horizon = {cost_name: costs[is_in_horizon] for cost_name, costs in self.costs.items()}
        return Evaluations(self.steps[is_in_horizon], self.values[is_in_horizon], costs_in_horizon)


def result_of_run(
    run: Evaluations, result_kind: ResultKind = "late", horizon: int | None = None, sign: int = 1
) -> float:
    """Return the result of a run; NaN if no trained model was evaluated, unless the run ends by the virtual clock.

    Evaluations after a limit of virtual time never count, and the untrained model counts in such a run.

    Args:
        run: the evaluations of the run.
        result_kind: `late` for the mean over the last sixth of the run, or the `last` or the `best` value.
        horizon: last round that counts; None for the end of the run.
        sign: -1 if a smaller metric is better, else 1.
    """
    if result_kind == "late" and run.has_clock and len(run.steps):
        return average_over_clock(run.costs["virtual_s"], run.values, run.clock_s)
    is_counted = run.costs["virtual_s"] <= run.clock_s if run.has_clock else run.steps > 0
    values = run.values[is_counted & (run.steps <= (math.inf if horizon is None else horizon))]
    if not len(values):
        return math.nan
    if result_kind == "late":
        return float(run.values[find_late_window(run.steps, horizon)].mean())
    return float(values[-1] if result_kind == "last" else sign * (sign * values).max())


def count_averaged_evaluations(run: Evaluations, horizon: int | None = None) -> int:
    """Return the number of evaluations, one or more, over which the result `late` of a run is a mean.

    Args:
        run: the evaluations of the run.
        horizon: last round that counts; None for the end of the run.
    """
    is_in_window = (
        seconds_as_newest(run.costs["virtual_s"], run.clock_s) > 0
        if run.has_clock
        else find_late_window(run.steps, horizon)
    )
    return max(int(is_in_window.sum()), 1)


def average_over_clock(virtual_s: Numbers, values: Numbers, clock_s: float) -> float:
    """Return the mean over the last sixth of `clock_s` virtual seconds, weighted by the time of the newest model.

    A model counts from the end of its round until the end of the next one. Evaluations after `clock_s` do not count.
    The last model of a run that ended earlier by its number of rounds counts until `clock_s`.

    Args:
        virtual_s: virtual seconds of the evaluations, increasing.
        values: the metric at these times.
        clock_s: virtual seconds at which the run ends.
    """
    newest_seconds = seconds_as_newest(virtual_s, clock_s)
    return float(
        np.average(np.asarray(values, dtype=float)[newest_seconds > 0], weights=newest_seconds[newest_seconds > 0])
    )


def seconds_as_newest(virtual_s: Numbers, clock_s: float) -> Values:
    """Return for how many seconds of the last sixth of the clock each model was the newest, [evaluations].

    It is 0 or less for a model that was never the newest in this time. `virtual_s` are the virtual seconds of the
    evaluations, increasing, and `clock_s` is the end of the run.
    """
    model_start_s = np.array(virtual_s, dtype=float)
    model_start_s[:1] = -math.inf  # the first model existed before its evaluation
    model_end_s = np.append(model_start_s[1:], math.inf)
    return np.asarray(np.minimum(model_end_s, clock_s) - np.maximum(model_start_s, (1 - LATE_WINDOW_SHARE) * clock_s))


def fit_late_slope(steps: Values, values: Values, horizon: float | None = None) -> float:
    """Return the least-squares slope of a metric over the last sixth of a run; NaN for fewer than two evaluations.

    Args:
        steps: rounds of the evaluations, increasing.
        values: the metric at these rounds.
        horizon: last round that counts; None for the last evaluation.

    Returns:
        The slope, in units of the metric per round.
    """
    window = find_late_window(steps, horizon)
    return float(np.polyfit(steps[window], values[window], 1)[0]) if window.sum() > 1 else math.nan
