"""Covering arrays: a small number of rows in which every pair of options of two groups occurs."""

import itertools
from collections.abc import Callable, Iterator, Mapping

Pair = tuple[int, int, int, int]  # group, its option, another group, its option


def all_pairs(sizes: list[int]) -> set[Pair]:
    """Return all pairs of options of two groups; `sizes` are the numbers of options."""
    pairs_of_groups = itertools.combinations(range(len(sizes)), 2)
    return {(a, i, b, j) for a, b in pairs_of_groups for i in range(sizes[a]) for j in range(sizes[b])}


def covering_rows(
    sizes: list[int], is_possible: Callable[[Mapping[int, int]], bool] = lambda row: True
) -> Iterator[list[int]]:
    """Yield rows of option numbers; each row starts from an uncovered pair and greedily covers most others.

    Args:
        sizes: number of options of each group.
        is_possible: returns whether the options of some groups, by group, may occur in a row; other pairs are left out.
    """
    columns, uncovered = range(len(sizes)), all_pairs(sizes)
    while uncovered:
        a, i, b, j = min(uncovered)
        row = {a: i, b: j}
        if not is_possible(row):
            uncovered.remove((a, i, b, j))
            continue
        for column in columns:
            if column not in row:
                options = sorted(
                    range(sizes[column]), key=lambda option: -len(_covered_pairs(row, column, option, uncovered))
                )
                row[column] = next(option for option in options if is_possible({**row, column: option}))
        uncovered -= {(a, row[a], b, row[b]) for a, b in itertools.combinations(columns, 2)}
        yield [row[column] for column in columns]


def _covered_pairs(row: dict[int, int], column: int, option: int, uncovered: set[Pair]) -> list[Pair]:
    covered = [(c, w, column, option) if c < column else (column, option, c, w) for c, w in row.items()]
    return [pair for pair in covered if pair in uncovered]
