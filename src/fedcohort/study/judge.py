"""What a study's results say: differences to the baseline, the gap that was there, who closed how much of it.

    d_s      late mean of a row minus that of the baseline on seed s: they share data, partition and first model
    verdict  a row wins or loses in a cell where Holm's adjusted p, over the row's cells, is below win.alpha, mean d is
             win.least or more, and there are win.seeds of them; of `variants`, tries of one idea, over the cells of all
             of them. p is corrected over all methods and cells, too, which says how many of the wins one correction of
             everything leaves
    gap      the d of the yardstick whose mean d is largest: of those that pass in the same way, where there is
             something to win, else of those with win.seeds seeds and half of the baseline's, else of all
    closed   mean d of a row / mean d of that yardstick, over the seeds that all three have; given where there is a gap,
             on these seeds too, and they are win.seeds or more
    rank     of a method or the baseline among all that have half of the baseline's seeds or more, by seed, over the
             seeds that all of them have; 1 is best
    half     of the baseline's seeds, or of the study's own where it has more, as beside a method of one's own
    seeds    `maths.many_tests.count_seeds` of the median deviation of the methods' d: of those whose d vary, and that
             have half of the baseline's seeds and win.seeds, as a row just begun says little of a spread

The yardstick is chosen by the same seeds: its gap is a little flattered, and the greedy one is no upper bound.
"""

import math
from collections.abc import Collection, Mapping
from statistics import median

import numpy as np

from fedcohort.maths.many_tests import adjust_holm, count_seeds, rank_rows
from fedcohort.study.definition import BOUND, METHOD, YARDSTICK, Study
from fedcohort.study.paired import Difference, Mean, difference, mean
from fedcohort.study.places import is_early
from fedcohort.study.ranking import RANKED, Ranks, half_of, late_of, rank, split_rows
from fedcohort.study.results import Results, Row
from fedcohort.study.verdict import COSTS, TO_TARGET, CellVerdict, RowVerdict, Verdict


def judge(study: Study, found: Results) -> Verdict:
    """Say what the results come to."""
    runs = sort_runs(study, found)
    overs = {
        (cell, row): difference(_late(of[row]), _late(of[study.baseline]))
        for cell, of in runs.items()
        for row in of
        if row != study.baseline and set(of[row]) & set(of.get(study.baseline, {}))
    }
    ps = {place: over.p for place, over in overs.items()}
    own, methods = adjust(study, ps), [place for place in overs if study.role_of(place[1]) == METHOD]
    over_all = dict(zip(methods, adjust_holm([ps[place] for place in methods]), strict=True))
    cells = {cell: _judge_cell(study, cell, runs[cell], overs, (own, over_all)) for cell in runs}
    return Verdict(cells, _rank_over_cells(study, found), _missing(study, runs))


Runs = Mapping[str, Mapping[int, Row]]  # of a cell: by row and seed
Place = tuple[str, str]  # cell, row


def sort_runs(study: Study, found: Results) -> dict[str, dict[str, dict[int, Row]]]:
    """Sort the runs that are done, in the study's order; a user's own rows come after the others."""
    runs: dict[str, dict[str, dict[int, Row]]] = {}
    for (cell, row, seed), facts in found.done():
        runs.setdefault(cell, {}).setdefault(row, {})[seed] = facts
    order = list(study.words)
    place = {row: i for i, row in enumerate(order)}
    return {
        cell: dict(sorted(runs[cell].items(), key=lambda item: (item[0].startswith(BOUND), place.get(item[0], 10**6))))
        for cell in study.cells
        if cell in runs
    }


def _late(runs: Mapping[int, Row]) -> dict[int, float]:
    return {seed: facts["late"] for seed, facts in runs.items()}


def adjust(study: Study, ps: Mapping[Place, float]) -> dict[Place, float]:
    """Correct each row's p-values for the number of its cells, those of variants for the cells of all of them.

    They stay in their order, by which pages name equals.
    """
    found = dict(ps)
    for family in {family_of(study, row) for _, row in ps}:
        keys = [key for key in ps if family_of(study, key[1]) == family]
        found |= dict(zip(keys, adjust_holm([ps[key] for key in keys]), strict=True))
    return found


def family_of(study: Study, row: str) -> str:
    """Return whose p-values are corrected together: the row's own, or those of the variants that it is one of."""
    return next((name for name, rows in study.variants.items() if row in rows), row)


