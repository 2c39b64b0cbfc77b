"""Frozen records that pass between the server's parts. One vocabulary for all of them.

`n_clients` is K, `cohort` is the number of clients asked for (m in the papers), `round` counts from 0, and
`w_t` is the global model at the start of round t.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from fedcohort.errors import UndeclaredSignal

if TYPE_CHECKING:
    from torch import Tensor

Ids = Int64[np.ndarray, "_n"]  # lengths differ between arguments: the underscore keeps them unbound
Values = Float64[np.ndarray, "_n"]


def read_only(value: Any) -> Any:  # noqa: ANN401  whatever is handed to a part
    """Return a view of an array that can't be written to; anything else as it is."""
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    view = value.view()
    view.flags.writeable = False
    return view


class ReadOnly:
    """A record whose arrays can't be written to: parts share them with the run."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.flags.writeable:
                object.__setattr__(self, name, read_only(value))


class Signals(Mapping[str, Any]):
    """What clients told the server, readable only for the words that the reader declares in `needs`.

    Raises `UndeclaredSignal` on any other word, so that no method uses more than it is charged for.
    """

    def __init__(self, values: Mapping[str, Any], declared: frozenset[str], reader: str) -> None:
        self._values = {word: read_only(value) for word, value in values.items()}
        self._declared = declared
        self._reader = reader

    def __getitem__(self, word: str) -> Any:  # noqa: ANN401  an array, or a function where the server derives one
        if word not in self._declared:
            raise UndeclaredSignal(
                f"{self._reader} reads the signal {word!r} but declares only {sorted(self._declared)} in `needs`"
            )
        return self._values[word]

    def __iter__(self) -> Iterator[str]:
        return iter(word for word in self._values if word in self._declared)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Population:
    """What a method may know when a run starts.

    Attributes:
        n_clients: K.
        n_classes: number of labels.
        cohort: clients asked for per round; a deadline's is the number that the run wants.
        signals: the static signals that the method declares, each float64 or int64 [K] (`n_train`: training samples).
    """

    n_clients: int
    n_classes: int
    cohort: int
    signals: Mapping[str, Any]


@dataclass(frozen=True)
class RoundContext(ReadOnly):
    """What the server knows before it queries a client.

    Attributes:
        available: sorted ids of the clients that may be selected.
        signals: as in `Population`; and the numbers that the server itself has measured of w_t, where declared.
        rng: the method's own generator, keyed by (seed, purpose, round), made afresh each round.
        units: of local work that everybody does unless told otherwise (local epochs, or steps, as in `ClientUpdate`).
        backed_off: sorted ids of the clients that are ready, but failed repeatedly and may not be selected for a while.
    """

    round: int
    cohort: int
    n_clients: int
    available: Ids
    signals: Mapping[str, Any]
    rng: np.random.Generator
    units: int = 1
    backed_off: Ids = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def ready(self) -> Ids:
        """Sorted ids of all clients that are ready: a selector may query each of them."""
        return np.union1d(self.available, self.backed_off) if len(self.backed_off) else self.available


@dataclass(frozen=True)
class Probe(ReadOnly):
    """A question to `clients` about w_t: a word of `fedcohort/signal/`, charged in bytes, FLOPs and virtual seconds.

    concurrent: measured beside the training of this round and delivered with the outcome; otherwise the answers are
    there before the selection and the round lasts as much longer.
    """

    signal: str
    clients: Ids
    options: Mapping[str, Any] = field(default_factory=dict)
    concurrent: bool = False


@dataclass(frozen=True)
class ProbeResult(ReadOnly):
    """Answers to a probe. A client that could not answer is absent from `clients`; a value may be NaN or infinite.

    values: float64 [len(clients)], or [len(clients), d] where the signal is a row of d numbers.
    """

    clients: Ids
    values: Float64[np.ndarray, "_n *_d"]

    def dense(self, n_clients: int, fill: float = float("nan")) -> Float64[np.ndarray, "_k *_d"]:
        """The answers as float64 [n_clients, ...], `fill` where a client gave none."""
        out = np.full((n_clients, *self.values.shape[1:]), fill)
        out[self.clients] = self.values
        return out

    def without(self, gone: Bool[np.ndarray, "clients"]) -> "ProbeResult":
        """The answers of those who aren't gone, [n_clients]."""
        return ProbeResult(self.clients[~gone[self.clients]], self.values[~gone[self.clients]]) if gone.any() else self


@dataclass(frozen=True)
class Selection(ReadOnly):
    """Who trains this round.

    Attributes:
        clients: sorted distinct ids, all available. At most the cohort, unless `uncapped`: everybody who is available
            (FLASH's first round, selector=full).
        plain: this round is FedAvg's, whatever aggregator, regulariser and server optimizer the run has; they see
            nothing of it, and it costs what FedAvg's costs (FedDiverse's pre-training).
        scores: float64 [n_clients], NaN where none was given.
        parts: what a score is made of (exploit, explore, ...).
        probability: float64 [n_clients] of being drawn, where the method draws.
        units: int64 [n_clients], of local work asked of each client, at least 1; None asks what is asked of everybody.
        upload: float64 [n_clients] in (0, 1], the share of its update that each client sends: each of the network's
            tensors is sent with that chance, drawn by the engine. What wasn't sent counts as the weighted mean of what
            others sent of it, or as zero with `zero_fill`. None sends everything.
        reward: float64 [n_clients], what each client's last answer was worth to a method that learns from rewards,
            whether or not it was credited with it; NaN where there was none. For the log alone.
    """

    clients: Ids
    scores: Values | None = None
    parts: Mapping[str, Values] = field(default_factory=dict)
    probability: Values | None = None
    uncapped: bool = False
    plain: bool = False
    units: Ids | None = None
    upload: Values | None = None
    zero_fill: bool = False
    reward: Values | None = None


