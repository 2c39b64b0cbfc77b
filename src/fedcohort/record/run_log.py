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
        available_ids: sorted ids of the available clients.
        cohort: sorted ids of the selected clients.
        arrived_ids: sorted ids of the clients whose updates arrived.
        signals: logged signals by name, each float64 [n_clients] or [n_clients, d], NaN if a client did not report.
        round_s: length of the round in virtual seconds.
        draw_log: the draws by which the run's selector chose; None in runs of older versions.
    """

    t: int
    available_ids: Ids
    cohort: Ids
    arrived_ids: Ids
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
    def local_units(self) -> int:
        """Units of local work (epochs, or steps) that a selected client trains, unless the selector sets others."""
        client_options = self.info.config["client"]
        return int(client_options["epochs"] if client_options["steps"] is None else client_options["steps"])


def read_run_log(run_path: Path) -> RunLog:
    """Read the run in `run_path`. Raises `CheckpointError` if it holds no run, or rounds are missing or damaged."""
    info, run_history = metadata.load_info(run_path), history.read_history(run_path)
    if list(run_history.steps) != list(range(len(run_history.steps))) or len(run_history.steps) < 2:
        raise CheckpointError(
            f"{run_path} has no rounds to replay, or its {history.JOURNAL_FILE} lacks some: choose or repeat a run"
        )
    client_table = run_history.clients()
    signal_columns = find_signal_columns([str(name) for name in client_table.columns]) | {"train_loss": "train_loss"}
    rows_by_step = dict(iter(client_table.groupby("step")))
    missing_step = next(
        (
            round_number
            for round_number in run_history.steps[1:]
            if round_number not in rows_by_step and run_history.cohorts[round_number]
        ),
        None,
    )
    if missing_step is not None:
        raise CheckpointError(f"{run_path} lacks the per-client table of round {missing_step}: repeat the run")
    virtual_times_s = run_history.metrics["time/virtual_s"].to_numpy()
    logged_ids = list_logged_clients(info.seed, len(info.n_train))
    logged_rounds = [
        LoggedRound(
            t=step - 1,
            available_ids=read_available_ids(run_history, step, rows_by_step.get(step, client_table[:0])),
            cohort=np.asarray(run_history.cohorts[step], dtype=np.int64),
            arrived_ids=np.asarray(run_history.arrived[step], dtype=np.int64),
            signals=read_signals(rows_by_step.get(step, client_table[:0]), signal_columns, len(info.n_train)),
            round_s=float(virtual_times_s[step] - virtual_times_s[step - 1]),
            draw_log=decode_draws(run_history.draws[step], logged_ids) if step in run_history.draws else None,
        )
        for step in run_history.steps[1:]
    ]
    client_facts = {"n_train": info.n_train, "noise_rate": info.noise_rate, "expected_s": info.expected_s}
    if 0 in rows_by_step:
        client_facts = select_facts(read_signals(rows_by_step[0], signal_columns, len(info.n_train))) | client_facts
    return RunLog(info, logged_rounds, client_facts, frozenset(signal_columns))


def read_available_ids(run_history: History, step: int, client_rows: "pd.DataFrame") -> Ids:
    """Return the sorted ids of the clients that were available in a round.

    Args:
        run_history: the journal.
        step: the round.
        client_rows: the per-client table of the round, with all clients if the journal lacks their availability.
    """
    is_available = run_history.available(step)
    return np.flatnonzero(client_rows["available"].to_numpy(dtype=bool) if is_available is None else is_available)


def read_signals(
    client_rows: "pd.DataFrame", signal_columns: Mapping[str, str | list[str]], n_clients: int
) -> dict[str, Float64[np.ndarray, "clients *_d"]]:
    """Return each signal that clients reported in a round, NaN for clients without a row.

    Args:
        client_rows: the per-client table of the step.
        signal_columns: column, or columns, of each signal.
        n_clients: number of clients.
    """
    rows_by_client = client_rows.set_index("client")
    client_values = {k: rows_by_client[columns].reindex(range(n_clients)) for k, columns in signal_columns.items()}
    return {k: values.to_numpy(dtype=np.float64) for k, values in client_values.items()}


def find_signal_columns(column_names: Sequence[str]) -> dict[str, str | list[str]]:
    """Return the column of each signal in the per-client table, or its columns if the signal is a vector.

    Args:
        column_names: names of all columns of the table.
    """
    signal_columns: dict[str, str | list[str]] = {}
    for column_name in (column_name for column_name in column_names if column_name.startswith("signal_")):
        signal, _, entry_number = column_name.removeprefix("signal_").rpartition(".")
        if signal and entry_number.isdecimal():
            n_entries = sum(other_column.rpartition(".")[0] == f"signal_{signal}" for other_column in column_names)
            signal_columns[signal] = [f"signal_{signal}.{i}" for i in range(n_entries)]
        else:
            signal_columns[column_name.removeprefix("signal_")] = column_name
    return signal_columns


def select_facts(values_by_signal: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the signals that clients reported at registration, by name; signals that no client reported are left out.

    `values_by_signal` are the values at step 0 by signal, [n_clients] or [n_clients, d] each, NaN if not reported.
    Vectors of whole numbers become int64.
    """
    registered_facts = {}
    for signal_name, signal_values in values_by_signal.items():
        if not np.isnan(signal_values).all():
            is_integer_vector = signal_values.ndim == 2 and np.array_equal(signal_values, np.rint(signal_values))
            registered_facts[signal_name] = signal_values.astype(np.int64) if is_integer_vector else signal_values
    return registered_facts
