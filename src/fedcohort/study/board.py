"""A board: rows that are ranked in the same regimes on the same seeds.

    R_c(a)     rank of row a in regime c among the rows, whose mean over the regimes is R(a) (`ranking.py`)
    interval   95 % of R_c(a) and of R(a) where seeds have weights drawn at random, Exp(1), the same in all regimes of
               a study (the Bayesian bootstrap, Rubin 1981). None below `win.seeds` seeds. Means of n seeds vary by
               s sqrt((n - 1) / (n (n + 1))) under such weights, and the interval of t is t_{.975, n-1} s / sqrt(n) wide
               at each side: their distance from the plain mean is stretched by t_{.975, n-1} / z_{.975} times
               sqrt((n + 1) / (n - 1)), 3.1 of three seeds, 1.7 of five, 1.3 of ten. As drawn, 95 % would be 67, 80
               and 88 of a difference of two rows. Noise pulls ranks to the middle, and that of the weights once more:
               of 32 rows as far apart as ours, over 16 regimes and ten seeds, 95 % are 92 of all of them, and some 70
               to 80 of the first two and the last.

A row that is none of the main ones, as a method of one's own that was just run in two regimes, stands on a board of its
own: the main rows and it, in its regimes, on its seeds. The intervals say what other seeds would give here, not what
other regimes would.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.many_tests import rank_rows
from fedcohort.rng import generator
from fedcohort.study import ranking
from fedcohort.study.definition import Study
from fedcohort.study.ranking import Late, Ranks, mean_over_seeds, share

DRAWS = 2000  # of the seeds
SIDES = (2.5, 97.5)  # percent
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


def rank(study: Study, late: Late, rows: Sequence[str], groups: Mapping[str, str]) -> Board | None:
    """Rank the rows where all of them are; None for fewer than two rows, or no regime.

    groups: of each regime, the study whose seeds are drawn together.
    """
    ranks, seeds = ranking.rank(study, late, rows), share(late, rows)
    if ranks is None:
        return None
    values = {cell: np.array([[late[cell][row][seed] for seed in of] for row in rows]) for cell, of in seeds.items()}
    places = rank_rows(mean_over_seeds(late, rows, seeds))
    drawn = {
        cell: rank_rows(redraw(of, seeds[cell], groups[cell]))
        for cell, of in values.items()
        if len(seeds[cell]) >= study.enough
    }
    nothing = [(math.nan, math.nan)] * len(rows)
    spans = {cell: _spans(drawn[cell]) if cell in drawn else nothing for cell in seeds}
    spread = _spans(np.mean(list(drawn.values()), axis=0)) if len(drawn) == len(seeds) else nothing
    return Board(
        ranks=ranks,
        spread=dict(zip(rows, spread, strict=True)),
        places={
            cell: {row: (float(places[at, i]), spans[cell][i]) for i, row in enumerate(rows)}
            for at, cell in enumerate(seeds)
        },
        seeds=seeds,
    )


def redraw(
    values: Float64[np.ndarray, "rows seeds"], seeds: Sequence[int], group: str
) -> Float64[np.ndarray, "draws rows"]:
    """Return the rows' means under random weights of the seeds, two or more, as far from the plain ones as t says.

    A seed draws its own weights, whoever else is there: a regime that lacks one weighs the others as its neighbours do.
    """
    weights = np.array([generator(seed, f"board/{group}").standard_exponential(DRAWS) for seed in seeds])
    plain = values.mean(axis=1)
    drawn: Float64[np.ndarray, "draws rows"] = (values @ (weights / weights.sum(axis=0))).T
    means: Float64[np.ndarray, "draws rows"] = plain + _stretch(len(seeds)) * (drawn - plain)
    return means


def _stretch(n: int) -> float:
    from scipy.stats import norm, t

    wide = float(t.ppf(SIDES[1] / 100, n - 1) / norm.ppf(SIDES[1] / 100))
    return wide * math.sqrt((n + 1) / (n - 1))


def _spans(drawn: Float64[np.ndarray, "draws rows"]) -> list[Span]:
    low, high = np.percentile(drawn, SIDES, axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))
