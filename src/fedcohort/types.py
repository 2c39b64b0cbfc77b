"""Frozen records that pass between the server and the components of a run. Components import all records from here.

Notation: K is the number of clients (`n_clients`). The number of clients to select in a round is `cohort`, m in the
papers. `round` counts from 0, and w_t is the global model at the start of round t.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.arrays import Ids as Ids
from fedcohort.arrays import ReadOnly as ReadOnly
from fedcohort.arrays import Values as Values
from fedcohort.arrays import read_only as read_only
from fedcohort.draw_log import DrawLog
from fedcohort.errors import UndeclaredSignal, renamed_attribute, renamed_names
from fedcohort.update import ClientUpdate as ClientUpdate
from fedcohort.update import UpdateGroup as UpdateGroup

__getattr__ = renamed_names(__name__, {"Advice": "AggregationOverride"})


class Signals(Mapping[str, Any]):
    """Values that clients have reported, by signal. Reading a signal outside `needs` raises `UndeclaredSignal`."""

    def __init__(self, values_by_signal: Mapping[str, Any], declared_signals: frozenset[str], reader_name: str) -> None:
        self._values = {signal: read_only(reported_value) for signal, reported_value in values_by_signal.items()}
        self._declared, self._reader = declared_signals, reader_name

    def __getitem__(self, signal: str) -> Any:  # noqa: ANN401  an array, or a function where the server derives one
        if signal not in self._declared:
            raise UndeclaredSignal(
                f"{self._reader} reads the signal {signal!r} but declares {sorted(self._declared)} in `needs`: add it"
            )
        return self._values[signal]

    def __iter__(self) -> Iterator[str]:
        return iter(signal for signal in self._values if signal in self._declared)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Population:
    """The information on the clients that a component may read when a run starts.

    Attributes:
        n_clients: number of clients.
        n_classes: number of classes.
        cohort: clients to select per round, with those that a deadline adds; for other components the option `cohort`.
        signals: static signals that the component declares, by name, float64 or int64 [n_clients, ...] each.
    """

    n_clients: int
    n_classes: int
    cohort: int
    signals: Mapping[str, Any]


@dataclass(frozen=True)
class RoundContext(ReadOnly):
    """The information that the server has in a round before it queries clients.

    Attributes:
        round: number of the round, from 0.
        cohort: number of clients to select.
        n_clients: number of clients.
        available: sorted ids of the clients that may be selected.
        signals: values by signal: static ones, and those that the server has measured on the round's global model.
        rng: the component's random generator for this round.
        units: number of local epochs (or steps) that each client trains by default.
        backed_off: sorted ids of the clients that are ready, but failed repeatedly and may not be selected for a while.
        in_flight: sorted ids of the clients that still work on a job of an earlier round; they are not ready.
        in_flight_s: virtual seconds until the update of each client of `in_flight` is expected, [len(in_flight)].
        is_refill: whether this selection follows another one of the same round, with the same answers to queries.
    """

    round: int
    cohort: int
    n_clients: int
    available: Ids
    signals: Mapping[str, Any]
    rng: np.random.Generator
    units: int = 1
    backed_off: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    in_flight: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    in_flight_s: Values = field(default_factory=lambda: np.empty(0))
    is_refill: bool = False

    @property
    def ready(self) -> Ids:
        """Sorted ids of all ready clients, which may be queried: the available ones and those that are backed off."""
        return np.union1d(self.available, self.backed_off) if len(self.backed_off) else self.available


@dataclass(frozen=True)
class Probe(ReadOnly):
    """A query of clients about the round's global model, charged in bytes, FLOPs and virtual seconds.

    Attributes:
        signal: name of the signal, a module in `fedcohort/signal/`.
        clients: ids of the clients to query.
        options: options of the signal by name.
        concurrent: whether clients answer during the training of this round, instead of before the selection.
    """

    signal: str
    clients: Ids
    options: Mapping[str, Any] = field(default_factory=dict)
    concurrent: bool = False


@dataclass(frozen=True)
class ProbeResult(ReadOnly):
    """The values with which clients answered a query.

    Attributes:
        clients: sorted ids of the clients that answered.
        values: answer of each of `clients`, float64 [len(clients)], or [len(clients), d] for rows of d numbers. A value
            may be NaN or infinite.
    """

    clients: Ids
    values: Float64[np.ndarray, "_n *_d"]

    def dense(self, n_clients: int, fill_value: float = float("nan")) -> Float64[np.ndarray, "_k *_d"]:
        """Return the values as float64 [n_clients, ...], with `fill_value` for clients that did not answer."""
        values_by_client = np.full((n_clients, *self.values.shape[1:]), fill_value)
        values_by_client[self.clients] = self.values
        return values_by_client

    def without(self, is_absent: Bool[np.ndarray, "clients"]) -> "ProbeResult":
        """Return the answers without those of the clients that are marked in `is_absent`, bool [n_clients]."""
        if not is_absent.any():
            return self
        return ProbeResult(self.clients[~is_absent[self.clients]], self.values[~is_absent[self.clients]])


@dataclass(frozen=True)
class Selection(ReadOnly):
    """The cohort that a selector chose for a round, with its scores and the work of each client.

    Attributes:
        clients: sorted distinct ids of available clients, at most as many as the cohort, unless `uncapped`.
        scores: score of each client, float64 [n_clients], NaN if a client has no score; None for no scores.
        score_terms: terms of the score by name (exploit, explore, ...), each float64 [n_clients].
        probability: probability with which the method draws each client, float64 [n_clients]; None if it does not draw.
        uncapped: whether more clients than the cohort may be selected (FLASH's first round, selector=full).
        plain: whether this round is a round of FedAvg whatever the run's aggregator, regulariser and server optimizer,
            at the cost of FedAvg (FedDiverse's pre-training).
        units: local epochs (or steps) of each client, at least 1, int64 [n_clients]; None for the default number.
        upload: probability with which a client sends each tensor of its update, in (0, 1], float64 [n_clients]; the
            engine draws. None: all clients send everything.
        zero_fill: whether a tensor that a client did not send counts as zero; otherwise as the mean of those sent.
        reward: reward of each client's last update, float64 [n_clients], NaN if there is none; only logged.
    """

    clients: Ids
    scores: Values | None = None
    score_terms: Mapping[str, Values] = field(default_factory=dict)
    probability: Values | None = None
    uncapped: bool = False
    plain: bool = False
    units: Ids | None = None
    upload: Values | None = None
    zero_fill: bool = False
    reward: Values | None = None
    parts = renamed_attribute("Selection.parts", "score_terms")


@dataclass(frozen=True)
class AggregationOverride:
    """A selector's change of the aggregation, aligned with `clients` of the round's outcome.

    A client that is dropped, or has weight 0, counts as not arrived. Without other clients, nothing has arrived.

    Attributes:
        keep: False drops a client's update, bool [n]; None keeps all.
        weights: weights that replace the aggregator's, [n], which are normalised unless `absolute`; None for no change.
        absolute: whether the weights are used as they are; an unbiased estimate may need a sum other than 1.
    """

    keep: np.ndarray | None = None
    weights: Values | None = None
    absolute: bool = False


@dataclass(frozen=True)
class RoundOutcome(ReadOnly):
    """The result of a round's training, as a selector (`observe`) and an aggregator (`direction`) receive it.

    Attributes:
        round: number of the round, from 0.
        selection: the cohort that was selected.
        clients: sorted ids of the clients whose update arrived and is finite.
        failed: sorted ids of the clients whose update is lost, of this cohort or of those in flight.
        signals: signals that the component declares, by name, each [len(clients)], aligned with `clients`.
        probes: answers to the selector's concurrent queries, by signal; empty for other components.
        round_s: virtual seconds that the round took, including the wait until a client was ready.
        announced_s: the deadline that was announced to clients, in virtual seconds after the broadcast; inf for none.
        sent_round: round whose model each of `clients` received, [len(clients)]; None if all received this round's.
        reporting_ids: sorted ids of the clients whose reports arrived, also with an excluded update; None: `clients`.
    """

    round: int
    selection: Selection
    clients: Ids
    failed: Ids
    signals: Mapping[str, Any]
    probes: Mapping[str, ProbeResult]
    round_s: float
    announced_s: float = float("inf")
    sent_round: Ids | None = None
    reporting_ids: Ids | None = None

    @property
    def staleness(self) -> Ids:
        """Number of server steps between the model that each client received and the current one, [len(clients)]."""
        return np.zeros(len(self.clients), np.int64) if self.sent_round is None else self.round - self.sent_round


@dataclass(frozen=True)
class RoundReport(ReadOnly):
    """A finished round, for observers such as loggers only.

    Attributes:
        step: number of completed rounds; step 0 reports the initial model and has no cohort.
        cohort: sorted ids of the selected clients.
        arrived: sorted ids of the clients whose update arrived.
        metrics: scalars by name (`test/acc`, `time/virtual_s`, ...).
        clients: values of each client by column name, [n_clients] each.
        trace: mean and standard deviation of the quantities that the selector estimates, by name (FLASH: theta).
        fingerprint: digests of all selections so far and of the global model, as text.
        draw_log: the draws by which the selector chose the cohort; None without a cohort.
        wall_s: host seconds since the previous report, by stage. They have no effect on results.
    """

    step: int
    cohort: Ids
    arrived: Ids
    metrics: Mapping[str, float]
    clients: Mapping[str, np.ndarray]
    trace: Mapping[str, tuple[float, float]]
    fingerprint: str
    draw_log: DrawLog | None = None
    wall_s: Mapping[str, float] = field(default_factory=dict)