def _judge_cell(
    study: Study,
    cell: str,
    runs: Runs,
    overs: Mapping[Place, Difference],
    corrected: tuple[Mapping[Place, float], Mapping[Place, float]],
) -> CellVerdict:
    """Judge a cell. corrected: by cell and row, p after Holm over the row's cells, and of methods over all cells."""
    adjusted, over_all = corrected
    own = {row: overs[cell, row] for row in runs if (cell, row) in overs}
    signs = {row: _sign(study, over.over, adjusted[cell, row]) for row, over in own.items()}
    yardsticks = [row for row in own if study.role_of(row) == YARDSTICK and math.isfinite(own[row].over.mean)]
    least = max(study.enough, half_of(study, runs))  # one that was just begun has luck at most
    known = [row for row in yardsticks if own[row].over.n >= least]
    clear = [row for row in known or yardsticks if signs[row] > 0]
    best = max(clear or known or yardsticks, key=lambda row: own[row].over.mean, default=None)
    pays = bool(clear)
    ranks = _rank_in_cell(study, runs)
    rows = {
        row: RowVerdict(
            row=row,
            role=study.role_of(row),
            value=mean(list(_late(of).values())),
            last=float(np.mean([facts["last"] for facts in of.values()])),
            diverged=sum(not math.isfinite(late) for late in _late(of).values()),
            over=own.get(row),
            p=adjusted.get((cell, row), math.nan),
            p_all=over_all.get((cell, row), math.nan),
            sign=signs.get(row, 0),
            closed=_closed(study, runs, row, best) if pays and best and row in own else math.nan,
            rank=ranks.get(row),
            costs={name: float(np.mean([facts[name] for facts in of.values()])) for name in COSTS},
            target={name: _median(of, f"{name}_to_target") for name in TO_TARGET},
            reached=sum(math.isfinite(facts["rounds_to_target"]) for facts in of.values()),
            early=sum(is_early(facts["words"], facts["virtual_s"]) for facts in of.values()),
            other_code=sum(bool(facts["differs"]) for facts in of.values()),
        )
        for row, of in runs.items()
    }
    methods = [own[row].over for row in own if study.role_of(row) == METHOD]
    spreads = [over.std for over in methods if over.n >= least and math.isfinite(over.half)]
    seeds = count_seeds(median(spreads), study.worth, study.alpha) if spreads else None
    return CellVerdict(cell, rows, best, own[best] if best else None, pays, seeds, known)


def _sign(study: Study, over: Mean, p: float) -> int:
    counts = p < study.alpha and abs(over.mean) >= study.least and over.n >= study.enough
    return int(np.sign(over.mean)) if counts else 0


def _closed(study: Study, runs: Runs, row: str, best: str) -> float:
    """Return the share of the gap that the row closes, over common seeds; NaN where these show none."""
    base = study.baseline
    common = set(runs[row]) & set(runs[best]) & set(runs[base])
    if len(common) < study.enough:
        return math.nan
    level = {name: _mean_of(runs[name], common) for name in (row, best, base)}
    gap = level[best] - level[base]
    return (level[row] - level[base]) / gap if gap > 0 else math.nan


def _median(runs: Mapping[int, Row], name: str) -> float:
    """Return the median over seeds, the larger of two; a run that never met the target is later than all others."""
    values = sorted(facts[name] if math.isfinite(facts[name]) else math.inf for facts in runs.values())
    return values[len(values) // 2]


def _rank_in_cell(study: Study, runs: Runs) -> dict[str, Mean]:
    least = half_of(study, runs)  # a row just begun costs the others no seeds, and has no rank
    rows = [row for row in runs if study.role_of(row) in RANKED and len(runs[row]) >= least]
    common = sorted(set.intersection(*(set(runs[row]) for row in rows))) if rows else []
    if not common:
        return {}
    ranks = rank_rows(np.array([[runs[row][seed]["late"] for row in rows] for seed in common]))
    return {row: mean(list(ranks[:, i])) for i, row in enumerate(rows)}


def _rank_over_cells(study: Study, found: Results) -> Ranks | None:
    """Rank the main rows in the cells that they share; None for fewer than three rows or two cells."""
    late = late_of(study, found)
    ranks = rank(study, late, split_rows(study, late)[0])
    return ranks if ranks and len(ranks.mean) > 2 and len(ranks.cells) > 1 else None


def _mean_of(runs: Mapping[int, Row], seeds: Collection[int]) -> float:
    return float(np.mean([runs[seed]["late"] for seed in sorted(seeds)]))


def _missing(study: Study, runs: Mapping[str, Runs]) -> dict[tuple[str, str], int]:
    wanted = {(cell, row) for cell in study.cells for row in study.words if study.asks(cell, row)}
    wanted |= {(name, BOUND + bound) for name, cell in study.cells.items() for bound in cell.bounds}
    left = {(cell, row): len(set(study.seeds_of(row)) - set(runs.get(cell, {}).get(row, {}))) for cell, row in wanted}
    return {place: n for place, n in sorted(left.items()) if n}
