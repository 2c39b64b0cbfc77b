"""The order of rows and columns."""

from collections.abc import Sequence


def natural(cell: Sequence[str]) -> tuple[tuple[int, float, str], ...]:
    """Sort by it: 10 after 9, and words after numbers."""

    def place(text: str) -> tuple[int, float, str]:
        try:
            return 0, float(text), text
        except ValueError:
            return 1, 0.0, text

    return tuple(map(place, cell))
