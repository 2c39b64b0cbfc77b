"""Speed-up of methods to a setting's target over the baseline: by virtual time, by bytes and by rounds.

The speed-up is that of `results.speed_up`. Its p is corrected by Holm over the methods of the setting, for each of the
three separately. `costs` are client FLOPs and bytes of whole runs over those of the baseline, as means over the same
seeds: a method that is faster to the target may have spent more by the end.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort.results.compare_cost import compare_along
from fedcohort.results.speed_up import SpeedUp
from fedcohort.results.verdict import sign_of
from fedcohort.study.conditions import Pair
from fedcohort.study.definition import BOUND, METHOD, Study
from fedcohort.study.judge import cost_of
from fedcohort.study.ranking import Runs, sort_runs
from fedcohort.study.result_files import Row
from fedcohort.study.results import Results

COSTS = ("client_flops", "bytes")  # costs of whole runs
AXES = {"virtual_s": "virtual time", "bytes": "bytes", "rounds": "rounds"}  # costs to the target


@dataclass(frozen=True)
class Speed:
    """Speed of a method in a setting.

    Attributes:
        up: the speed-up over the baseline.
        p: after Holm over the methods of the setting.
        verdict: a verdict of `results.verdict`.
        costs: costs of whole runs over those of the baseline, by name; NaN if the baseline's are 0.
    """

    up: SpeedUp
    p: float
    verdict: str
    costs: Mapping[str, float]

    @property
    def sign(self) -> int:
        """1 if it is faster, -1 if it is slower, else 0."""
        return sign_of(self.verdict)


Speeds = Mapping[str, Mapping[Pair, Speed]]  # by axis, and by setting and method


def measure_speeds(study: Study, results: Results) -> Speeds:
    """Return the speeds of methods where a run of a pair met the target; bounds have none."""
    runs = sort_runs(study, results)
    return {axis: _measure(study, runs, axis) for axis in AXES}


def _measure(study: Study, runs: Mapping[str, Runs], axis: str) -> dict[Pair, Speed]:
    costs = {
        (setting, method): {seed: cost_of(row, axis) for seed, row in by_seed.items()}
        for setting, methods in runs.items()
        for method, by_seed in methods.items()
        if study.role_of(method) != BOUND
    }
    untested = [pair for pair in costs if study.role_of(pair[1]) != METHOD]
    return {
        pair: Speed(up, entry.p, entry.verdict, _whole_costs(runs[pair[0]][pair[1]], runs[pair[0]][study.baseline]))
        for pair, entry in compare_along(costs, untested, study.options).items()
        if (up := entry.speed_up) is not None and up.unmet < up.n and math.isfinite(up.ratio)
    }


def _whole_costs(by_seed: Mapping[int, Row], base: Mapping[int, Row]) -> dict[str, float]:
    """Return the mean costs of whole runs over the baseline's, on common seeds."""
    common = sorted(set(base) & set(by_seed))
    means = {
        name: [float(np.mean([side[seed][name] for seed in common])) for side in (by_seed, base)] for name in COSTS
    }
    return {name: cost / of_base if of_base > 0 else math.nan for name, (cost, of_base) in means.items()}
