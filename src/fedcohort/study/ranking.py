"""Who ranks where over the regimes: which rows are compared, on which seeds, and what their mean ranks say.

    main      of the rows of `study.yaml`, those of the largest table of rows by regimes without a gap: each has half of
              the baseline's seeds or more in each regime, and the baseline is among them. No row that was just begun,
              and no regime that few were run in, takes the others' places. And a row that `study.yaml` doesn't name, as
              a method of one's own, where it has half of the baseline's seeds or more in every regime that those share,
              and leaves seeds there that all have
    shared    the regimes that all rows have, and in each the seeds that all of them have there
    ranks     those of `results.ranks`, with families of settings in equal weight
    contest   of a row with the baseline, by the two claims of `results.overall`. Holm corrects the p of either for the
              number of rows

Of the baseline's runs and seeds no more count than the study's own: beside a method of one's own on many seeds, of
which the others have none, these stay where they are. Nobody's own row takes a regime from the others.
"""

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, replace

import numpy as np

from fedcohort.results.correction import adjust
from fedcohort.results.difference import Difference
from fedcohort.results.overall import over_families, over_seeds, worst_decile
from fedcohort.results.ranks import SettingResults, rank_methods
from fedcohort.study.definition import BASELINE, METHOD, Study
from fedcohort.study.results import Results

RANKED = (METHOD, BASELINE)
Late = Mapping[str, Mapping[str, Mapping[int, float]]]  # of a regime: by row and seed
Shared = dict[str, list[int]]  # by regime, seeds
Span = tuple[float, float]  # of an interval, NaN where there is none


@dataclass(frozen=True)
class Contest:
    """A method against the baseline over the regimes.

    Attributes:
        seeds: the mean difference over these regimes, its interval and p over the common seeds.
        families: the same over families of regimes; None for fewer than six of them.
        worst_decile: mean of the lowest tenth of the regimes' mean differences.
        worst_setting: the regime with the lowest one.
    """

    seeds: Difference
    families: Difference | None
    worst_decile: float
    worst_setting: str

    def sign(self, study: Study) -> int:
        """Return 1 for a method that is significantly better over these regimes, -1 for a worse one, else 0."""
        return _sign(study, self.seeds) if self.seeds.n >= study.enough else 0

    def sign_elsewhere(self, study: Study) -> int:
        """Return the same over regimes like these, 0 where there are too few families."""
        return _sign(study, self.families) if self.families else 0


def _sign(study: Study, difference: Difference) -> int:
    counts = difference.p < study.alpha and abs(difference.mean) >= study.least
    return int(np.sign(difference.mean)) if counts else 0


@dataclass(frozen=True)
class Ranks:
    """Methods over cells.

    Attributes:
        mean: rank of each row over the cells, 1 is best, best first.
        spread: interval of each mean rank; NaN for fewer than six families.
        first: probability of each row that it has the best mean rank; NaN likewise.
        by_setting: rank of each row in each cell.
        seeds: of each cell, those compared.
        contests: of each row with the baseline, in the order of `mean`; empty where that isn't ranked.
    """

    mean: Mapping[str, float]
    spread: Mapping[str, Span]
    first: Mapping[str, float]
    by_setting: Mapping[str, Mapping[str, float]]
    seeds: Mapping[str, Sequence[int]]
    contests: Mapping[str, Contest]

    @property
    def cells(self) -> Sequence[str]:
        """The cells that have all of these rows."""
        return list(self.by_setting)

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


def rank(study: Study, late: Late, rows: Sequence[str], groups: Mapping[str, str] | None = None) -> Ranks | None:
    """Rank the rows in the settings that they share; None for fewer than two rows, or no setting.

    groups: of each setting, the study whose seeds are drawn together; None for one study.
    """
    shared = share(late, rows)
    if len(rows) < 2 or not shared:
        return None
    settings = {
        cell: SettingResults(
            np.array([[late[cell][row][seed] for seed in seeds] for row in rows]),
            seeds,
            study.cells[cell].family,
            groups[cell] if groups else study.name,
        )
        for cell, seeds in shared.items()
    }
    ranking = rank_methods(settings, study.name)
    order = sorted(range(len(rows)), key=lambda i: ranking.mean[i])
    methods = [rows[i] for i in order if rows[i] != study.baseline] if study.baseline in rows else []
    return Ranks(
        mean={rows[i]: float(ranking.mean[i]) for i in order},
        spread={rows[i]: (float(ranking.low[i]), float(ranking.high[i])) for i in order},
        first={rows[i]: float(ranking.first[i]) for i in order},
        by_setting={
            cell: dict(zip(rows, map(float, ranks), strict=True)) for cell, ranks in ranking.by_setting.items()
        },
        seeds=shared,
        contests=_compare(study, late, methods, shared),
    )


def _compare(study: Study, late: Late, rows: Sequence[str], shared: Shared) -> dict[str, Contest]:
    """Compare each row with the baseline over the shared settings."""
    family_of = {cell: study.cells[cell].family for cell in shared}
    differences = {
        row: {
            cell: {seed: late[cell][row][seed] - late[cell][study.baseline][seed] for seed in seeds}
            for cell, seeds in shared.items()
        }
        for row in rows
    }
    seeds = {row: over_seeds(differences[row], family_of) for row in rows}
    families = {row: over_families(differences[row], family_of) for row in rows}
    ps_seeds = adjust([seeds[row].p for row in rows])
    ps_families = adjust([math.nan if (of_row := families[row]) is None else of_row.p for row in rows])
    contests = {}
    for row, p, p_families in zip(rows, ps_seeds, ps_families, strict=True):
        means = {cell: float(np.mean(list(by_seed.values()))) for cell, by_seed in differences[row].items()}
        general = families[row]
        contests[row] = Contest(
            seeds=replace(seeds[row], p=p),
            families=None if general is None else replace(general, p=p_families),
            worst_decile=worst_decile(means)[0],
            worst_setting=worst_decile(means)[1],
        )
    return contests
