"""Queries about the global model: values that clients report, with attack and noise, and values of the server."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedcohort.attack.base import Attack, ReportedValues
from fedcohort.contracts import check_number, check_signal_answers
from fedcohort.errors import FedcohortError, UndeclaredSignal
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.rng import RekeyedGenerator, new_generator
from fedcohort.round.workload import are_all_available
from fedcohort.signal.access import ReadyShareFunction, SignalAccess
from fedcohort.signal.base import NO_OPTIONS, Forecast, Measured, QueriedSignal, ServerMeasured, find_signal
from fedcohort.signal_noise.base import SignalNoise
from fedcohort.types import ClientUpdate, Ids, Probe, ProbeResult, Values


class ClientReports:
    """The values that clients report: false ones from the attackers of the run, and all with the run's noise.

    Args:
        attack: the attack, which draws the attackers.
        seed: seed of the run.
        n_clients: size of the population.
        signal_noise: the noise on signals; None for no noise.

    Attributes:
        is_attacker: which clients report false values, bool [n_clients].
    """

    def __init__(self, attack: Attack, seed: int, n_clients: int, signal_noise: SignalNoise | None = None) -> None:
        self.attack, self.seed = attack, seed
        self.signal_noise = signal_noise if signal_noise and signal_noise.perturbs else None
        self.is_attacker = np.zeros(n_clients, dtype=bool)
        self.is_attacker[attack.attacker_ids(n_clients, new_generator(seed, "attack"))] = True

    def report_values(self, signal_name: str, clients: Ids, true_values: ReportedValues) -> ReportedValues:
        """Return the values of a signal that clients report, without noise, [len(clients), ...].

        Args:
            signal_name: name of the signal.
            clients: ids of the clients.
            true_values: true values, which honest clients report, [len(clients), ...].
        """
        is_attacker = self.is_attacker[clients]
        if not is_attacker.any():
            return true_values
        reported_values = true_values.copy()
        reported_values[is_attacker] = self.attack.falsify(signal_name, true_values[is_attacker])
        return reported_values

    def answer_query(
        self,
        signal_name: str,
        clients: Ids,
        values: ReportedValues,
        round: int,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> ReportedValues:
        """Return the answers to a query that the server receives, [len(clients), ...], with the run's noise.

        A number that a client sends twice in a round has the same noise both times.

        Args:
            signal_name: name of the queried signal.
            clients: ids of the clients.
            values: true values, [len(clients), ...].
            round: number of the round.
            options: options of the query, by name.
        """
        values = self.report_values(signal_name, clients, values)
        if self.signal_noise is None or not find_signal(signal_name).bytes_up:
            return values
        noisy_values, noise_generator = values.astype(np.float64), RekeyedGenerator()
        rng_purpose = f"signal_noise/{signal_name}" + (f"/{sorted(options.items())}" if options else "")
        for client_row, client in enumerate(clients.tolist()):
            rng = noise_generator.rekey(self.seed, rng_purpose, round, client)
            noisy_values[client_row] = self.signal_noise.perturb(noisy_values[client_row : client_row + 1], rng)[0]
        return noisy_values

    def make_signal_reader(
        self, signal_name: str, read_true_value: Callable[[ClientUpdate], float], round: int | None
    ) -> Callable[[ClientUpdate], float]:
        """Return a function that reads the signal that a client reports with its update.

        Args:
            signal_name: name of the signal.
            read_true_value: reads the true value from an update.
            round: round in which the server receives the report, which sets its noise; None for a value without noise.
        """

        report_values = self.report_values if round is None else partial(self.answer_query, round=round)

        def read_reported_value(update: ClientUpdate) -> float:
            return float(report_values(signal_name, np.array([update.client]), np.array([read_true_value(update)]))[0])

        return read_reported_value if self.is_attacker.any() or self.signal_noise else read_true_value


class QueryAnswerer:
    """Answers queries about the global model with signals that clients report or that the server measures.

    Args:
        needs: names of the signals that the selector declares.
        measurer: measures signals on the data of clients or of the server.
        client_reports: the values that clients report, with the run's attack and noise.
        stopwatch: measures the time of the queries.
    """

    def __init__(
        self, needs: frozenset[str], measurer: SignalAccess, client_reports: ClientReports, stopwatch: Stopwatch
    ) -> None:
        self.needs, self.measurer, self.client_reports, self.stopwatch = needs, measurer, client_reports, stopwatch
        self.server_signals = {w: signal for w in sorted(needs) if isinstance(signal := find_signal(w), ServerMeasured)}

    def answer_probes(
        self, probes: Sequence[Probe], available_ids: Ids, round: int, ready_share: ReadyShareFunction
    ) -> dict[str, ProbeResult]:
        """Return the answers to the selector's queries of a round, by signal.

        Args:
            probes: the queries.
            available_ids: sorted ids of the clients that can be queried.
            round: number of the round.
            ready_share: function that returns the share of a time slot in which each client is ready (`signal.access`).

        Raises:
            FedcohortError: two queries are for the same signal, or one of them is invalid.
        """
        signal_names = [probe.signal for probe in probes]
        if repeated_signals := [signal_name for signal_name in signal_names if signal_names.count(signal_name) > 1]:
            raise FedcohortError(
                f"the selector probes {repeated_signals[0]!r} more than once in a round: query all clients with one "
                "Probe"
            )
        return {probe.signal: self.answer_probe(probe, available_ids, round, ready_share) for probe in probes}

    def answer_probe(
        self, probe: Probe, available_ids: Ids, round: int, ready_share: ReadyShareFunction
    ) -> ProbeResult:
        """Return the answers to one query of the selector.

        Args:
            probe: the query.
            available_ids: sorted ids of the clients that can be queried.
            round: number of the round.
            ready_share: function that returns the share of a time slot in which each client is ready (`signal.access`).

        Raises:
            UndeclaredSignal: the selector does not declare the signal.
            FedcohortError: clients do not measure the signal on request, or are not available.
        """
        if probe.signal not in self.needs:
            raise UndeclaredSignal(f"the selector probes {probe.signal!r} without declaring it in `needs`")
        signal = find_signal(probe.signal)
        if not isinstance(signal, QueriedSignal):
            raise FedcohortError(
                f"the selector can't probe {probe.signal!r}, which clients do not measure on request: drop the query"
            )
        if not are_all_available(probe.clients, available_ids):
            raise FedcohortError(
                f"the selector can't probe {probe.signal!r} of clients that are not available: use ctx.available"
            )
        with self.stopwatch.measure_stage_time("probe"):
            if isinstance(signal, Forecast):
                signal_values = signal.compute(ready_share, probe.clients, probe.options)
            elif isinstance(signal, Measured):
                signal_values = signal.measure(self.measurer, probe.clients, probe.options)
            else:
                signal_values = signal.compute(self.measurer, round, probe.clients, probe.options)
        signal_values = check_signal_answers(probe.signal, signal_values, len(probe.clients))
        answers = self.client_reports.answer_query(probe.signal, probe.clients, signal_values, round, probe.options)
        return ProbeResult(probe.clients, answers)

    def report_agg_signal(self, signal_name: str, signal: Measured, clients: Ids, round: int) -> Values:
        """Return the values of a signal that clients report to the aggregator, [len(clients)].

        Args:
            signal_name: name of the signal.
            signal: the signal.
            clients: ids of the queried clients.
            round: number of the round.
        """
        with self.stopwatch.measure_stage_time("probe"):
            signal_values = signal.measure(self.measurer, clients, {})
            return self.client_reports.answer_query(signal_name, clients, signal_values, round)

    def measure_server_signals(self) -> Mapping[str, float]:
        """Return the values of the signals that the server measures for the selector, by name."""
        with self.stopwatch.measure_stage_time("probe"):
            signal_values = {k: signal.measure(self.measurer) for k, signal in self.server_signals.items()}
        return {k: check_number(f"the signal {k!r}: the result", v, allow_nan=True) for k, v in signal_values.items()}
