"""How soon a setting's target is met in comparison with the baseline: by virtual time, by bytes, by rounds.

The speed-up is that of `results.speed_up`, and its p is corrected by Holm over the methods of the setting, each axis by
itself. `costs` has the client FLOPs and bytes of the row's whole runs over those of the baseline's, means over the same
seeds: a method that is sooner may have spent more by the end of the clock.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort.results.speed_up import SpeedUp, judge_speed, speed_up
from fedcohort.results.verdict import sign_of
from fedcohort.study.definition import BOUND, Study
from fedcohort.study.judge import Place, Runs, adjust_all, cost_of, sort_runs
from fedcohort.study.results import Results, Row

SPENT = ("client_flops", "bytes")  # what a speed-up costs, by the end of the runs
UNITS = ("virtual_s", "bytes", "rounds")


@dataclass(frozen=True)
class Speed:
    """How soon a row meets a setting's target, in comparison with the baseline.

    Attributes:
        up: the speed-up.
        p: after Holm over the methods of the setting.
        verdict: of `results.verdict`.
        costs: by name, of whole runs over the baseline's.
    """

    up: SpeedUp
    p: float
    verdict: str
    costs: Mapping[str, float]

    @property
    def sign(self) -> int:
        """1 where it is faster, -1 where it is slower, else 0."""
        return sign_of(self.verdict)


Speeds = Mapping[str, Mapping[Place, Speed]]


def measure_speeds(study: Study, results: Results) -> Speeds:
    """Return the speeds by unit, setting and row, where a run of the pair met the target; bounds have none."""
    runs = sort_runs(study, results)
    return {unit: _measure(study, runs, unit) for unit in UNITS}


def _measure(study: Study, runs: Mapping[str, Runs], unit: str) -> dict[Place, Speed]:
    ups, costs = dict[Place, SpeedUp](), dict[Place, dict[str, float]]()
    for cell, by_row in runs.items():
        base = by_row.get(study.baseline, {})
        for row, by_seed in by_row.items():
            seeds = sorted(set(base) & set(by_seed))
            if row == study.baseline or row.startswith(BOUND) or not seeds:
                continue
            pair = [{seed: cost_of(side[seed], unit) for seed in seeds} for side in (base, by_seed)]
            up = speed_up(*pair)
            if up.unmet < up.n and math.isfinite(up.ratio):
                ups[cell, row] = up
                costs[cell, row] = {name: _relate(by_seed, base, seeds, name) for name in SPENT}
    ps = adjust_all(study, {place: up.p for place, up in ups.items()})
    return {
        place: Speed(up, ps[place].in_setting, judge_speed(up, ps[place].in_setting, study.rules), costs[place])
        for place, up in ups.items()
    }


def _relate(runs: Mapping[int, Row], base: Mapping[int, Row], seeds: list[int], name: str) -> float:
    """Return the cost of the runs over that of the baseline's; NaN where that is nothing."""
    cost, of_base = (float(np.mean([side[seed][name] for seed in seeds])) for side in (runs, base))
    return cost / of_base if of_base > 0 else math.nan
