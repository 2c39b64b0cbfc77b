"""Read a run folder round by round for a replay: available and selected clients, and the values they reported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.draw_log import DrawLog, list_logged_clients
from fedcohort.errors import CheckpointError
from fedcohort.record import history, metadata
from fedcohort.record.history import History
from fedcohort.record.logged_draws import decode_draws
from fedcohort.record.observer import RunInfo
from fedcohort.types import Ids

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LoggedRound:
    """One round of a finished run, as a replay reads it.

    Attributes:
        t: round, counted from 0.
        available: sorted ids of the available clients.
        chosen: sorted ids of the selected clients.
        arrived: sorted ids of the clients whose updates arrived.
        signals: logged signals by name, each float64 [n_clients] or [n_clients, d], NaN if a client did not report.
        round_s: length of the round in virtual seconds.
        draw_log: the draws by which the run's selector chose; None in runs of older versions.
    """

    t: int
    available: Ids
    chosen: Ids
    arrived: Ids
    signals: Mapping[str, np.ndarray]
    round_s: float
    draw_log: DrawLog | None = None


@dataclass(frozen=True)
class RunLog:
    """A finished run, round by round, as a replay reads it.

    Attributes:
        info: metadata of the run.
        rounds: the trained rounds in order.
        facts: what the server knew about the clients at the start, by signal.
        signal_names: names of the logged signals.
    """

    info: RunInfo
    rounds: Sequence[LoggedRound]
    facts: Mapping[str, np.ndarray]
    signal_names: frozenset[str]

    @property
    def cohort(self) -> int:
        """Number of clients that the run requests in each round; its deadline may select more."""
        return int(self.info.config["cohort"])

    @property
    def n_clients(self) -> int:
        """Number of clients of the run."""
        return len(self.info.n_train)

    @property
    def units(self) -> int:
        """Units of local work (epochs, or steps) that a selected client trains, unless the selector sets others."""
        client = self.info.config["client"]
        return int(client["epochs"] if client["steps"] is None else client["steps"])


def read_run_log(folder: Path) -> RunLog:
    """Read the run in `folder`. Raises `CheckpointError` if it holds no run, or rounds are missing or damaged."""
    info = metadata.load_info(folder)
    journal = history.read_history(folder)
    if list(journal.steps) != list(range(len(journal.steps))) or len(journal.steps) < 2:
        raise CheckpointError(
            f"{folder} has no rounds to replay, or its {history.JOURNAL_FILE} lacks some: choose or repeat a run"
        )
    table = journal.clients()
    columns = find_signal_columns([str(name) for name in table.columns]) | {"train_loss": "train_loss"}
    rows_by_step = dict(iter(table.groupby("step")))
    missing_step = next((t for t in journal.steps[1:] if t not in rows_by_step and journal.cohorts[t]), None)
    if missing_step is not None:
        raise CheckpointError(f"{folder} lacks the per-client table of round {missing_step}: repeat the run")
    virtual_times_s = journal.metrics["time/virtual_s"].to_numpy()
    logged_ids = list_logged_clients(info.seed, len(info.n_train))
    rounds = [
        LoggedRound(
            t=step - 1,
            available=read_available(journal, step, rows_by_step.get(step, table[:0])),
            chosen=np.asarray(journal.cohorts[step], dtype=np.int64),
            arrived=np.asarray(journal.arrived[step], dtype=np.int64),
            signals=read_signals(rows_by_step.get(step, table[:0]), columns, len(info.n_train)),
            round_s=float(virtual_times_s[step] - virtual_times_s[step - 1]),
            draw_log=decode_draws(journal.draws[step], logged_ids) if step in journal.draws else None,
        )
        for step in journal.steps[1:]
    ]
    client_facts = {"n_train": info.n_train, "noise_rate": info.noise_rate, "expected_s": info.expected_s}
    if 0 in rows_by_step:
        client_facts = select_facts(read_signals(rows_by_step[0], columns, len(info.n_train))) | client_facts
    return RunLog(info, rounds, client_facts, frozenset(columns))


def read_available(run_history: History, step: int, rows: "pd.DataFrame") -> Ids:
    """Return the sorted ids of the clients that were available in a round.

    Args:
        run_history: the journal.
        step: the round.
        rows: the per-client table of the round, with all clients if the journal lacks their availability.
    """
    is_available = run_history.available(step)
    return np.flatnonzero(rows["available"].to_numpy(dtype=bool) if is_available is None else is_available)


def read_signals(
    rows: "pd.DataFrame", signal_columns: Mapping[str, str | list[str]], n_clients: int
) -> dict[str, Float64[np.ndarray, "clients *_d"]]:
    """Return each signal that clients reported in a round, NaN for clients without a row.

    Args:
        rows: the per-client table of the step.
        signal_columns: column, or columns, of each signal.
        n_clients: number of clients.
    """
    signals = {}
    for signal, column_names in signal_columns.items():
        client_values = rows[column_names].to_numpy(dtype=np.float64)
        signals[signal] = np.full((n_clients, *client_values.shape[1:]), np.nan)
        signals[signal][rows["client"].to_numpy()] = client_values
    return signals


def find_signal_columns(column_names: Sequence[str]) -> dict[str, str | list[str]]:
    """Return the column of each signal in the per-client table, or its columns if the signal is a vector.

    Args:
        column_names: names of all columns of the table.
    """
    signal_columns: dict[str, str | list[str]] = {}
    for name in (name for name in column_names if name.startswith("signal_")):
        signal, _, entry_number = name.removeprefix("signal_").rpartition(".")
        if signal and entry_number.isdecimal():
            n_entries = sum(column.rpartition(".")[0] == f"signal_{signal}" for column in column_names)
            signal_columns[signal] = [f"signal_{signal}.{i}" for i in range(n_entries)]
        else:
            signal_columns[name.removeprefix("signal_")] = name
    return signal_columns


def select_facts(signals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the signals that clients reported at registration; rows of whole numbers become int64.

    `signals` are the values of step 0 by name. Those without any value are left out.
    """
    registered_facts = {}
    for signal, values in signals.items():
        if not np.isnan(values).all():
            is_count = values.ndim == 2 and np.array_equal(values, np.rint(values))
            registered_facts[signal] = values.astype(np.int64) if is_count else values
    return registered_facts
