"""Who ranks where over the regimes: which rows are compared, on which seeds, and what their mean ranks say.

    main      of the rows of `study.yaml`, those of the largest table of rows by regimes without a gap: each has half of
              the baseline's seeds or more in each regime, and the baseline is among them. No row that was just begun,
              and no regime that few were run in, takes the others' places. And a row that `study.yaml` doesn't name, as
              a method of one's own, where it has half of the baseline's seeds or more in every regime that those share,
              and leaves seeds there that all have
    shared    the regimes that all rows have, and in each the seeds that all of them have there
    R(a)      mean over the shared regimes of row a's rank among the rows, by late means over the shared seeds; 1 is
              best
    contest   of a row with the baseline: Wilcoxon's signed ranks of their differences in the shared regimes, means over
              the shared seeds, whose p Holm corrects for the number of rows

Of the baseline's runs and seeds no more count than the study's own: beside a method of one's own on many seeds, of
which the others have none, these stay where they are. Nobody's own row takes a regime from the others.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.many_tests import (
    adjust_holm,
    bound_gaps,
    critical_distance,
    friedman_p,
    lean,
    rank_rows,
    signed_ranks_p,
)
from fedcohort.study.definition import BASELINE, METHOD, Study
from fedcohort.study.results import Results

RANKED = (METHOD, BASELINE)
Late = Mapping[str, Mapping[str, Mapping[int, float]]]  # of a regime: by row and seed
Shared = dict[str, list[int]]  # by regime, seeds


@dataclass(frozen=True)
class Contest:
    """A method against the baseline over the regimes.

    Attributes:
        p: of Wilcoxon's signed ranks, corrected by Holm for the number of methods.
        median: of the regimes' differences, in the metric's unit.
        side: 1 where their signed ranks are above 0, which is what p says, -1 below.
    """

    p: float
    median: float
    side: int

    @property
    def ahead(self) -> bool:
        """Whether the method is better in the median regime, and in the ranks of all."""
        return self.median > 0 and self.side > 0

    def sign(self, study: Study) -> int:
        """1 for a method that is shown to beat the baseline over the regimes, -1 for one behind it, 0 for neither."""
        counts = self.p < study.alpha and abs(self.median) >= study.least
        return self.side if counts and self.median * self.side > 0 else 0


@dataclass(frozen=True)
class Ranks:
    """Methods over cells.

    Attributes:
        mean: rank of each row over the cells, 1 is best, best first.
        p: Friedman's.
        distance: two mean ranks that are this far apart differ (Nemenyi).
        cells: that have all of these rows.
        contests: of each row with the baseline, in the order of `mean`; empty where that isn't ranked.
    """

    mean: Mapping[str, float]
    p: float
    distance: float
    cells: Sequence[str]
    contests: Mapping[str, Contest]

    def places(self) -> dict[str, int]:
        """Return each row's place, 1 for the best mean rank; equals share the first of theirs."""
        means = list(self.mean.values())
        return {row: 1 + sum(other < mean for other in means) for row, mean in self.mean.items()}


def late_of(study: Study, found: Results) -> Late:
    """Return the late means of methods and the baseline."""
    late: dict[str, dict[str, dict[int, float]]] = {}
    for (cell, row, seed), facts in found.done():
        if cell in study.cells and study.role_of(row) in RANKED:
            late.setdefault(cell, {}).setdefault(row, {})[seed] = facts["late"]
    return {cell: late[cell] for cell in study.cells if cell in late}


def split_rows(study: Study, late: Late) -> tuple[list[str], list[str]]:
    """Return the main rows, and the others."""
    known = dict.fromkeys(row for of in late.values() for row in of)
    there = {
        row: frozenset(cell for cell, of in late.items() if len(of.get(row, ())) >= max(1, half_of(study, of)))
        for row in study.words
        if row in known
    }
    main = _largest(there, study.baseline)
    for row in known:
        if row not in study.words and _fits(study, late, main, row):
            main.append(row)
    return main, [row for row in dict.fromkeys((*there, *known)) if row not in main]


def _largest(there: Mapping[str, frozenset[str]], baseline: str) -> list[str]:
    """Return the rows of the largest table without a gap that has the baseline; of equals, of the most rows.

    there: of each row, its regimes. Those of the table are what some of the rows have in common.
    """
    tables = {there.get(baseline, frozenset[str]())}
    for regimes in set(there.values()):
        tables |= {regimes & each for each in tables}
    sizes = {each: sum(each <= regimes for regimes in there.values()) for each in tables}
    most = max(sizes, key=lambda each: (len(each) * sizes[each], sizes[each], sorted(each)))
    return [row for row, regimes in there.items() if most and most <= regimes]


def _fits(study: Study, late: Late, rows: Sequence[str], row: str) -> bool:
    """Whether `row` has half of the baseline's seeds in each regime that `rows` share, and takes none from them."""
    there = share(late, rows)
    enough = all(
        len(set(late[cell].get(row, ())) & set(late[cell].get(study.baseline, ()))) >= half_of(study, late[cell])
        for cell in there
        if study.baseline in late[cell]
    )
    return enough and set(there) == set(share(late, [*rows, row]))


def half_of(study: Study, runs: Mapping[str, Sized]) -> float:
    """Return half of the seeds that the baseline has in a regime, of no more than the study's own."""
    return min(len(runs.get(study.baseline, ())), len(study.seeds)) / 2


def share(late: Late, rows: Sequence[str]) -> Shared:
    """Return the regimes that all rows have, and the seeds that all of them have there."""
    seeds = {
        cell: sorted(set.intersection(*(set(of[row]) for row in rows)))
        for cell, of in late.items()
        if rows and set(rows) <= set(of)
    }
    return {cell: each for cell, each in seeds.items() if each}


def mean_over_seeds(late: Late, rows: Sequence[str], shared: Shared) -> Float64[np.ndarray, "cells rows"]:
    """Return the late means of the rows over the shared seeds."""
    means: Float64[np.ndarray, "cells rows"] = np.array(
        [[np.mean([late[cell][row][seed] for seed in seeds]) for row in rows] for cell, seeds in shared.items()]
    )
    return means


def rank(study: Study, late: Late, rows: Sequence[str]) -> Ranks | None:
    """Rank the rows in the regimes that they share; None for fewer than two rows, or no regime."""
    shared = share(late, rows)
    if len(rows) < 2 or not shared:
        return None
    means = mean_over_seeds(late, rows, shared)
    overall = dict(zip(rows, rank_rows(means).mean(axis=0).tolist(), strict=True))
    overall = dict(sorted(overall.items(), key=lambda each: each[1]))
    return Ranks(
        mean=overall,
        p=friedman_p(means),
        distance=critical_distance(len(rows), len(shared), study.alpha),
        cells=list(shared),
        contests=_contest({row: means[:, rows.index(row)] for row in overall}, study.baseline),
    )


def _contest(means: Mapping[str, Float64[np.ndarray, "cells"]], baseline: str) -> dict[str, Contest]:
    """Compare each row's means with the baseline's."""
    if baseline not in means:
        return {}
    gaps = {row: bound_gaps(each, means[baseline]) for row, each in means.items() if row != baseline}
    ps = adjust_holm([signed_ranks_p(each) for each in gaps.values()])
    return {
        row: Contest(p, float(np.median(each)), lean(each)) for (row, each), p in zip(gaps.items(), ps, strict=True)
    }
