"""Positions of many clients' samples in two arrays: with one array a client, a million of them are slow and large."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.types import Ids


@dataclass(frozen=True)
class Ragged:
    """Rows of positions, one a client, each as long as it likes.

    Attributes:
        rows: positions, client by client, int64 [N].
        offsets: client k has rows[offsets[k]:offsets[k + 1]], int64 [K + 1].
    """

    rows: Ids
    offsets: Ids

    @classmethod
    def of(cls, parts: Sequence[Ids]) -> "Ragged":
        """Make it of one array a client."""
        rows = np.concatenate(parts) if len(parts) else np.empty(0)
        return cls.from_sizes(rows.astype(np.int64, copy=False), np.fromiter(map(len, parts), np.int64, len(parts)))

    @classmethod
    def from_sizes(cls, rows: Ids, sizes: Ids) -> "Ragged":
        """Make it of positions, client by client, and the number of each client's."""
        return cls(rows, np.concatenate([[0], np.cumsum(sizes)]))

    def __len__(self) -> int:
        """The number of clients."""
        return len(self.offsets) - 1

    def __getitem__(self, client: int) -> Ids:
        """A view of the client's positions."""
        return self.rows[self.offsets[client] : self.offsets[client + 1]]

    @property
    def sizes(self) -> Ids:
        """How many positions each client has, int64 [K]."""
        return np.diff(self.offsets)

    @property
    def owner(self) -> Ids:
        """The client whose each position is, int64 [N]."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def cut(self, sizes: Ids) -> tuple[np.ndarray, "Ragged", "Ragged"]:
        """Whether each position is among the first `sizes` [K] of its client, bool [N]; those that are; the others."""
        halves = np.stack([sizes, self.sizes - sizes], axis=1)
        first = np.repeat(np.tile([True, False], len(self)), halves.ravel())
        return (
            first,
            Ragged.from_sizes(self.rows[first], sizes),
            Ragged.from_sizes(self.rows[~first], self.sizes - sizes),
        )

    def counts(self, kind: Ids, kinds: int) -> np.ndarray:
        """How many of each kind every client has, int64 [K, kinds]. kind: of each position in `rows`, int64 [N]."""
        cell = self.owner
        cell *= kinds  # in place: an array of all positions is large
        cell += kind
        return np.bincount(cell, minlength=len(self) * kinds).reshape(len(self), kinds)
