"""The facts of a round about its clients: a column of each, for the few clients that it concerns or for all."""

from collections.abc import Iterator, Mapping

import numpy as np

from fedcohort.types import Ids, Values

FLAGS = ("available", "queried", "selected", "arrived")
SCORED = 1000  # clients to whom nothing happened but that they were ranked: the best of them that have a row


class ClientFacts(Mapping[str, np.ndarray]):
    """Columns by name, each [n_clients] where it is read like a dictionary: False or NaN where nothing is known.

    Args:
        n_clients: K, the size of the population.
        flags: the sorted ids of those for whom a flag of `FLAGS` holds.
        numbers: ids and values of each other fact, integers or float64, aligned; no ids where every client has a value.
    """

    def __init__(
        self, n_clients: int, flags: Mapping[str, Ids], numbers: Mapping[str, tuple[Ids | None, np.ndarray]]
    ) -> None:
        self.n_clients, self.flags, self.numbers = n_clients, dict(flags), dict(numbers)

    @classmethod
    def from_columns(cls, columns: Mapping[str, np.ndarray]) -> "ClientFacts":
        """Make the facts of whole columns, each [n_clients]."""
        flags = {name: np.flatnonzero(values) for name, values in columns.items() if name in FLAGS}
        numbers = {name: (None, values) for name, values in columns.items() if name not in FLAGS}
        return cls(len(next(iter(columns.values()), ())), flags, numbers)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.flags:
            return self._flag(name, np.arange(self.n_clients))
        ids, values = self.numbers[name]
        return values if ids is None else _scatter(ids, values, self.n_clients)

    def __iter__(self) -> Iterator[str]:
        yield from (*self.flags, *self.numbers)

    def __len__(self) -> int:
        return len(self.flags) + len(self.numbers)

    def __or__(self, columns: Mapping[str, np.ndarray]) -> "ClientFacts":
        """Return these facts with more, each of them a whole column [n_clients]."""
        more = ClientFacts.from_columns(columns)
        return ClientFacts(self.n_clients or more.n_clients, self.flags | more.flags, self.numbers | more.numbers)

    @property
    def concerned(self) -> Ids:
        """The sorted ids of the clients that have a row in the per-client table.

        They were queried, selected, told something or were measured, or are among the `SCORED` ranked best.
        """
        found = [ids for name, ids in self.flags.items() if name != "available"]
        for name, (ids, values) in self.numbers.items():
            if not _ranks(name):
                found.append(np.flatnonzero(~np.isnan(values)) if ids is None else ids)
        return np.unique(np.concatenate([*found, self._best(), np.empty(0, np.int64)]).astype(np.int64))

    def rows(self, clients: Ids) -> dict[str, np.ndarray]:
        """Return the facts of `clients`, sorted ids, as columns [len(clients)]."""
        columns: dict[str, np.ndarray] = {name: self._flag(name, clients) for name in self.flags}
        for name, (ids, values) in self.numbers.items():
            columns[name] = values[clients] if ids is None else _align(clients, ids, values)
        return columns

    def _flag(self, name: str, clients: Ids) -> np.ndarray:
        ids = self.flags[name]
        if len(ids) == self.n_clients:
            return np.ones(len(clients), dtype=bool)
        flag = np.zeros(self.n_clients, dtype=bool)
        flag[ids] = True
        return np.asarray(flag[clients])

    def _best(self) -> Ids:
        """Return the ids of the `SCORED` clients that the selector ranked best.

        Those who have a score, a part of one or a probability are ranked by the first of the three that is known.
        """
        ranking = [self[name] for name in sorted(filter(_ranks, self.numbers), key=_first)]
        if not ranking:
            return np.empty(0, dtype=np.int64)
        known = np.flatnonzero(~np.logical_and.reduce([np.isnan(values) for values in ranking]))
        if len(known) <= SCORED:
            return known
        key = next((values for values in ranking if not np.isnan(values).all()), ranking[0])[known]
        return known[np.argpartition(np.where(np.isnan(key), np.inf, -key), SCORED)[:SCORED]]


def _first(name: str) -> int:
    """Return the place of a fact of a ranking in the order in which such facts decide."""
    return {"score": 0, "probability": 1}.get(name, 2)


def _ranks(name: str) -> bool:
    """Whether the fact is of the selector's ranking, which has one for clients that nothing else happens to."""
    return name in ("score", "probability") or name.startswith("part_")


def _scatter(ids: Ids, values: np.ndarray, n_clients: int) -> Values:
    out = np.full(n_clients, np.nan)
    out[ids] = values
    return out


def _align(clients: Ids, ids: Ids, values: np.ndarray) -> Values:
    """Return the values of `clients`, sorted ids; NaN for those who are not in `ids`."""
    there = np.isin(ids, clients)
    return _scatter(np.searchsorted(clients, ids[there]).astype(np.int64), values[there], len(clients))
