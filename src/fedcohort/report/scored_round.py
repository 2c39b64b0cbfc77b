"""The selection of one round: availability, score, components of the score, and outcome of each client."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from fedcohort.record.history import History
from fedcohort.types import Ids, Values

IDLE, AWAY, TOO_LATE, ARRIVED = range(4)
Outcomes = Int[np.ndarray, "_n"]
N_BEST, MAX_ROWS = 30, 60  # rows: up to `MAX_ROWS` all clients, otherwise the best by score and the selected ones


@dataclass(frozen=True)
class ScoredRound:
    """The selection of one round, for all clients.

    Attributes:
        step: the round.
        score: score of each client, NaN if unknown.
        parts: components of the scores by name, NaN if unknown.
        probability: selection probability of each client; None if the selector does not draw.
        outcome: outcome of each client: IDLE, AWAY, TOO_LATE (selected, but no update arrived) or ARRIVED.
    """

    step: int
    score: Values
    parts: Mapping[str, Values]
    probability: Values | None
    outcome: Outcomes

    @property
    def key(self) -> Values:
        """The values by which the clients are ranked."""
        return self.score if self.probability is None or not np.isnan(self.score).all() else self.probability

    @property
    def selected(self) -> Bool[np.ndarray, "_n"]:
        """Which clients were selected."""
        return np.isin(self.outcome, (ARRIVED, TOO_LATE))

    @property
    def ranking(self) -> Ids:
        """Ids of all clients, the best first; among equals selected clients first, then by id; no score last."""
        value = np.where(np.isnan(self.key), -np.inf, self.key)
        return np.lexsort((np.arange(len(value)), ~self.selected, np.isnan(self.key), -value))


def list_scored_rounds(history: History) -> list[int]:
    """Return the rounds in which a client was selected and a client had a score or a selection probability."""
    table = history.clients(["selected", "score", "probability"], first=1)
    columns = [name for name in ("score", "probability") if name in table]
    if not columns or not len(table):
        return []
    rows_by_step = table.assign(scored=table[columns].notna().any(axis=1)).groupby("step")[["selected", "scored"]].any()
    return [int(step) for step in rows_by_step.index[rows_by_step.all(axis=1)]]


def outcomes_of(available: np.ndarray, selected: np.ndarray, arrived: np.ndarray) -> Outcomes:
    """Return for each client whether it was idle, away, too late, or arrived in the round."""
    codes = np.select([selected & arrived, selected, ~available], [ARRIVED, TOO_LATE, AWAY], IDLE)
    return codes.astype(np.int8)


def load_scored_round(history: History, step: int) -> ScoredRound:
    """Read one round from the journal and the per-client table."""
    table = history.clients(first=step)
    rows = table[table["step"] == step].set_index("client")
    in_journal = history.available(step)
    available = rows["available"].to_numpy(dtype=bool) if in_journal is None else in_journal
    by_client = rows.reindex(index=range(len(available))).dropna(axis="columns", how="all").astype(float)
    columns: dict[str, Values] = {str(name): values.to_numpy() for name, values in by_client.items()}
    nothing = np.full(len(available), np.nan)
    selected, arrived = (columns.get(name, nothing) == 1 for name in ("selected", "arrived"))
    return ScoredRound(
        step=step,
        score=columns.get("score", nothing),
        parts={name[5:]: values for name, values in columns.items() if name.startswith("part_")},
        probability=columns.get("probability"),
        outcome=outcomes_of(available, selected, arrived),
    )


def choose_rows(round: ScoredRound) -> Ids:
    """Return the clients that have a row, best first.

    These are all clients with a score or a selection, if there are at most `MAX_ROWS` of them. Otherwise they are the
    best `N_BEST` and all selected clients, `MAX_ROWS` at most.
    """
    ranking = round.ranking
    scored, selected = ~np.isnan(round.key[ranking]), round.selected[ranking]
    if (scored | selected).sum() > MAX_ROWS:
        scored[N_BEST:] = False
    rows: Ids = ranking[scored | selected][:MAX_ROWS]
    return rows
