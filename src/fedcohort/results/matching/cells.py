"""The cells of a comparison, (row, column), and which values an option has in them."""

from collections import Counter
from collections.abc import Mapping, Sequence

ONE = ""  # the only column where none was asked for
Cell = tuple[str, str]  # row, column


def natural(cell: Sequence[str]) -> tuple[tuple[int, float, str], ...]:
    """Return a key to sort by: 10 after 9, and words after numbers."""

    def key(text: str) -> tuple[int, float, str]:
        try:
            return 0, float(text), text
        except ValueError:
            return 1, 0.0, text

    return tuple(map(key, cell))


def spell(cell: Cell) -> str:
    """Return `ucb_cs + scaffold`, or the row without columns."""
    return " + ".join(part for part in cell if part != ONE)


def spell_values(values: Mapping[Cell, str]) -> str:
    """Return `0.5 for ucb; 0.1 for random`; values: of an option, by cell."""
    return "; ".join(f"{value} for {', '.join(_where(values, value))}" for value in dict.fromkeys(values.values()))


def _where(values: Mapping[Cell, str], value: str) -> list[str]:
    """Return the columns or rows that have the value, if whole ones do; else the cells."""
    cells = [cell for cell in values if values[cell] == value]
    for position in (1, 0):
        if _is_determined(values, position) and len({cell[position] for cell in values}) > 1:
            return list(dict.fromkeys(cell[position] for cell in cells))
    return [spell(cell) for cell in cells]


def find_minorities(values: Mapping[Cell, str]) -> set[Cell]:
    """Return the cells whose value is not that of most of their column; all of them if there is no such value."""
    odd = set()
    for col in {col for _, col in values}:
        inside = {cell: value for cell, value in values.items() if cell[1] == col}
        value, count = Counter(inside.values()).most_common(1)[0]
        odd |= {cell for cell in inside if inside[cell] != value or 2 * count <= len(inside)}
    return odd


def comes_along(name: str, every: Mapping[str, Mapping[Cell, str]]) -> bool:
    """Return whether a cell lacks an option because it has another choice of a group, which is reported anyway."""
    parts = name.split(".")
    words = [every.get(".".join(parts[:n]), {}) for n in range(1, len(parts))]
    return "none" in every[name].values() and any(len(set(of.values())) > 1 for of in words)


def _is_determined(values: Mapping[Cell, str], position: int) -> bool:
    """Return whether all cells of a row (position 0) or of a column (position 1) have one value."""
    pairs = {(cell[position], value) for cell, value in values.items()}
    return len(pairs) == len({cell[position] for cell in values})
