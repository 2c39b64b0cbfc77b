"""Queries about w_t: values that clients report, under the run's attack, and values that the server measures."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fedcohort.attack.base import Attack, ReportedValues
from fedcohort.contracts import check_number
from fedcohort.errors import FedcohortError, UndeclaredSignal
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.rng import new_generator
from fedcohort.round.workload import are_all_available
from fedcohort.signal.base import Measured, QueriedSignal, ServerMeasured, check_answers, find_signal
from fedcohort.signal.lab import Lab
from fedcohort.types import ClientUpdate, Ids, Probe, ProbeResult, Values


class ClientReports:
    """The values that clients report under the run's attack.

    Attributes:
        is_attacker: which clients lie, bool [n_clients].
    """

    def __init__(self, attack: Attack, seed: int, n_clients: int) -> None:
        self.attack = attack
        self.is_attacker = np.zeros(n_clients, dtype=bool)
        self.is_attacker[attack.attacker_ids(n_clients, new_generator(seed, "attack"))] = True

    def report(self, signal: str, clients: Ids, values: ReportedValues) -> ReportedValues:
        """Return the values of `signal` that `clients` report, [len(clients), ...]; attackers report other values."""
        is_attacker = self.is_attacker[clients]
        if not is_attacker.any():
            return values
        reported_values = values.copy()
        reported_values[is_attacker] = self.attack.falsify(signal, values[is_attacker])
        return reported_values

    def apply_attack_to(self, signal: str, read: Callable[[ClientUpdate], float]) -> Callable[[ClientUpdate], float]:
        """Return a function that reads a signal from an update, and falsifies it if the client is an attacker."""

        def read_report(update: ClientUpdate) -> float:
            return float(self.report(signal, np.array([update.client]), np.array([read(update)]))[0])

        return read_report if self.is_attacker.any() else read


class Queries:
    """Answers queries about w_t: with signals that clients measure and report, or that the server measures.

    Args:
        needs: signals that the selector declares.
        lab: measures signals on the data of clients or of the server.
        client_reports: the values that clients report under the run's attack.
        stopwatch: measures the time of the queries.
    """

    def __init__(self, needs: frozenset[str], lab: Lab, client_reports: ClientReports, stopwatch: Stopwatch) -> None:
        self.needs, self.lab, self.client_reports, self.stopwatch = needs, lab, client_reports, stopwatch
        self.server_signals = {w: signal for w in sorted(needs) if isinstance(signal := find_signal(w), ServerMeasured)}

    def answer_probes(self, probes: Sequence[Probe], available: Ids, round: int) -> dict[str, ProbeResult]:
        """Return the answers to the selector's queries of round t, by signal; raise an error for an invalid query."""
        signals = [probe.signal for probe in probes]
        if repeated_signals := [signal for signal in signals if signals.count(signal) > 1]:
            raise FedcohortError(
                f"the selector probes {repeated_signals[0]!r} more than once in a round: query all clients with one "
                "Probe"
            )
        return {probe.signal: self.answer_probe(probe, available, round) for probe in probes}

    def answer_probe(self, probe: Probe, available: Ids, round: int) -> ProbeResult:
        """Return the answers to one query of the selector in round t; raise an error for an invalid query."""
        if probe.signal not in self.needs:
            raise UndeclaredSignal(f"the selector probes {probe.signal!r} without declaring it in `needs`")
        signal = find_signal(probe.signal)
        if not isinstance(signal, QueriedSignal):
            raise FedcohortError(f"the selector can't probe {probe.signal!r}, which clients do not measure on request")
        if not are_all_available(probe.clients, available):
            raise FedcohortError(f"the selector can't probe {probe.signal!r} of clients that are not available")
        with self.stopwatch.stage("probe"):
            if isinstance(signal, Measured):
                values = signal.measure(self.lab, probe.clients, probe.options)
            else:
                values = signal.compute(self.lab, round, probe.clients, probe.options)
        values = check_answers(probe.signal, values, len(probe.clients))
        return ProbeResult(probe.clients, self.client_reports.report(probe.signal, probe.clients, values))

    def report_measured(self, name: str, signal: Measured, clients: Ids) -> Values:
        """Return a signal that the aggregator queries, as `clients` report it, [len(clients)]."""
        with self.stopwatch.stage("probe"):
            return self.client_reports.report(name, clients, signal.measure(self.lab, clients, {}))

    def measure_on_server(self) -> Mapping[str, float]:
        """Return the signals that the server measures for the selector, by name."""
        with self.stopwatch.stage("probe"):
            values = {name: signal.measure(self.lab) for name, signal in self.server_signals.items()}
        return {
            name: check_number(f"the signal {name!r}: the result", value, allow_nan=True)
            for name, value in values.items()
        }
