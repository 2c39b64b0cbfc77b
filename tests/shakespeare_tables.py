"""Random lines of Shakespeare roles, in the layout of dataset=shakespeare."""

from pathlib import Path

import numpy as np

from fedcohort.dataset.shakespeare import ALPHABET
from image_tables import write_image_table

LETTERS = ALPHABET[2:]  # neither a line break nor a space


def make_lines(role: int, n: int, length: int = 29) -> list[str]:
    """Return n lines of `length` letters, equal in every call."""
    rng = np.random.default_rng(role)
    return ["".join(LETTERS[i] for i in rng.integers(0, len(LETTERS), length)) for _ in range(n)]


def write_roles(folder: Path, train: dict[int, int], test: dict[int, int]) -> None:
    """Write the first lines of each role for training and the next for the test; arguments: line counts by role."""
    first = {"train": dict.fromkeys(train, 0), "test": train}
    for part, counts in (("train", train), ("test", test)):
        starts = [(role, first[part].get(role, 0), n) for role, n in counts.items()]
        rows = [
            (f"play/R{role}", line) for role, start, n in starts for line in make_lines(role, 99)[start : start + n]
        ]
        write_image_table(folder, part, role=[role for role, _ in rows], line=[line for _, line in rows])
