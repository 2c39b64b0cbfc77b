"""The columns of the per-client table of a round: the course of each client's job, its signals and its ranking."""

from collections.abc import Mapping

import numpy as np

from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.components import Components
from fedcohort.round.finish import ClosedRound
from fedcohort.round.late_report import add_late_clients
from fedcohort.round.populations import Populations
from fedcohort.signal.base import Static, find_signal
from fedcohort.types import Ids

MAX_SIGNAL_COLUMNS = 400  # of a signal in the per-client table: `class_loss` of up to 133 classes


def make_client_columns(closed_round: ClosedRound, arrivals: Arrivals, n_clients: int) -> ClientFacts:
    """Return the columns of a round's per-client table: flags, the course of jobs, signals and the selector's ranking.

    Args:
        closed_round: the round after it has closed.
        arrivals: the updates that arrived.
        n_clients: size of the population.
    """
    selection, arrived_ids = closed_round.selection, arrivals.clients
    started_ids, has_job_finished = closed_round.dispatch.jobs.client, closed_round.outcome.units_done > 0
    ids_by_flag = {
        "available": closed_round.dispatch.ready_ids,
        "queried": closed_round.queried_ids,
        "selected": selection.clients,
        "arrived": arrived_ids,
    }
    numeric_columns: dict[str, tuple[Ids | None, np.ndarray]] = {
        "units": (started_ids, closed_round.outcome.units_done),
        "finish_s": (started_ids, np.where(has_job_finished, closed_round.outcome.finish_s, np.nan)),
        **{k: (started_ids, v) for k, v in make_phase_columns(closed_round.outcome).items()},
        "train_loss": (arrived_ids, arrivals.reports["train_loss"]),
        "weight": (arrived_ids, arrivals.weights),
    }
    if closed_round.carries_late_jobs:
        numeric_columns = add_late_clients(numeric_columns, closed_round)
    ranking_columns = {"score": selection.scores, **{f"part_{k}": v for k, v in selection.score_terms.items()}}
    ranking_columns |= {"reward": selection.reward, "probability": selection.probability}
    numeric_columns |= {k: (None, v) for k, v in ranking_columns.items() if v is not None}
    signal_columns = {k: (arrived_ids, v) for k, v in arrivals.reports.items() if k != "train_loss"}
    signal_columns |= {k: (arrived_ids, v) for k, v in arrivals.derived_signals.items() if isinstance(v, np.ndarray)}
    signal_columns |= {k: (a.clients, a.values) for k, a in closed_round.dispatch.queries.answers_by_signal.items()}
    for signal, (client_ids, v) in signal_columns.items():
        numeric_columns |= {k: (client_ids, c) for k, c in make_signal_columns(signal, v).items()}
    return ClientFacts(n_clients, ids_by_flag, numeric_columns)


def make_attacker_column(is_attacker: np.ndarray, closed_round: ClosedRound | None) -> dict[str, np.ndarray]:
    """Return a column that is 1 for attackers and 0 for other clients, by name; {} without attackers.

    Args:
        is_attacker: which clients attack, bool [n_clients].
        closed_round: the round, in which clients with a job have values; None before the first round, where all clients
            have one.
    """
    if not is_attacker.any():
        return {}
    attacker_column = is_attacker.astype(np.float64)
    if closed_round is not None:
        in_flight_ids = closed_round.jobs_in_flight.jobs.client
        ids_with_job = np.concatenate([closed_round.selection.clients, closed_round.reporting_ids, in_flight_ids])
        attacker_column[np.setdiff1d(np.arange(len(attacker_column)), ids_with_job)] = np.nan
    return {"attacker": attacker_column}


def make_phase_columns(deadline_outcome: DeadlineOutcome) -> Mapping[str, np.ndarray]:
    """Return requested work units and the seconds of each phase of the m selected clients' jobs, each [m], by column.

    A work unit is an epoch or a step. `deadline_outcome` has the units and seconds of the round's jobs.
    """
    return {"units_asked": deadline_outcome.units_asked, **{f"{k}_s": s for k, s in deadline_outcome.phase_s.items()}}


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
    return {f"signal_{signal}.{i}": signal_column for i, signal_column in enumerate(signal_values.T)}


def list_registered_signals(components: Components, populations: Populations) -> ClientFacts:
    """Return the signals that clients sent when they registered and that the selector declares, as columns.

    Args:
        components: the components of the run.
        populations: the static facts of the clients.
    """
    columns: dict[str, np.ndarray] = {}
    for k in sorted(components.selector.needs):
        if isinstance(signal := find_signal(k), Static):
            columns |= make_signal_columns(k, populations.read_reported_values(k, signal).astype(np.float64))
    return ClientFacts.from_client_columns(columns)