@dataclass(frozen=True)
class Advice:
    """What a selector asks of the aggregation, aligned with the outcome's clients.

    Attributes:
        keep: False drops a client's update.
        weights: replace the aggregator's own weighting (normalised by the reader, unless `absolute`: an unbiased
            estimate needs a sum other than 1). For the aggregation, whoever is dropped or weighs nothing has not
            arrived; where that is everybody, the round is an empty one.
    """

    keep: np.ndarray | None = None
    weights: Values | None = None
    absolute: bool = False


@dataclass(frozen=True)
class RoundOutcome(ReadOnly):
    """Who arrived, with what. A selector's `observe` and an aggregator's `direction` see the signals they declare.

    Attributes:
        clients: sorted ids of those whose update arrived and is finite.
        failed: sorted ids selected but not arrived.
        signals: each [len(clients)], aligned with `clients`.
        probes: answers to the concurrent probes, by signal.
        round_s: virtual seconds that the round took, those until somebody was ready among them.
        announced_s: the deadline that clients were told, virtual seconds after the broadcast; inf where there was none.
    """

    round: int
    selection: Selection
    clients: Ids
    failed: Ids
    signals: Mapping[str, Any]
    probes: Mapping[str, ProbeResult]
    round_s: float
    announced_s: float = float("inf")


@dataclass(frozen=True)
class SideBySide:
    """Clients that were trained as one group, whose updates one product adds up without making any of them.

    Attributes:
        norms: of each client's update, by id.
        total: weights by id -> the sum of weight x update, float [P]; whoever has no weight there is left out.
    """

    norms: Mapping[int, float]
    total: "Callable[[Mapping[int, float]], Tensor]"


@dataclass(frozen=True)
class ClientUpdate(ReadOnly):
    """What one client sends back after local training.

    Attributes:
        client: its id.
        n_train: samples that it has.
        n_used: samples that its mini-batches are drawn from: all n_train, or those that a sample selection leaves.
            Where it trains a number of steps it may come to see fewer of them.
        steps: optimizer steps done.
        response: how far that many steps go for a gradient that stays 1, in local learning rates
            (`training/response.py`).
        units_done: local epochs done (steps, where the client trains a number of steps).
        units_asked: those it was asked for.
        lr: the round's local learning rate.
        vector: y - w_t, the update, float [P], or what makes it: see `delta`.
        buffers: the network's float buffers and frozen parameters, [B].
        counters: its integer buffers, int64 [I].
        uploads: vectors that the hooks send beside the update, by name, [P] each.
        stored: what the hooks keep at the client once the server has acknowledged the update, by name.
        batch_loss: mean cross-entropy of each mini-batch before its step, in nats, float64 [steps].
        batch_size: samples in each mini-batch, int64 [steps].
        sample_loss: each sample's cross-entropy when it was first trained on, in nats, float64 [n_used], NaN for one
            that never was.
        told: what the client tells of its list of losses, by word of `signal/` (`samples.base.Samples.tell`).
        duration: virtual seconds from the broadcast to the arrival.
        loss_after: mean cross-entropy of y on all n_train samples, in nats, NaN where nobody reads it.
        together: those whom it was trained side by side with, None where its update can't be added to theirs unseen.
    """

    client: int
    n_train: int
    n_used: int
    steps: int
    response: float
    units_done: int
    units_asked: int
    lr: float
    vector: "Tensor | Callable[[], Tensor]"
    buffers: "Tensor"
    counters: "Tensor"
    uploads: Mapping[str, "Tensor"]
    stored: Mapping[str, "Tensor"]
    batch_loss: Values
    batch_size: Ids
    sample_loss: Values
    duration: float = float("nan")
    loss_after: float = float("nan")
    together: "SideBySide | None" = None
    told: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def delta(self) -> "Tensor":
        """The update y - w_t, [P]; made when somebody looks at it, where the engine can do without."""
        return self.vector() if callable(self.vector) else self.vector


@dataclass(frozen=True)
class RoundReport(ReadOnly):
    """A finished round, for observers only. `step` counts completed rounds; step 0 is w_0 and has no cohort.

    Attributes:
        metrics: scalars by name (`test/acc`, `time/virtual_s`, ...).
        clients: one column per fact, each [n_clients].
        trace: named mean and standard deviation of what the selector believes (FLASH: its theta).
        wall_s: host seconds by stage since the report before; of no consequence to any result.
    """

    step: int
    cohort: Ids
    arrived: Ids
    metrics: Mapping[str, float]
    clients: Mapping[str, np.ndarray]
    trace: Mapping[str, tuple[float, float]]
    fingerprint: str
    wall_s: Mapping[str, float] = field(default_factory=dict)
