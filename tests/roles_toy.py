"""Lines of made-up roles."""

from pathlib import Path

import numpy as np

from fedcohort.dataset.shakespeare import CHARACTERS
from pictures_toy import write

LETTERS = CHARACTERS[2:]  # neither a line break nor a space


def lines(role: int, n: int, length: int = 29) -> list[str]:
    """n lines of so many letters, the same in every call."""
    rng = np.random.default_rng(role)
    return ["".join(LETTERS[i] for i in rng.integers(0, len(LETTERS), length)) for _ in range(n)]


def save(folder: Path, train: dict[int, int], test: dict[int, int]) -> None:
    """Write the first lines of each role into one part, and the next ones into the other: role -> number of lines."""
    first = {"train": dict.fromkeys(train, 0), "test": train}
    for part, counts in (("train", train), ("test", test)):
        starts = [(role, first[part].get(role, 0), n) for role, n in counts.items()]
        rows = [(f"play/R{role}", line) for role, start, n in starts for line in lines(role, 99)[start : start + n]]
        write(folder, part, role=[role for role, _ in rows], line=[line for _, line in rows])
