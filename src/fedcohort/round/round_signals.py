"""The signals of a round: read from updates, derived by the server, and given to the components that declare them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fedcohort.contracts import check_number, check_signal_answers
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.components import Components
from fedcohort.round.finish import ClosedRound
from fedcohort.round.queries import ClientReports
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Derived, RawUpdate, Reported, find_signal
from fedcohort.types import ClientUpdate, Ids, RoundOutcome, Signals


def requires_update_matrix(components: Components) -> bool:
    """Return whether the matrix of updates must be kept, because one of the `components` reads single updates."""
    reads_updates = any(isinstance(find_signal(signal), RawUpdate | Derived) for signal in components.needed_signals())
    return components.agg.stacked or components.selector.advises or reads_updates


def make_signal_readers(
    components: Components, client_reports: ClientReports, is_fedavg: bool, round: int
) -> dict[str, Callable[[ClientUpdate], float]]:
    """Return functions that read the declared signals and the training loss from an update, by signal.

    A training loss that no component reads is only a metric, and has no noise.

    Args:
        components: the components of the run.
        client_reports: the values that clients report, with the run's attack and noise.
        is_fedavg: whether the round is trained as FedAvg (`Selection.plain`), in which the aggregator reads no signal.
        round: number of the round in which the updates arrive.
    """
    needed_signals = components.needed_signals(is_fedavg)
    signals = {k: find_signal(k) for k in sorted(needed_signals | {"train_loss"})}
    return {
        k: client_reports.make_signal_reader(k, partial(_read_signal, k, s), round if k in needed_signals else None)
        for k, s in signals.items()
        if isinstance(s, Reported)
    }


def _read_signal(signal_name: str, signal: Reported, update: ClientUpdate) -> float:
    return check_number(f"the signal {signal_name!r}: the result of read", signal.read(update), allow_nan=True)


def compute_update_signals(
    components: Components, signal_measurer: SignalAccess, arrivals: Arrivals, is_fedavg: bool
) -> dict[str, Any]:
    """Return the signals that the server computes from the updates, by name; {} if single updates are not kept.

    Args:
        components: the components of the run.
        signal_measurer: gives access to the global model and the data.
        arrivals: the updates that arrived.
        is_fedavg: whether the round is trained as FedAvg (`Selection.plain`), in which the aggregator reads no signal.
    """
    if arrivals.updates is None:
        return {}
    signals = {k: find_signal(k) for k in sorted(components.needed_signals(is_fedavg))}
    signal_values = {n: s.make(signal_measurer, arrivals.updates) for n, s in signals.items() if isinstance(s, Derived)}
    n_arrived_updates = len(arrivals.clients)
    return {k: v if callable(v) else check_signal_answers(k, v, n_arrived_updates) for k, v in signal_values.items()}


def make_round_outcome(component: Any, reader_name: str, closed_round: ClosedRound, arrivals: Arrivals) -> RoundOutcome:  # noqa: ANN401
    """Return the outcome of the round with the signals that a component declares.

    Args:
        component: the component, which declares signals in `signal_names`.
        reader_name: name of the component in messages.
        closed_round: the round after it has closed.
        arrivals: the updates that arrived.
    """
    job_rows = np.searchsorted(closed_round.arrived_jobs.client, arrivals.clients)  # both are sorted
    signal_values: dict[str, Any] = {
        **arrivals.reports,
        **{k: a[job_rows] for k, a in closed_round.agg_answers.items()},
        **arrivals.derived_signals,
    }
    needs, queries = component.needs, closed_round.dispatch.queries
    if arrivals.updates is not None:
        signal_values |= {k: arrivals.updates.cpu().numpy() for k in needs if isinstance(find_signal(k), RawUpdate)}
    return RoundOutcome(
        round=closed_round.round,
        selection=closed_round.selection,
        clients=arrivals.clients,
        failed=list_failed_clients(closed_round, arrivals),
        signals=Signals(signal_values, needs, reader_name),
        probes=queries.select_query_answers(is_query_concurrent=True) if reader_name == "the selector" else {},
        round_s=closed_round.charge.virtual_s,
        announced_s=closed_round.outcome.announced_s,
        sent_round=closed_round.arrived_jobs.broadcast[job_rows],
        reporting_ids=closed_round.reporting_ids,
    )


def list_failed_clients(closed_round: ClosedRound, arrivals: Arrivals) -> Ids:
    """Return the sorted ids, [n], of the clients whose update is lost: of the cohort, and of jobs in flight.

    Args:
        closed_round: the round after it has closed.
        arrivals: the updates that arrived.
    """
    if not closed_round.carries_late_jobs:
        return np.setdiff1d(closed_round.selection.clients, arrivals.clients, assume_unique=True)
    ended_jobs = (closed_round.arrived_jobs, closed_round.dropped_jobs)
    ended_client_ids = np.concatenate([closed_round.selection.clients, *(jobs.client for jobs in ended_jobs)])
    return np.setdiff1d(ended_client_ids, np.concatenate([arrivals.clients, closed_round.jobs_in_flight.jobs.client]))
