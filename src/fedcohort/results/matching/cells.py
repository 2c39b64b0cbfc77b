"""The cells of a comparison, (row, column), and the values of options in them."""

from collections import Counter
from collections.abc import Mapping, Sequence

NO_COLUMN = ""  # the column of a comparison without columns
Cell = tuple[str, str]  # row, column


def natural(cell: Sequence[str]) -> tuple[tuple[int, float, str], ...]:
    """Return a key that sorts 10 after 9, and texts after numbers."""

    def key(text: str) -> tuple[int, float, str]:
        try:
            return 0, float(text), text
        except ValueError:
            return 1, 0.0, text

    return tuple(map(key, cell))


def spell(cell: Cell) -> str:
    """Return the cell as text, such as `ucb_cs + scaffold`; only the row without columns."""
    return " + ".join(part for part in cell if part != NO_COLUMN)


def spell_values(values: Mapping[Cell, str]) -> str:
    """Return text such as `0.5 for ucb; 0.1 for random`; values: value of an option by cell."""
    return "; ".join(f"{value} for {', '.join(_where(values, value))}" for value in dict.fromkeys(values.values()))


def _where(values: Mapping[Cell, str], value: str) -> list[str]:
    """Return the columns or rows that have the value, if all of their cells do; else the cells."""
    cells = [cell for cell in values if values[cell] == value]
    for position in (1, 0):
        if _is_determined(values, position) and len({cell[position] for cell in values}) > 1:
            return list(dict.fromkeys(cell[position] for cell in cells))
    return [spell(cell) for cell in cells]


def find_minorities(values: Mapping[Cell, str]) -> set[Cell]:
    """Return the cells whose value differs from the majority of their column; all cells without a majority."""
    odd = set()
    for column in {column for _, column in values}:
        in_column = {cell: value for cell, value in values.items() if cell[1] == column}
        value, count = Counter(in_column.values()).most_common(1)[0]
        odd |= {cell for cell in in_column if in_column[cell] != value or 2 * count <= len(in_column)}
    return odd


def follows_from_choice(name: str, values: Mapping[str, Mapping[Cell, str]]) -> bool:
    """Return whether a cell lacks an option because it has another choice of a group, which is reported anyway.

    Args:
        name: dotted name of the option.
        values: value by option and cell; "none" in a cell without the option.
    """
    parts = name.split(".")
    choices = [values.get(".".join(parts[:n]), {}) for n in range(1, len(parts))]
    return "none" in values[name].values() and any(len(set(choice.values())) > 1 for choice in choices)


def _is_determined(values: Mapping[Cell, str], position: int) -> bool:
    """Return whether all cells of a row (position 0) or of a column (position 1) have the same value."""
    pairs = {(cell[position], value) for cell, value in values.items()}
    return len(pairs) == len({cell[position] for cell in values})
