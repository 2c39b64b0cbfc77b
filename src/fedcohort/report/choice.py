"""A round to be explained: who was there, what each client scored and of which parts, who was selected, who arrived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from fedcohort.record.history import History
from fedcohort.types import Ids, Values

IDLE, AWAY, LATE, ARRIVED = range(4)
Fates = Int[np.ndarray, "_n"]
BEST, MOST = 30, 60  # rows: everybody up to `MOST`, else the best by score and all who were selected


@dataclass(frozen=True)
class ExplainedRound:
    """What a round made of each client.

    Attributes:
        score, parts, probability: NaN where unknown; probability is None where nobody draws.
        fate: what became of each, IDLE, AWAY, LATE (selected, and nothing came of it) or ARRIVED.
    """

    step: int
    score: Values
    parts: Mapping[str, Values]
    probability: Values | None
    fate: Fates

    @property
    def key(self) -> Values:
        """What the clients are ranked by."""
        return self.score if self.probability is None or not np.isnan(self.score).all() else self.probability

    @property
    def selected(self) -> Bool[np.ndarray, "_n"]:
        return np.isin(self.fate, (ARRIVED, LATE))

    @property
    def ranking(self) -> Ids:
        """Everybody's id: the best first, at equal scores those selected, then by id; without a score last."""
        value = np.where(np.isnan(self.key), -np.inf, self.key)
        return np.lexsort((np.arange(len(value)), ~self.selected, np.isnan(self.key), -value))

    @property
    def stacked(self) -> bool:
        """Whether a score is the sum of its parts."""
        if len(self.parts) < 2:
            return False
        total = sum_parts(list(self.parts.values()))
        finite = np.isfinite(self.score)
        size = np.abs(self.score[finite]).max(initial=0.0)
        return bool(finite.any() and np.allclose(total[finite], self.score[finite], rtol=1e-6, atol=1e-9 * size))


def sum_parts(parts: Sequence[Values]) -> Values:
    """Add up the parts of a score; NaN where one is NaN, or two are infinite and of opposite sign."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(parts, axis=0))


def explain(history: History) -> list[int]:
    """Return the rounds in which somebody was selected and somebody scored, or had a known probability."""
    table = history.clients(["selected", "score", "probability"], first=1)
    columns = [name for name in ("score", "probability") if name in table]
    if not columns or not len(table):
        return []
    by_step = table.assign(known=table[columns].notna().any(axis=1)).groupby("step")[["selected", "known"]].any()
    return [int(step) for step in by_step.index[by_step.all(axis=1)]]


def fates(available: np.ndarray, selected: np.ndarray, arrived: np.ndarray) -> Fates:
    """Return the code of each client's fate, from its flags."""
    codes = np.select([selected & arrived, selected, ~available], [ARRIVED, LATE, AWAY], IDLE)
    return codes.astype(np.int8)


def load(history: History, step: int) -> ExplainedRound:
    """Read the facts of round `step`: who was there, and the per-client table of those whom it concerned."""
    table = history.clients(first=step)
    rows = table[table["step"] == step]
    known = history.available(step)
    there = rows["available"].to_numpy(dtype=bool) if known is None else known
    clients = rows["client"].to_numpy()

    def column(name: str) -> Values:
        values = np.full(len(there), np.nan)
        if name in rows:
            values[clients] = rows[name].to_numpy(dtype=np.float64)
        return values

    def flags(name: str) -> Bool[np.ndarray, "_n"]:
        flag = np.zeros(len(there), dtype=bool)
        flag[clients] = rows[name].to_numpy(dtype=bool)
        return flag

    parts = {str(name)[5:]: column(str(name)) for name in rows.columns if str(name).startswith("part_")}
    chance = column("probability")
    return ExplainedRound(
        step=step,
        score=column("score"),
        parts={name: values for name, values in parts.items() if not np.isnan(values).all()},
        probability=None if np.isnan(chance).all() else chance,
        fate=fates(there, flags("selected"), flags("arrived")),
    )


def choose_rows(round: ExplainedRound) -> Ids:
    """Choose the clients that have a row, best first: all with a score or selected, where they are at most `MOST`.

    Of more than that, the best `BEST` and all selected; at most `MOST`.
    """
    ranking = round.ranking
    scored, selected = ~np.isnan(round.key[ranking]), round.selected[ranking]
    known: Ids = ranking[scored | selected]
    if len(known) <= MOST:
        return known
    place = np.arange(len(ranking))
    rows: Ids = ranking[(place < BEST) & scored | selected][:MOST]
    return rows
