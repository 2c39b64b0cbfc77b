"""The verdict on a study's results: differences to the baseline, the headroom, and the share of it that a row closes.

All statistics are those of `results/`. Methods are tested in three families: the methods of a setting (marks), the
settings of a method, and all methods in all settings (counts over the grid). Oracles, bounds and rows for reference are
in no family, and keep their own p. A row counts in a comparison of a setting where it has half of the baseline's seeds
or more, since a row that was just begun says little of a spread.
"""

import math
from collections.abc import Mapping
from statistics import median

import numpy as np

from fedcohort.results.correction import ANYWHERE, IN_SETTING, adjust_families, adjust_for_claim
from fedcohort.results.difference import Difference, mean_of, paired_difference, summarise_differences
from fedcohort.results.headroom import ShareClosed, share_closed
from fedcohort.results.power import count_seeds, least_difference
from fedcohort.results.ranks import rank_values
from fedcohort.results.skew import collapses
from fedcohort.results.target import Cost, median_cost
from fedcohort.results.verdict import judge_difference
from fedcohort.results.winner import Winner, cross_fit
from fedcohort.study.definition import BOUND, METHOD, YARDSTICK, Study
from fedcohort.study.places import is_early
from fedcohort.study.ranking import RANKED, Ranks, half_of, late_of, rank, split_rows
from fedcohort.study.results import Results, Row
from fedcohort.study.verdict import COSTS, TO_TARGET, CellVerdict, Headroom, Ps, RowVerdict, Verdict

Runs = Mapping[str, Mapping[int, Row]]  # of a setting: by row and seed
Place = tuple[str, str]  # setting, row
Differences = Mapping[str, Difference]  # of a setting, by row


def judge(study: Study, results: Results) -> Verdict:
    """Return the verdict on each row in each setting, and over all settings."""
    runs = sort_runs(study, results)
    differences = {
        (cell, row): paired_difference(_results(by_row[row]), _results(by_row[study.baseline]))
        for cell, by_row in runs.items()
        for row in by_row
        if row != study.baseline and set(by_row[row]) & set(by_row.get(study.baseline, {}))
    }
    ps = adjust_all(study, {place: difference.p for place, difference in differences.items()})
    cells = {}
    for cell, by_row in runs.items():
        of_cell = {row: differences[cell, row] for row in by_row if (cell, row) in differences}
        cells[cell] = _judge_cell(study, cell, by_row, of_cell, {row: ps[cell, row] for row in of_cell})
    by_method: dict[str, list[Difference]] = {}
    for (_, row), difference in differences.items():
        if study.role_of(row) == METHOD:
            by_method.setdefault(row, []).append(difference)
    collapsing = frozenset(row for row, all_settings in by_method.items() if collapses(all_settings))
    return Verdict(cells, _rank_over_cells(study, results), _missing(study, runs), collapsing)


def sort_runs(study: Study, results: Results) -> dict[str, dict[str, dict[int, Row]]]:
    """Sort the runs that are done, in the study's order; a user's own rows come after the others."""
    runs: dict[str, dict[str, dict[int, Row]]] = {}
    for (cell, row, seed), facts in results.done():
        runs.setdefault(cell, {}).setdefault(row, {})[seed] = facts
    place = {row: i for i, row in enumerate(study.words)}
    return {
        cell: dict(sorted(runs[cell].items(), key=lambda item: (item[0].startswith(BOUND), place.get(item[0], 10**6))))
        for cell in study.cells
        if cell in runs
    }


def adjust_all(study: Study, ps: Mapping[Place, float]) -> dict[Place, Ps]:
    """Correct the p-values of methods for each claim; those of other rows stay as they are.

    Tries of one idea (`variants`) share the family of their settings.
    """
    tested = {place: p for place, p in ps.items() if study.role_of(place[1]) == METHOD}
    variants = {row: name for name, rows in study.variants.items() for row in rows}
    in_setting = adjust_for_claim(tested, IN_SETTING)
    of_method = adjust_families(tested, lambda place: variants.get(place[1], place[1]))
    anywhere = adjust_for_claim(tested, ANYWHERE)
    return {
        place: Ps(in_setting[place], of_method[place], anywhere[place]) if place in tested else Ps(p, p, math.nan)
        for place, p in ps.items()
    }


def _results(runs: Mapping[int, Row]) -> dict[int, float]:
    return {seed: facts["late"] for seed, facts in runs.items()}


