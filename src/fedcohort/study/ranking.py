"""Who ranks where over the regimes: which rows are compared, on which seeds, and what their mean ranks say.

    main      of the rows of `study.yaml`, those of the largest table of rows by regimes without a gap: each has half of
              the baseline's seeds or more in each regime, and the baseline is among them. No row that was just begun,
              and no regime that few were run in, takes the others' places. And a row that `study.yaml` doesn't name, as
              a method of one's own, where it has half of the baseline's seeds or more in every regime that those share,
              and leaves seeds there that all have
    shared    the regimes that all rows have, and in each the seeds that all of them have there
    R(a)      mean over the shared regimes of row a's rank among the rows, by late means over the shared seeds; 1 is
              best
    contest   of a row with the baseline. The unit is the seed: regimes of a study share seeds and partitions, and are
              no replicates. g(s) is the mean over families of the mean over a family's regimes of the paired
              difference on seed s, over the seeds that all shared regimes have; t-test of g over the seeds. What
              other regimes would give is another question: t-test of the families' mean differences over the
              families. Holm corrects the p of either for the number of rows

Of the baseline's runs and seeds no more count than the study's own: beside a method of one's own on many seeds, of
which the others have none, these stay where they are. Nobody's own row takes a regime from the others.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.many_tests import adjust_holm, rank_rows
from fedcohort.study.definition import BASELINE, METHOD, Study
from fedcohort.study.paired import Difference, difference
from fedcohort.study.results import Results

RANKED = (METHOD, BASELINE)
FAMILIES = 6  # least number of families of settings for a statement on other settings
Late = Mapping[str, Mapping[str, Mapping[int, float]]]  # of a regime: by row and seed
Shared = dict[str, list[int]]  # by regime, seeds


@dataclass(frozen=True)
class Contest:
    """A method against the baseline over the regimes.

    Attributes:
        seeds: the mean difference over these regimes, its interval and p over the common seeds.
        families: the same over families of regimes; None below FAMILIES of them.
    """

    seeds: Difference
    families: Difference | None

    def sign(self, study: Study) -> int:
        """Return 1 for a method that is significantly better over these regimes, -1 for a worse one, else 0."""
        return _sign(study, self.seeds) if self.seeds.over.n >= study.enough else 0

    def sign_elsewhere(self, study: Study) -> int:
        """Return the same over regimes like these, 0 where there are too few families."""
        return _sign(study, self.families) if self.families else 0


def _sign(study: Study, found: Difference) -> int:
    return int(np.sign(found.over.mean)) if found.p < study.alpha and abs(found.over.mean) >= study.least else 0


@dataclass(frozen=True)
class Ranks:
    """Methods over cells.

    Attributes:
        mean: rank of each row over the cells, 1 is best, best first.
        cells: that have all of these rows.
        contests: of each row with the baseline, in the order of `mean`; empty where that isn't ranked.
    """

    mean: Mapping[str, float]
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
    methods = [row for row in overall if row != study.baseline] if study.baseline in rows else []
    return Ranks(overall, list(shared), _compare(study, late, methods, shared))


def _compare(study: Study, late: Late, rows: Sequence[str], shared: Shared) -> dict[str, Contest]:
    """Compare each row with the baseline over the shared regimes."""
    families: dict[str, list[str]] = {}
    for cell in shared:
        families.setdefault(study.cells[cell].family, []).append(cell)
    common = sorted(set.intersection(*map(set, shared.values())))
    over_seeds = {row: _over_seeds(late, (row, study.baseline), families, common) for row in rows}
    over_families = {row: _over_families(late, (row, study.baseline), families, shared) for row in rows}
    corrected = [_correct(each) for each in (over_seeds, over_families)]
    enough = len(families) >= FAMILIES
    return {row: Contest(corrected[0][row], corrected[1][row] if enough else None) for row in rows}


def _over_seeds(
    late: Late, pair: tuple[str, str], families: Mapping[str, Sequence[str]], seeds: Sequence[int]
) -> Difference:
    """Compare a pair of rows by their means over families and regimes, seed by seed."""
    own, base = (
        {
            seed: _mean([_mean([late[cell][row][seed] for cell in cells]) for cells in families.values()])
            for seed in seeds
        }
        for row in pair
    )
    return difference(own, base)


def _over_families(
    late: Late, pair: tuple[str, str], families: Mapping[str, Sequence[str]], shared: Shared
) -> Difference:
    """Compare a pair of rows by their means over seeds, family by family."""
    own, base = (
        {
            i: _mean([_mean([late[cell][row][seed] for seed in shared[cell]]) for cell in cells])
            for i, cells in enumerate(families.values())
        }
        for row in pair
    )
    return difference(own, base)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _correct(found: Mapping[str, Difference]) -> dict[str, Difference]:
    """Correct the p-values by Holm for the number of rows."""
    ps = adjust_holm([each.p for each in found.values()])
    return {row: replace(each, p=p) for (row, each), p in zip(found.items(), ps, strict=True)}
