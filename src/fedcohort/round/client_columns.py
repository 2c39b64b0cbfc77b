"""The columns of the per-client table of a round: the course of each client's job, its signals and its ranking."""

from collections.abc import Mapping

import numpy as np

from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.components import Components
from fedcohort.round.finish import RoundEnd
from fedcohort.round.late_report import add_late_columns
from fedcohort.round.populations import Populations
from fedcohort.signal.base import Static, find_signal
from fedcohort.types import Ids

MAX_SIGNAL_COLUMNS = 400  # of a signal in the per-client table: `class_loss` of up to 133 classes


def make_client_columns(round_end: RoundEnd, arrivals: Arrivals, n_clients: int) -> ClientFacts:
    """Return the per-client columns of a round.

    Args:
        round_end: the round after it has closed.
        arrivals: the updates that arrived.
        n_clients: size of the population.
    """
    selection, arrived_ids = round_end.selection, arrivals.clients
    started_ids, is_done = round_end.dispatch.jobs.client, round_end.outcome.units_done > 0
    ids_by_flag = {
        "available": round_end.dispatch.ready_ids,
        "queried": round_end.queried_ids,
        "selected": selection.clients,
        "arrived": arrived_ids,
    }
    numeric_columns: dict[str, tuple[Ids | None, np.ndarray]] = {
        "units": (started_ids, round_end.outcome.units_done),
        "finish_s": (started_ids, np.where(is_done, round_end.outcome.finish_s, np.nan)),
        **{k: (started_ids, values) for k, values in name_phase_columns(round_end.outcome).items()},
        "train_loss": (arrived_ids, arrivals.reports["train_loss"]),
        "weight": (arrived_ids, arrivals.weights),
    }
    if round_end.carries_jobs:
        numeric_columns = add_late_columns(numeric_columns, round_end)
    ranking_columns = {
        "score": selection.scores,
        **{f"part_{k}": score_term for k, score_term in selection.score_terms.items()},
    }
    ranking_columns |= {"reward": selection.reward, "probability": selection.probability}
    numeric_columns |= {k: (None, values) for k, values in ranking_columns.items() if values is not None}
    signals = {k: (arrived_ids, values) for k, values in arrivals.reports.items() if k != "train_loss"}
    derived_signals = arrivals.derived_signals.items()
    signals |= {k: (arrived_ids, values) for k, values in derived_signals if isinstance(values, np.ndarray)}
    signals |= {k: (a.clients, a.values) for k, a in round_end.dispatch.queries.answers.items()}
    for signal, (client_ids, values) in signals.items():
        numeric_columns |= {k: (client_ids, c) for k, c in make_signal_columns(signal, values).items()}
    return ClientFacts(n_clients, ids_by_flag, numeric_columns)


def make_attacker_column(attackers: np.ndarray, round_end: RoundEnd | None) -> dict[str, np.ndarray]:
    """Return a column that is 1 for attackers and 0 for other clients, by name; {} without attackers.

    Args:
        attackers: which clients attack, bool [n_clients].
        round_end: the round, whose cohort has values; None before the first round, where all clients have one.
    """
    if not attackers.any():
        return {}
    is_attacker = attackers.astype(np.float64)
    if round_end is not None:
        is_attacker[np.setdiff1d(np.arange(len(is_attacker)), round_end.selection.clients)] = np.nan
    return {"attacker": is_attacker}


def name_phase_columns(outcome: DeadlineOutcome) -> Mapping[str, np.ndarray]:
    """Return the requested units and the seconds of each phase of the selected clients' jobs, each [m], by column name.

    `outcome` has the units and seconds of the round's jobs.
    """
    return {"units_asked": outcome.units_asked, **{f"{k}_s": s for k, s in outcome.phase_s.items()}}


def make_signal_columns(signal: str, signal_values: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return the columns of a signal by name: `signal_<name>`, or `signal_<name>.0`, `.1`, ... for rows of values.

    There are none for rows of more than `MAX_SIGNAL_COLUMNS` values: a compressed gradient can be as long as the model.
    A signal of pairs of clients has as many columns as the round has clients; a smaller round leaves the others null.

    Args:
        signal: name of the signal.
        signal_values: a number or a row of numbers for each client, [n] or [n, d].
    """
    if signal_values.ndim == 1:
        return {f"signal_{signal}": signal_values}
    if signal_values.shape[1] > MAX_SIGNAL_COLUMNS:
        return {}
    return {f"signal_{signal}.{i}": dimension for i, dimension in enumerate(signal_values.T)}


def list_registered_signals(components: Components, populations: Populations) -> ClientFacts:
    """Return the signals that clients sent when they registered and that the selector declares, as columns.

    Args:
        components: the components of the run.
        populations: the static facts of the clients.
    """
    columns: dict[str, np.ndarray] = {}
    for name in sorted(components.selector.needs):
        if isinstance(signal := find_signal(name), Static):
            columns |= make_signal_columns(name, populations.read_reported(name, signal).astype(np.float64))
    return ClientFacts.from_columns(columns)
