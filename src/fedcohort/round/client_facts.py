"""Per-client values of a round, as columns with values for some clients or for all."""

from collections.abc import Iterator, Mapping

import numpy as np

from fedcohort.types import Ids, Values

FLAG_NAMES = ("available", "queried", "selected", "arrived")
MAX_RANKED = 1000  # number of highest-ranked clients that have a row in the per-client table


class ClientFacts(Mapping[str, np.ndarray]):
    """A mapping from names to columns [n_clients]; False or NaN for a client without a value.

    Args:
        n_clients: size of the population.
        flags: sorted ids of the clients for which each flag of `FLAG_NAMES` is true, by name.
        numbers: ids and aligned values (integers or float64) of each other column, by name; None instead of ids if
            every client has a value.
    """

    def __init__(
        self, n_clients: int, flags: Mapping[str, Ids], numbers: Mapping[str, tuple[Ids | None, np.ndarray]]
    ) -> None:
        self.n_clients, self.flags, self.numbers = n_clients, dict(flags), dict(numbers)

    @classmethod
    def from_columns(cls, columns: Mapping[str, np.ndarray]) -> "ClientFacts":
        """Return the per-client values of whole columns, each [n_clients], by name."""
        flags = {name: np.flatnonzero(values) for name, values in columns.items() if name in FLAG_NAMES}
        numbers = {name: (None, values) for name, values in columns.items() if name not in FLAG_NAMES}
        return cls(len(next(iter(columns.values()), ())), flags, numbers)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.flags:
            return self._flag(name, np.arange(self.n_clients))
        ids, values = self.numbers[name]
        return values if ids is None else _fill_column(ids, values, self.n_clients)

    def __iter__(self) -> Iterator[str]:
        yield from (*self.flags, *self.numbers)

    def __len__(self) -> int:
        return len(self.flags) + len(self.numbers)

    def __or__(self, columns: Mapping[str, np.ndarray]) -> "ClientFacts":
        """Return these facts with further whole columns, each [n_clients]."""
        new = ClientFacts.from_columns(columns)
        return ClientFacts(self.n_clients or new.n_clients, self.flags | new.flags, self.numbers | new.numbers)

    @property
    def clients_with_rows(self) -> Ids:
        """Sorted ids of the clients that have a row in the per-client table.

        These clients have a flag other than `available`, or a value that is not a rank, or are among the `MAX_RANKED`
        highest-ranked ones.
        """
        groups = [ids for name, ids in self.flags.items() if name != "available"]
        for name, (ids, values) in self.numbers.items():
            if not _is_ranking_column(name):
                groups.append(np.flatnonzero(~np.isnan(values)) if ids is None else ids)
        return np.unique(np.concatenate([*groups, self._highest(), np.empty(0, np.int64)]).astype(np.int64))

    def rows(self, clients: Ids) -> dict[str, np.ndarray]:
        """Return the values of `clients`, sorted ids, as columns [len(clients)]."""
        columns: dict[str, np.ndarray] = {name: self._flag(name, clients) for name in self.flags}
        for name, (ids, values) in self.numbers.items():
            columns[name] = values[clients] if ids is None else _align_column(clients, ids, values)
        return columns

    def _flag(self, name: str, clients: Ids) -> np.ndarray:
        ids = self.flags[name]
        if len(ids) == self.n_clients:
            return np.ones(len(clients), dtype=bool)
        flag = np.zeros(self.n_clients, dtype=bool)
        flag[ids] = True
        return np.asarray(flag[clients])

    def _highest(self) -> Ids:
        """Return the ids of the `MAX_RANKED` clients that the selector ranked highest.

        Clients with a score, a probability or a part of a score are ranked by the first of these that has values.
        """
        order = {"score": 0, "probability": 1}
        names = sorted(filter(_is_ranking_column, self.numbers), key=lambda name: order.get(name, 2))
        ranking = [self[name] for name in names]
        if not ranking:
            return np.empty(0, dtype=np.int64)
        ranked = np.flatnonzero(~np.logical_and.reduce([np.isnan(values) for values in ranking]))
        if len(ranked) <= MAX_RANKED:
            return ranked
        key = next((values for values in ranking if not np.isnan(values).all()), ranking[0])[ranked]
        return ranked[np.argpartition(np.where(np.isnan(key), np.inf, -key), MAX_RANKED)[:MAX_RANKED]]


def _is_ranking_column(name: str) -> bool:
    """Return whether a column is part of the selector's ranking, which also has values for unselected clients."""
    return name in ("score", "probability") or name.startswith("part_")


def _fill_column(ids: Ids, values: np.ndarray, n_clients: int) -> Values:
    out = np.full(n_clients, np.nan)
    out[ids] = values
    return out


def _align_column(clients: Ids, ids: Ids, values: np.ndarray) -> Values:
    """Return the values of `clients`, sorted ids; NaN for a client that is not in `ids`."""
    is_common = np.isin(ids, clients)
    return _fill_column(np.searchsorted(clients, ids[is_common]).astype(np.int64), values[is_common], len(clients))
