"""The cells of a comparison, and in which of them a setting has which value."""

from collections import Counter
from collections.abc import Mapping

ONE = ""  # the only column where none was asked for
Cell = tuple[str, str]  # row, column


def spell(cell: Cell) -> str:
    """`ucb_cs + scaffold`, or the row alone where there are no columns."""
    return " + ".join(part for part in cell if part != ONE)


def spell_values(values: Mapping[Cell, str]) -> str:
    """`0.5 for ucb; 0.1 for random`. values: of a setting, by cell."""
    return "; ".join(f"{value} for {', '.join(_where(values, value))}" for value in dict.fromkeys(values.values()))


def _where(values: Mapping[Cell, str], value: str) -> list[str]:
    """The columns or rows that have it, where whole ones do; else the cells."""
    cells = [cell for cell in values if values[cell] == value]
    for place in (1, 0):
        if _is_determined(values, place) and len({cell[place] for cell in values}) > 1:
            return list(dict.fromkeys(cell[place] for cell in cells))
    return [spell(cell) for cell in cells]


def find_minorities(values: Mapping[Cell, str]) -> set[Cell]:
    """The cells whose value isn't that of most of their column; all of them where there is no such value."""
    odd = set()
    for col in {col for _, col in values}:
        inside = {cell: value for cell, value in values.items() if cell[1] == col}
        value, count = Counter(inside.values()).most_common(1)[0]
        odd |= {cell for cell in inside if inside[cell] != value or 2 * count <= len(inside)}
    return odd


def comes_along(name: str, every: Mapping[str, Mapping[Cell, str]]) -> bool:
    """Whether an option is lacking in a cell because that has another word, which is said anyway."""
    parts = name.split(".")
    words = [every.get(".".join(parts[:n]), {}) for n in range(1, len(parts))]
    return "none" in every[name].values() and any(len(set(of.values())) > 1 for of in words)


def _is_determined(values: Mapping[Cell, str], place: int) -> bool:
    """Whether all cells of a row (place 0) or of a column (place 1) have one value, whichever that is."""
    pairs = {(cell[place], value) for cell, value in values.items()}
    return len(pairs) == len({cell[place] for cell in values})
