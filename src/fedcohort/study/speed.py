"""How soon a regime's target is met beside the baseline: by virtual time, by bytes, by rounds.

    t       what it took to the target on a seed; never, where the run ended without it
    times   t of the baseline / t of the row, the median over seeds; infinite or 0 where one of both never met it,
            though its run had spent as much as the other's t. Seeds on which neither met it, or one ended before the
            other was there, tell nothing of it and are left out. Of an even number of seeds the one of the middle two
            that is nearer to 1, and 1 between them where one is sooner and the other later: what claims the less
    p       of Wilcoxon's signed ranks of log t over all seeds, on which never is later than anything else, and those
            that are left out above have no difference; Holm's, over the row's cells, those of variants over the cells
            of all of them
    costs   client FLOPs and bytes of the row's whole runs over those of the baseline's, means over the same seeds: a
            method that is sooner may have spent more by the end of the clock
    sign    1 sooner, -1 later, where p is below win.alpha, times is LEAST or more, or 1 / LEAST or less, most of the
            ranks are on that side, too, and there are win.seeds of them

A method may be sooner without being better at the end, and the other way round: whoever asks more of the clients pays
for it here. Each unit is judged by itself.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort.maths.many_tests import bound_gaps, lean, least_blocks, signed_ranks_p
from fedcohort.study.definition import BOUND, Study
from fedcohort.study.judge import Place, Runs, adjust, family_of, sort_runs
from fedcohort.study.results import Results, Row
from fedcohort.types import Values

LEAST = 1.05  # times as fast: less doesn't count, however sure it is
SPENT = ("client_flops", "bytes")  # what a speed-up costs, by the end of the runs
TINY = 1e-9  # seconds, bytes, rounds
SINGLE = 1e-6  # of what a run spent: less is the rounding of curves, which are kept in single precision
UNITS = ("virtual_s", "bytes", "rounds")


@dataclass(frozen=True)
class Speed:
    """How soon a row meets a regime's target, beside the baseline. times, p, sign and costs are the module's.

    Attributes:
        n: paired seeds.
        need: seeds below which no p of this row, however clear, is small enough for a mark.
    """

    times: float
    p: float
    sign: int
    n: int
    need: int
    costs: Mapping[str, float]


Speeds = Mapping[str, Mapping[Place, Speed]]


def measure_speeds(study: Study, found: Results) -> Speeds:
    """Return by unit, cell and row the speeds where something is known of one; bounds have none."""
    runs = sort_runs(study, found)
    return {unit: _measure(study, runs, unit) for unit in UNITS}


def _measure(study: Study, runs: Mapping[str, Runs], unit: str) -> dict[Place, Speed]:
    times, gaps, costs = {}, {}, {}
    for cell, of in runs.items():
        base = of.get(study.baseline, {})
        for row, done in of.items():
            seeds = sorted(set(base) & set(done))
            if row == study.baseline or row.startswith(BOUND) or not seeds:
                continue
            own, others = _read_costs(done, base, seeds, unit)
            if not (np.isnan(own) & np.isnan(others)).all():
                times[cell, row] = middle_ratio(others, own)
                costs[cell, row] = {name: _relate(done, base, seeds, name) for name in SPENT}
                # equal ratios are ties, however their logarithms are rounded
                gaps[cell, row] = np.round(bound_gaps(-np.log(own), -np.log(others)), 9)
    ps = adjust(study, {place: signed_ranks_p(each) for place, each in gaps.items()})
    sizes = Counter(family_of(study, row) for _, row in ps)
    speeds = {}
    for place, p in ps.items():
        n, need = len(gaps[place]), least_blocks(sizes[family_of(study, place[1])], study.alpha)
        side = lean(gaps[place]) if p < study.alpha and n >= study.enough else 0
        sign = side if _counts(times[place], side) else 0
        speeds[place] = Speed(times[place], p, sign, n, need, costs[place])
    return speeds


def _relate(runs: Mapping[int, Row], base: Mapping[int, Row], seeds: list[int], name: str) -> float:
    """Return what the runs spent over what the baseline's did; NaN where that spent nothing."""
    own, other = (float(np.mean([of[seed][name] for seed in seeds])) for of in (runs, base))
    return own / other if other > 0 else math.nan


def _read_costs(runs: Mapping[int, Row], base: Mapping[int, Row], seeds: list[int], unit: str) -> tuple[Values, Values]:
    """Read what it took the row and the baseline to the target; NaN for never, and twice NaN where nothing is known.

    What the first model meets costs next to nothing.
    """
    own, others = (np.maximum([of[seed][f"{unit}_to_target"] for seed in seeds], TINY) for of in (runs, base))
    spent, spent_by_base = (np.array([of[seed][unit] for seed in seeds]) * (1 + SINGLE) for of in (runs, base))
    unknown = (np.isnan(own) & (spent < others)) | (np.isnan(others) & (spent_by_base < own))
    own[unknown] = others[unknown] = math.nan
    return own, others


def middle_ratio(base: Values, own: Values) -> float:
    """Return the median of `base / own`, as above; NaN stands for never, and two of them for nothing known."""
    there = ~(np.isnan(base) & np.isnan(own))
    costs = (np.nan_to_num(each[there], nan=math.inf) for each in (base, own))
    logs = np.sort(np.subtract(*map(np.log, costs)))
    low, high = logs[(len(logs) - 1) // 2], logs[len(logs) // 2]
    return 1.0 if low <= 0 <= high else float(np.exp(min(low, high, key=abs)))


def _counts(times: float, side: int) -> bool:
    """Whether the ratio is large enough, and on the side of the ranks."""
    return times >= LEAST if side > 0 else times <= 1 / LEAST
