"""How soon a regime's target is met beside the baseline: by virtual time, by bytes, by rounds.

    times   t of the baseline / t of the row, the median over seeds, t what it took to the target on a seed. Where one
            of both never met it, infinite or 0; seeds on which neither did are left out; of an even number of seeds
            the one of the middle two that is nearer to 1, which claims the less
    p       of Wilcoxon's signed ranks of log t over all seeds, on which never is later than anything else and two
            nevers are alike; Holm's, over the row's cells, those of variants over the cells of all of them
    sign    1 sooner, -1 later, where p is below win.alpha, times is LEAST or more, or 1 / LEAST or less, and there are
            win.seeds of them

A method may be sooner without being better at the end, and the other way round: whoever asks more of the clients pays
for it here. Each unit is judged by itself.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort.maths.many_tests import bound_gaps, signed_ranks_p
from fedcohort.study.definition import BOUND, Study
from fedcohort.study.judge import Place, adjust, sort_runs
from fedcohort.study.results import Results, Row
from fedcohort.types import Values

LEAST = 1.05  # times as fast: less doesn't count, however sure it is
TINY = 1e-9  # seconds, bytes, rounds
UNITS = ("virtual_s", "bytes", "rounds")


@dataclass(frozen=True)
class Speed:
    """How soon a row meets a regime's target, beside the baseline. times, p and sign are the module's."""

    times: float
    p: float
    sign: int


Speeds = Mapping[str, Mapping[Place, Speed]]


def measure_speeds(study: Study, found: Results) -> Speeds:
    """Return by unit, cell and row the speeds where the row or the baseline met the target; bounds have none."""
    return {unit: _measure(study, found, unit) for unit in UNITS}


def _measure(study: Study, found: Results, unit: str) -> dict[Place, Speed]:
    times, ps, counts = {}, {}, {}
    for cell, of in sort_runs(study, found).items():
        base = of.get(study.baseline, {})
        for row, runs in of.items():
            seeds = sorted(set(base) & set(runs))
            if row == study.baseline or row.startswith(BOUND) or not seeds:
                continue
            own, others = (_read_targets(each, seeds, unit) for each in (runs, base))
            if np.isnan(own).all() and np.isnan(others).all():
                continue
            place = (cell, row)
            times[place], counts[place] = middle_ratio(others, own), len(seeds)
            ps[place] = signed_ranks_p(bound_gaps(-np.log(own), -np.log(others)))
    adjusted = adjust(study, ps)
    return {
        place: Speed(times[place], adjusted[place], _sign(study, times[place], adjusted[place], counts[place]))
        for place in times
    }


def _read_targets(runs: Mapping[int, Row], seeds: list[int], unit: str) -> Values:
    """Read what it took to the target, NaN where it wasn't met; what the first model meets costs next to nothing."""
    return np.maximum([runs[seed][f"{unit}_to_target"] for seed in seeds], TINY)


def middle_ratio(base: Values, own: Values) -> float:
    """Return the median of `base / own`, as above; NaN stands for never."""
    there = ~(np.isnan(base) & np.isnan(own))
    with np.errstate(divide="ignore"):
        logs = np.sort(
            np.log(np.nan_to_num(base[there], nan=math.inf)) - np.log(np.nan_to_num(own[there], nan=math.inf))
        )
    n = len(logs)
    return float(np.exp(min(logs[(n - 1) // 2], logs[n // 2], key=abs)))


def _sign(study: Study, times: float, p: float, seeds: int) -> int:
    if p >= study.alpha or seeds < study.enough or 1 / LEAST < times < LEAST:
        return 0
    return 1 if times > 1 else -1
