"""The signals of a round: read from updates, derived by the server, and given to the components that declare them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fedcohort.contracts import check_answers, check_number
from fedcohort.round.collected import Collected
from fedcohort.round.components import Components
from fedcohort.round.finish import Finished
from fedcohort.round.queries import ClientReports
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Derived, RawUpdate, Reported, find_signal
from fedcohort.types import ClientUpdate, Ids, RoundOutcome, Signals


def keeps_updates(components: Components) -> bool:
    """Return whether the matrix of updates must be kept, as a component reads single updates."""
    reads_updates = any(isinstance(find_signal(signal), RawUpdate | Derived) for signal in components.needs())
    return components.agg.stacked or components.selector.advises or reads_updates


def declared_reports(
    components: Components, client_reports: ClientReports, as_fedavg: bool, round: int
) -> dict[str, Callable[[ClientUpdate], float]]:
    """Return functions that read the declared signals and the training loss from an update, by signal.

    The updates arrive in `round`. A training loss that no component reads is only a metric, and has no noise.
    """
    needs = components.needs(as_fedavg)
    signals = {name: find_signal(name) for name in sorted(needs | {"train_loss"})}
    reported_signals = {name: signal for name, signal in signals.items() if isinstance(signal, Reported)}
    return {
        name: client_reports.read_report(name, partial(_read_signal, name, signal), round if name in needs else None)
        for name, signal in reported_signals.items()
    }


def _read_signal(name: str, signal: Reported, update: ClientUpdate) -> float:
    return check_number(f"the signal {name!r}: the result of read", signal.read(update), allow_nan=True)


def derive_signals(
    components: Components, measurer: SignalAccess, collected: Collected, as_fedavg: bool
) -> dict[str, Any]:
    """Return the signals that the server computes from the updates, by name."""
    if collected.updates is None:
        return {}
    signals = {name: find_signal(name) for name in sorted(components.needs(as_fedavg))}
    values = {n: s.make(measurer, collected.updates) for n, s in signals.items() if isinstance(s, Derived)}
    n_arrived = len(collected.clients)
    return {name: value if callable(value) else check_answers(name, value, n_arrived) for name, value in values.items()}


def outcome_for(component: Any, reader_name: str, finished: Finished, collected: Collected) -> RoundOutcome:  # noqa: ANN401
    """Return the outcome of the round with the signals that `component` declares; reader: its name in messages."""
    rows = np.searchsorted(finished.arrived.client, collected.clients)  # both are sorted
    values: dict[str, Any] = {
        **collected.reports,
        **{name: measured[rows] for name, measured in finished.agg_answers.items()},
        **collected.derived_signals,
    }
    needs: frozenset[str] = component.needs
    if collected.updates is not None:
        values |= {name: collected.updates.cpu().numpy() for name in needs if isinstance(find_signal(name), RawUpdate)}
    return RoundOutcome(
        round=finished.round,
        selection=finished.selection,
        clients=collected.clients,
        failed=list_failed_clients(finished, collected),
        signals=Signals(values, needs, reader_name),
        probes=finished.dispatched.queried.answers_to(concurrent=True) if reader_name == "the selector" else {},
        round_s=finished.charge.virtual_s,
        announced_s=finished.closing.announced_s,
        sent_round=finished.arrived.broadcast[rows],
    )


def list_failed_clients(finished: Finished, collected: Collected) -> Ids:
    """Return the sorted ids of the clients whose update is lost: of the cohort, and of those that were in flight."""
    if not finished.carries:
        return np.setdiff1d(finished.selection.clients, collected.clients, assume_unique=True)
    ids = [finished.selection.clients, finished.arrived.client, finished.dropped.client]
    return np.setdiff1d(np.concatenate(ids), np.concatenate([collected.clients, finished.in_flight.jobs.client]))
