"""Covering arrays: few rows of words in which every pair of words of two groups occurs."""

import itertools
from collections.abc import Iterator

Pair = tuple[int, int, int, int]  # group, word, another group, its word


def covering(sizes: list[int]) -> Iterator[list[int]]:
    """Rows of word numbers in which every pair occurs: each takes an open pair, then what closes most others."""
    columns = range(len(sizes))
    pairs = itertools.combinations(columns, 2)
    left: set[Pair] = {(a, i, b, j) for a, b in pairs for i in range(sizes[a]) for j in range(sizes[b])}
    while left:
        a, i, b, j = min(left)
        row = {a: i, b: j}
        for column in columns:
            if column not in row:
                row[column] = max(range(sizes[column]), key=lambda word: len(_closed(row, column, word, left)))
        left -= {(a, row[a], b, row[b]) for a, b in itertools.combinations(columns, 2)}
        yield [row[column] for column in columns]


def _closed(row: dict[int, int], column: int, word: int, left: set[Pair]) -> list[Pair]:
    found = [(c, w, column, word) if c < column else (column, word, c, w) for c, w in row.items()]
    return [pair for pair in found if pair in left]
