"""The speed-up over the baseline until a target is met: the paired restricted cost on a log scale.

    h(s)  smallest C among the runs of the pair that never met the target; infinite if both met it.
    r(s)  log min(T_b, h) - log min(T_m, h);  speed-up = exp(mean r), interval and p of the paired t-test on r.

The estimate is finite for any censoring, and conservative (Royston and Parmar 2013, BMC Med Res Methodol). Signed ranks
have no power below six seeds, and the log-rank test ignores the pairing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.results.difference import Difference, summarise_differences
from fedcohort.results.target import Cost
from fedcohort.results.verdict import (
    BETTER,
    FASTER,
    SLOWER,
    UNREACHED,
    WORSE,
    Rules,
    equivalence_p,
    name_verdict,
)

EXACT, AT_LEAST, AT_MOST, RESTRICTED = "", ">=", "<=", "restricted"


@dataclass(frozen=True)
class SpeedUp:
    """How many times as fast as the baseline a method is.

    Attributes:
        ratio: baseline's cost divided by the method's; NaN if nothing was spent.
        low: lower end of the 95 % interval; NaN without an interval.
        high: upper end of the 95 % interval; NaN without an interval.
        p: p-value of the paired t-test on the logarithms.
        n: number of pairs.
        unmet: pairs in which neither run met the target within the cost that both spent; their ratio counts as 1.
        bound: AT_LEAST if only the baseline was censored, AT_MOST if only the method was, RESTRICTED for both.
        median: median ratio, where a run that never met the target comes after all others; NaN if not determined.
        logs: paired differences of the logarithms.
    """

    ratio: float
    low: float
    high: float
    p: float
    n: int
    unmet: int
    bound: str
    median: float
    logs: Difference

    @property
    def reached(self) -> bool:
        """Whether at least half of the pairs met the target, so that the ratio is informative."""
        return 2 * self.unmet <= self.n


def speed_up(base: Mapping[int, Cost], method: Mapping[int, Cost]) -> SpeedUp:
    """Return the speed-up of `method` over `base`, costs by seed, over common seeds."""
    common = sorted(set(base) & set(method))
    logs, extremes = dict[int, float](), list[float]()
    unmet, base_is_later, method_is_later = 0, False, False
    for seed in common:
        b, m = base[seed], method[seed]
        horizon = min((cost.value for cost in (b, m) if not cost.met), default=math.inf)
        b_met, m_met = (cost.met and cost.value <= horizon for cost in (b, m))
        cost_b, cost_m = min(b.value, horizon), min(m.value, horizon)
        is_spent = cost_b > 0 and cost_m > 0
        logs[seed] = math.log(cost_b) - math.log(cost_m) if is_spent else math.nan
        unmet += not b_met and not m_met
        base_is_later |= not b.met and m.met and m.value < horizon
        method_is_later |= not m.met and b.met and b.value < horizon
        extremes.append(math.inf if m_met and not b_met else -math.inf if b_met and not m_met else logs[seed])
    mean = summarise_differences(logs, scale=1.0, unpaired=len(set(base) ^ set(method)))
    ratio, low, high = (math.exp(value) for value in (mean.mean, mean.low, mean.high))
    bounds = {(False, False): EXACT, (True, False): AT_LEAST, (False, True): AT_MOST, (True, True): RESTRICTED}
    bound = bounds[base_is_later, method_is_later]
    return SpeedUp(ratio, low, high, mean.p, mean.n, unmet, bound, _median_ratio(extremes), mean)


def _median_ratio(logs: Sequence[float]) -> float:
    """Return exp of the median; NaN if the two middle values are minus infinity and infinity."""
    ordered = sorted(logs)
    if not ordered or any(math.isnan(log) for log in ordered):
        return math.nan
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return math.nan if math.isinf(lower) and upper == -lower else float(np.exp((lower + upper) / 2))


def judge_speed(result: SpeedUp, p: float, rules: Rules) -> str:
    """Return the verdict on a speed-up; p: its p-value after the correction of the claim's family."""
    if not result.reached:
        return UNREACHED
    logs = Rules(rules.alpha, math.log(rules.ratio), math.log(rules.ratio_margin), rules.seeds)
    p_equivalent = equivalence_p(result.logs.values, logs.margin)
    verdict = name_verdict(result.logs.mean, p, p_equivalent, result.n, logs)
    return {BETTER: FASTER, WORSE: SLOWER}.get(verdict, verdict)
