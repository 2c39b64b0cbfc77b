"""Per-client values of a round, as columns with values for some clients or for all."""

from collections.abc import Iterator, Mapping

import numpy as np

from fedcohort.types import Ids, Values

CLIENT_FLAGS = ("available", "queried", "selected", "arrived")
MAX_RANKED_CLIENTS = 1000  # number of highest-ranked clients that have a row in the per-client table


class ClientFacts(Mapping[str, np.ndarray]):
    """A mapping from names to columns of per-client values, [n_clients]; a missing value is False or NaN.

    Args:
        n_clients: size of the population.
        ids_by_flag: sorted ids of the clients for which each flag of `CLIENT_FLAGS` is true, by name.
        numeric_columns: client ids and their values (integers or float64) of each other column, by name; None instead
            of ids if every client has a value.
    """

    def __init__(
        self,
        n_clients: int,
        ids_by_flag: Mapping[str, Ids],
        numeric_columns: Mapping[str, tuple[Ids | None, np.ndarray]],
    ) -> None:
        self.n_clients, self.ids_by_flag, self.numeric_columns = n_clients, dict(ids_by_flag), dict(numeric_columns)

    @classmethod
    def from_client_columns(cls, columns: Mapping[str, np.ndarray]) -> "ClientFacts":
        """Return the per-client values in `columns`, which have a value for every client, [n_clients], by name."""
        ids_by_flag = {k: np.flatnonzero(v) for k, v in columns.items() if k in CLIENT_FLAGS}
        numeric_columns = {k: (None, v) for k, v in columns.items() if k not in CLIENT_FLAGS}
        return cls(len(next(iter(columns.values()), ())), ids_by_flag, numeric_columns)

    def __getitem__(self, fact: str) -> np.ndarray:
        if fact in self.ids_by_flag:
            return self._read_flag_column(fact, np.arange(self.n_clients))
        client_ids, values = self.numeric_columns[fact]
        return values if client_ids is None else _expand_to_all_clients(client_ids, values, self.n_clients)

    def __iter__(self) -> Iterator[str]:
        yield from (*self.ids_by_flag, *self.numeric_columns)

    def __len__(self) -> int:
        return len(self.ids_by_flag) + len(self.numeric_columns)

    def __or__(self, columns: Mapping[str, np.ndarray]) -> "ClientFacts":
        """Return these facts with the further `columns`, which have a value for every client, [n_clients], by name."""
        further_facts = ClientFacts.from_client_columns(columns)
        return ClientFacts(
            self.n_clients or further_facts.n_clients,
            self.ids_by_flag | further_facts.ids_by_flag,
            self.numeric_columns | further_facts.numeric_columns,
        )

    @property
    def clients_with_rows(self) -> Ids:
        """Sorted ids, int64 [rows], of the clients that have a row in the per-client table.

        They have a flag other than `available`, such as `selected`, or a value that is no score or probability of
        selection. The `MAX_RANKED_CLIENTS` clients that the selector ranked highest have a row as well.
        """
        client_id_groups = [client_ids for fact, client_ids in self.ids_by_flag.items() if fact != "available"]
        for fact, (client_ids, values) in self.numeric_columns.items():
            if not _is_ranking_column(fact):
                client_id_groups.append(np.flatnonzero(~np.isnan(values)) if client_ids is None else client_ids)
        return np.unique(
            np.concatenate([*client_id_groups, self._rank_clients(), np.empty(0, np.int64)]).astype(np.int64)
        )

    def rows_of_clients(self, clients: Ids) -> dict[str, np.ndarray]:
        """Return the values of `clients`, sorted ids, as columns by name, each [len(clients)]."""
        columns: dict[str, np.ndarray] = {fact: self._read_flag_column(fact, clients) for fact in self.ids_by_flag}
        for fact, (client_ids, values) in self.numeric_columns.items():
            columns[fact] = values[clients] if client_ids is None else _align_to_clients(clients, client_ids, values)
        return columns

    def _read_flag_column(self, flag_column: str, clients: Ids) -> np.ndarray:
        client_ids = self.ids_by_flag[flag_column]
        if len(client_ids) == self.n_clients:
            return np.ones(len(clients), dtype=bool)
        has_client_flag = np.zeros(self.n_clients, dtype=bool)
        has_client_flag[client_ids] = True
        return np.asarray(has_client_flag[clients])

    def _rank_clients(self) -> Ids:
        """Return the ids, [n], of the `MAX_RANKED_CLIENTS` clients that the selector ranked highest.

        Clients with a score, a probability or a part of a score are ranked by the first of these that has values.
        """
        column_priority = {"score": 0, "probability": 1}
        column_names = sorted(filter(_is_ranking_column, self.numeric_columns), key=lambda k: column_priority.get(k, 2))
        ranking_columns = [self[fact] for fact in column_names]
        if not ranking_columns:
            return np.empty(0, dtype=np.int64)
        ranked_ids = np.flatnonzero(~np.logical_and.reduce([np.isnan(values) for values in ranking_columns]))
        if len(ranked_ids) <= MAX_RANKED_CLIENTS:
            return ranked_ids
        ranking_values = next((values for values in ranking_columns if not np.isnan(values).all()), ranking_columns[0])[
            ranked_ids
        ]
        return ranked_ids[
            np.argpartition(np.where(np.isnan(ranking_values), np.inf, -ranking_values), MAX_RANKED_CLIENTS)[
                :MAX_RANKED_CLIENTS
            ]
        ]


def _is_ranking_column(column_name: str) -> bool:
    """Return whether the column `column_name` is part of the selector's ranking, which includes unselected clients."""
    return column_name in ("score", "probability") or column_name.startswith("part_")


def _expand_to_all_clients(client_ids: Ids, values: np.ndarray, n_clients: int) -> Values:
    expanded_column = np.full(n_clients, np.nan)
    expanded_column[client_ids] = values
    return expanded_column


def _align_to_clients(clients: Ids, client_ids: Ids, values: np.ndarray) -> Values:
    """Return the `values` of `client_ids` in the order of `clients`, sorted ids, [n]; NaN for a client without one."""
    is_client_requested = np.isin(client_ids, clients)
    positions_in_clients = np.searchsorted(clients, client_ids[is_client_requested]).astype(np.int64)
    return _expand_to_all_clients(positions_in_clients, values[is_client_requested], len(clients))
