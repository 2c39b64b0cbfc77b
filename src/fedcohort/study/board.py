"""A board: rows that are ranked in the same regimes on the same seeds.

    R_c(a)     rank of row a in regime c among the rows, of late means over the seeds that all of them have; 1 is best
    R(a)       mean of R_c(a) over the regimes, which Friedman's test and Nemenyi's distance are of
    interval   95 % of R_c(a) and of R(a) where seeds have weights drawn at random, Exp(1), the same in all regimes of
               a study (the Bayesian bootstrap, Rubin 1981). None below `win.seeds` seeds.
    main       the rows that have half as many runs as the baseline, or more, in the regimes that all of them have

A row that has fewer, as a method of one's own that was just run in two regimes, stands on a board of its own: the main
rows and it, in its regimes, on its seeds. The intervals say what other seeds would give here, not what other regimes
would; that is Nemenyi's question.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.many_tests import critical_distance, friedman_p, rank_rows
from fedcohort.rng import generator
from fedcohort.study.definition import Study
from fedcohort.study.judge import RANKED, Ranks
from fedcohort.study.results import Results

DRAWS = 2000  # of the seeds
SIDES = (2.5, 97.5)  # percent
Late = Mapping[str, Mapping[str, Mapping[int, float]]]  # of a regime: by row and seed
Span = tuple[float, float]  # of an interval, NaN where there is none


@dataclass(frozen=True)
class Board:
    """Who stands where.

    Attributes:
        ranks: over the regimes, best first.
        spread: of each row's mean rank, its interval.
        places: by regime and row, rank and interval.
        seeds: of each regime, those compared.
    """

    ranks: Ranks
    spread: Mapping[str, Span]
    places: Mapping[str, Mapping[str, tuple[float, Span]]]
    seeds: Mapping[str, Sequence[int]]


def late_of(study: Study, found: Results) -> Late:
    """Return the late means of methods and the baseline."""
    late: dict[str, dict[str, dict[int, float]]] = {}
    for (cell, row, seed), facts in found.done():
        if cell in study.cells and study.role_of(row) in RANKED:
            late.setdefault(cell, {}).setdefault(row, {})[seed] = facts["late"]
    return {cell: late[cell] for cell in study.cells if cell in late}


def split_rows(study: Study, late: Late) -> tuple[list[str], list[str]]:
    """Return the main rows, and those that have too few runs to be among them."""
    counts: dict[str, int] = {}
    for of in late.values():
        for row, runs in of.items():
            counts[row] = counts.get(row, 0) + len(runs)
    order = [*(row for row in study.words if row in counts), *(row for row in counts if row not in study.words)]
    main = [row for row in order if 2 * counts[row] >= counts.get(study.baseline, 0)]
    return main, [row for row in order if row not in main]


def rank(study: Study, late: Late, rows: Sequence[str], groups: Mapping[str, str]) -> Board | None:
    """Rank the rows where all of them are; None for fewer than two rows, or no regime.

    groups: of each regime, the study whose seeds are drawn together.
    """
    seeds = {
        cell: sorted(set.intersection(*(set(of[row]) for row in rows)))
        for cell, of in late.items()
        if rows and set(rows) <= set(of)
    }
    seeds = {cell: each for cell, each in seeds.items() if each}
    if len(rows) < 2 or not seeds:
        return None
    values = {cell: np.array([[late[cell][row][seed] for seed in of] for row in rows]) for cell, of in seeds.items()}
    means = np.array([of.mean(axis=1) for of in values.values()])
    ranks = rank_rows(means)
    drawn = {cell: rank_rows(_redraw(of, seeds[cell], groups[cell])) for cell, of in values.items()}
    known = {cell: len(of) >= study.enough for cell, of in seeds.items()}
    spans = {cell: _spans(of, known[cell]) for cell, of in drawn.items()}
    spread = _spans(np.mean(list(drawn.values()), axis=0), all(known.values()))
    overall = {row: float(ranks[:, i].mean()) for i, row in enumerate(rows)}
    distance = critical_distance(len(rows), len(seeds), study.alpha)
    return Board(
        ranks=Ranks(dict(sorted(overall.items(), key=lambda each: each[1])), friedman_p(means), distance, list(seeds)),
        spread=dict(zip(rows, spread, strict=True)),
        places={
            cell: {row: (float(ranks[place, i]), spans[cell][i]) for i, row in enumerate(rows)}
            for place, cell in enumerate(seeds)
        },
        seeds=seeds,
    )


def _redraw(
    values: Float64[np.ndarray, "rows seeds"], seeds: Sequence[int], group: str
) -> Float64[np.ndarray, "draws rows"]:
    """Return the rows' means under random weights of the seeds.

    A seed draws its own weights, whoever else is there: a regime that lacks one weighs the others as its neighbours do.
    """
    weights = np.array([generator(seed, f"board/{group}").standard_exponential(DRAWS) for seed in seeds])
    means: Float64[np.ndarray, "draws rows"] = (values @ (weights / weights.sum(axis=0))).T
    return means


def _spans(drawn: Float64[np.ndarray, "draws rows"], known: bool) -> list[Span]:
    if not known:
        return [(math.nan, math.nan)] * drawn.shape[1]
    low, high = np.percentile(drawn, SIDES, axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))
