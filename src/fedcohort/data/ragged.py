"""Positions of many clients' samples in two arrays, which is faster and smaller than one array per client."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.types import Ids


@dataclass(frozen=True)
class RaggedPositions:
    """Positions of clients' samples, of any number per client.

    Attributes:
        rows: positions of samples, client by client, int64 [N].
        offsets: offset of each client's positions in `rows`, int64 [K + 1]: client k has rows[offsets[k]:offsets[k+1]].
    """

    rows: Ids
    offsets: Ids

    @classmethod
    def from_client_rows(cls, rows_by_client: Sequence[Ids]) -> "RaggedPositions":
        """Return the positions of all clients, given the positions `rows_by_client` of each client, int64 [n_k]."""
        rows = np.concatenate(rows_by_client) if len(rows_by_client) else np.empty(0)
        sizes_by_client = np.fromiter(map(len, rows_by_client), np.int64, len(rows_by_client))
        return cls.from_sizes(rows.astype(np.int64, copy=False), sizes_by_client)

    @classmethod
    def from_sizes(cls, rows: Ids, sizes: Ids) -> "RaggedPositions":
        """Return the positions of all clients from their concatenation.

        Args:
            rows: positions of samples, client by client, int64 [N].
            sizes: number of positions of each client, int64 [K].
        """
        return cls(rows, np.concatenate([[0], np.cumsum(sizes)]))

    def __len__(self) -> int:
        """Return the number of clients."""
        return len(self.offsets) - 1

    def __getitem__(self, client: int) -> Ids:
        """Return a view of the positions of the client with the number `client`, int64 [n_k]."""
        return self.rows[self.offsets[client] : self.offsets[client + 1]]

    @property
    def sizes(self) -> Ids:
        """Number of positions of each client, int64 [K]."""
        return np.diff(self.offsets)

    @property
    def owner(self) -> Ids:
        """Number of the client that holds each of the N positions, int64 [N]."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def split_each_client(self, sizes: Ids) -> tuple[np.ndarray, "RaggedPositions", "RaggedPositions"]:
        """Cut each client's positions into two parts.

        Args:
            sizes: number of positions of each client in the first part, int64 [K].

        Returns:
            Whether each position is in the first part, bool [N]; the first parts; the second parts.
        """
        sizes_of_parts = np.stack([sizes, self.sizes - sizes], axis=1)
        is_first_part = np.repeat(np.tile([True, False], len(self)), sizes_of_parts.ravel())
        second_part_samples = RaggedPositions.from_sizes(self.rows[~is_first_part], self.sizes - sizes)
        return is_first_part, RaggedPositions.from_sizes(self.rows[is_first_part], sizes), second_part_samples

    def count_by_stratum(self, stratum_of_position: Ids, n_strata: int) -> np.ndarray:
        """Return the number of each client's positions in each stratum, int64 [K, n_strata].

        Args:
            stratum_of_position: stratum, such as the class, of each position, int64 [N].
            n_strata: number of strata.
        """
        client_and_stratum = self.owner
        client_and_stratum *= n_strata  # in place: an array of all positions is large
        client_and_stratum += stratum_of_position
        return np.bincount(client_and_stratum, minlength=len(self) * n_strata).reshape(len(self), n_strata)
