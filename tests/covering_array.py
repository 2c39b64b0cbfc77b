"""Covering arrays: a small number of rows in which every pair of options of two groups occurs."""

import itertools
from collections.abc import Iterator

Pair = tuple[int, int, int, int]  # group, its option, another group, its option


def covering_rows(sizes: list[int]) -> Iterator[list[int]]:
    """Yield rows of option numbers; each row starts from an uncovered pair and greedily covers most others."""
    columns = range(len(sizes))
    pairs = itertools.combinations(columns, 2)
    uncovered: set[Pair] = {(a, i, b, j) for a, b in pairs for i in range(sizes[a]) for j in range(sizes[b])}
    while uncovered:
        a, i, b, j = min(uncovered)
        row = {a: i, b: j}
        for column in columns:
            if column not in row:
                row[column] = max(
                    range(sizes[column]), key=lambda option: len(_covered_pairs(row, column, option, uncovered))
                )
        uncovered -= {(a, row[a], b, row[b]) for a, b in itertools.combinations(columns, 2)}
        yield [row[column] for column in columns]


def _covered_pairs(row: dict[int, int], column: int, option: int, uncovered: set[Pair]) -> list[Pair]:
    covered = [(c, w, column, option) if c < column else (column, option, c, w) for c, w in row.items()]
    return [pair for pair in covered if pair in uncovered]