def _judge_cell(study: Study, cell: str, runs: Runs, differences: Differences, ps: Mapping[str, Ps]) -> CellVerdict:
    least = max(study.enough, half_of(study, runs))
    headroom = _find_headroom(study, cell, differences, least)
    ranks = _rank_in_cell(study, runs)
    rows = {}
    for row, by_seed in runs.items():
        difference, p = differences.get(row), ps.get(row, Ps(math.nan, math.nan, math.nan))
        values = _results(by_seed)
        verdict = judge_difference(difference, p.in_setting, study.rules) if difference else ""
        rows[row] = RowVerdict(
            row=row,
            role=study.role_of(row),
            value=mean_of(list(values.values())),
            last=float(np.mean([facts["last"] for facts in by_seed.values()])),
            diverged=sum(not math.isfinite(value) for value in values.values()),
            over=difference,
            ps=p,
            verdict=verdict,
            closed=_share(study, difference, headroom),
            rank=ranks.get(row, math.nan),
            costs={name: float(np.mean([facts[name] for facts in by_seed.values()])) for name in COSTS},
            target={
                axis: median_cost([cost_of(facts, axis) for facts in by_seed.values()]).value for axis in TO_TARGET
            },
            reached=sum(math.isfinite(facts["rounds_to_target"]) for facts in by_seed.values()),
            early=sum(is_early(facts["words"], facts["virtual_s"]) for facts in by_seed.values()),
            other_code=sum(bool(facts["differs"]) for facts in by_seed.values()),
        )
    counted = [
        difference
        for row, difference in differences.items()
        if study.role_of(row) == METHOD and difference.n >= least and not difference.reason
    ]
    spread = median(difference.std for difference in counted) if counted else math.nan
    n = int(median(difference.n for difference in counted)) if counted else 0
    return CellVerdict(
        cell=cell,
        rows=rows,
        headroom=headroom,
        seeds=count_seeds(spread, study.worth, study.alpha),
        n=n,
        shows=least_difference(spread, n, study.alpha),
        winner=_find_winner(rows, differences, least),
    )


def cost_of(facts: Row, axis: str) -> Cost:
    """Return what a run had spent at the target, or at its end if it never met the target."""
    value = facts[f"{axis}_to_target"]
    return Cost(value, met=True) if math.isfinite(value) else Cost(float(facts[axis]), met=False)


def _find_headroom(study: Study, cell: str, differences: Differences, least: float) -> Headroom:
    """Return the difference of the setting's oracle; of several, that of choosing one on the other seeds."""
    named = study.cells[cell].oracle
    oracles = [row for row in differences if study.role_of(row) == YARDSTICK and named in (None, row)]
    finite = {row: differences[row] for row in oracles if not differences[row].diverged}
    enough = {row: difference for row, difference in finite.items() if difference.n >= least}
    pool = enough or finite
    if not pool:
        return Headroom(None, None, False, ())
    best = max(pool, key=lambda row: pool[row].mean)
    common = sorted(set.intersection(*(set(difference.by_seed) for difference in pool.values())))
    chosen = (
        cross_fit(np.array([[pool[row].by_seed[seed] for seed in common] for row in pool])) if len(pool) > 1 else None
    )
    difference = pool[best]
    if chosen is not None and chosen.left_out is not None:
        difference = summarise_differences(dict(zip(common, chosen.left_out.values.tolist(), strict=True)))
    is_positive = difference.low > 0 or (not math.isfinite(difference.half) and difference.mean > 0)
    pays = is_positive and difference.mean >= study.least and difference.n >= study.enough
    return Headroom(best, difference, pays, tuple(enough))


def _share(study: Study, difference: Difference | None, headroom: Headroom) -> ShareClosed | None:
    """Return the share of the headroom, over common seeds; None where these are few or show none."""
    if difference is None or headroom.difference is None or not headroom.pays:
        return None
    common = sorted(set(difference.by_seed) & set(headroom.difference.by_seed))
    if len(common) < study.enough:
        return None
    method, oracle = (
        np.array([each[seed] for seed in common]) for each in (difference.by_seed, headroom.difference.by_seed)
    )
    return share_closed(method, oracle, study.least)


def _find_winner(rows: Mapping[str, RowVerdict], differences: Differences, least: float) -> tuple[str, Winner] | None:
    """Return the best method of a setting, cross-fitted over the methods with enough seeds; None if none is better."""
    methods = [row for row in differences if rows[row].role == METHOD and differences[row].n >= least]
    methods = [row for row in methods if not differences[row].diverged]
    if not any(rows[row].sign > 0 for row in methods):
        return None
    common = sorted(set.intersection(*(set(differences[row].by_seed) for row in methods)))
    if not common:
        return None
    winner = cross_fit(np.array([[differences[row].by_seed[seed] for seed in common] for row in methods]))
    name = methods[winner.index]
    return (name, winner) if rows[name].sign > 0 else None


def _rank_in_cell(study: Study, runs: Runs) -> dict[str, float]:
    least = half_of(study, runs)  # a row that was just begun costs the others no seeds, and has no rank
    rows = [row for row in runs if study.role_of(row) in RANKED and len(runs[row]) >= least]
    common = sorted(set.intersection(*(set(runs[row]) for row in rows))) if rows else []
    if not common:
        return {}
    means = np.array([np.mean([runs[row][seed]["late"] for seed in common]) for row in rows])
    return dict(zip(rows, rank_values(means).tolist(), strict=True))


def _rank_over_cells(study: Study, results: Results) -> Ranks | None:
    """Rank the main rows in the settings that they share; None for fewer than three rows or two settings."""
    late = late_of(study, results)
    ranks = rank(study, late, split_rows(study, late)[0])
    return ranks if ranks and len(ranks.mean) > 2 and len(ranks.cells) > 1 else None


def _missing(study: Study, runs: Mapping[str, Runs]) -> dict[Place, int]:
    places = {(cell, row) for cell in study.cells for row in study.words if study.asks(cell, row)}
    places |= {(name, BOUND + bound) for name, cell in study.cells.items() for bound in cell.bounds}
    counts = {(cell, row): len(set(study.seeds_of(row)) - set(runs.get(cell, {}).get(row, {}))) for cell, row in places}
    return {place: n for place, n in sorted(counts.items()) if n}
