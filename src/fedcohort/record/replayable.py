"""A run as its folder holds it, round by round: what was known, who was chosen, and what clients told the server."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.errors import CheckpointError
from fedcohort.record import card, history
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.types import Ids

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LoggedRound:
    """What the log says of a round, t counting from 0.

    Attributes:
        chosen, arrived: sorted ids.
        round_s: virtual seconds.
        signals: those that were logged, by word, each [n_clients] or [n_clients, d], NaN where a client told nothing.
    """

    t: int
    available: Ids
    chosen: Ids
    arrived: Ids
    signals: Mapping[str, np.ndarray]
    round_s: float


@dataclass(frozen=True)
class RunLog:
    """A run as its folder holds it. facts: what the server knew of the clients at the start, by signal word."""

    info: RunInfo
    rounds: Sequence[LoggedRound]
    facts: Mapping[str, np.ndarray]
    words: frozenset[str]

    @property
    def cohort(self) -> int:
        return int(self.info.config["cohort"])

    @property
    def n_clients(self) -> int:
        return len(self.info.n_train)

    @property
    def units(self) -> int:
        """Units of local work that everybody is asked for."""
        client = self.info.config["client"]
        return int(client["epochs"] if client["steps"] is None else client["steps"])


def read(folder: Path) -> RunLog:
    """Read the log in `folder`. Raises `CheckpointError` where it holds no run, or rounds are missing."""
    info = card.load(folder)
    past = history.read(folder)
    if list(past.steps) != list(range(len(past.steps))) or len(past.steps) < 2:
        raise CheckpointError(f"{folder} has no rounds to replay, or its {history.NAME} lacks some of them")
    table = past.clients()
    columns = signals_in([str(name) for name in table.columns]) | {"train_loss": "train_loss"}
    by_step = dict(iter(table.groupby("step")))
    lacking = next((step for step in past.steps[1:] if step not in by_step and past.cohorts[step]), None)
    if lacking is not None:
        raise CheckpointError(f"{folder} lacks the per-client table of round {lacking}")
    clock = past.metrics["time/virtual_s"].to_numpy()
    rounds = [
        LoggedRound(
            t=step - 1,
            available=available(past, step, by_step.get(step, table[:0])),
            chosen=np.asarray(past.cohorts[step], dtype=np.int64),
            arrived=np.asarray(past.arrived[step], dtype=np.int64),
            signals=read_signals(by_step.get(step, table[:0]), columns, len(info.n_train)),
            round_s=float(clock[step] - clock[step - 1]),
        )
        for step in past.steps[1:]
    ]
    facts = {"n_train": info.n_train, "noise_rate": info.noise_rate, "expected_s": info.expected_s}
    once = read_registered(read_signals(by_step[0], columns, len(info.n_train))) if 0 in by_step else {}
    return RunLog(info, rounds, {**once, **facts}, frozenset(columns))


def available(past: History, step: int, rows: "pd.DataFrame") -> Ids:
    """Ids of those who were there, sorted. rows: of the step, everybody's where the journal doesn't say who was."""
    there = past.available(step)
    return np.flatnonzero(rows["available"].to_numpy(dtype=bool) if there is None else there)


def read_signals(
    rows: "pd.DataFrame", columns: Mapping[str, str | list[str]], n_clients: int
) -> dict[str, Float64[np.ndarray, "clients *_d"]]:
    """Read each signal of a step, NaN for those who have no row in it."""
    found = {}
    for word, names in columns.items():
        values = rows[names].to_numpy(dtype=np.float64)
        found[word] = np.full((n_clients, *values.shape[1:]), np.nan)
        found[word][rows["client"].to_numpy()] = values
    return found


def signals_in(names: Sequence[str]) -> dict[str, str | list[str]]:
    """The columns of each signal in the per-client table: one, or one for each number of a row."""
    found: dict[str, str | list[str]] = {}
    for name in names:
        row = re.fullmatch(r"signal_(.+)\.(\d+)", name)
        if row is None:
            found |= {name.removeprefix("signal_"): name} if name.startswith("signal_") else {}
            continue
        word = row.group(1)
        width = sum(re.fullmatch(rf"signal_{re.escape(word)}\.\d+", other) is not None for other in names)
        found[word] = [f"signal_{word}.{i}" for i in range(width)]
    return found


def read_registered(signals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Read what clients told once, of what step 0 has; counts are whole numbers again."""
    facts = {}
    for word, values in signals.items():
        if not np.isnan(values).all():
            counts = values.ndim == 2 and np.array_equal(values, np.rint(values))
            facts[word] = values.astype(np.int64) if counts else values
    return facts
