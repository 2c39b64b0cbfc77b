"""The components of a run, and the state of the server between rounds."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcohort.agg.base import Aggregator
from fedcohort.attack.base import Attack
from fedcohort.augmentation.base import Augmentation
from fedcohort.availability.base import Availability
from fedcohort.client.base import Client
from fedcohort.codec.base import Codec
from fedcohort.component import ANNOUNCED_DEADLINE
from fedcohort.deadline.base import Deadline
from fedcohort.device.base import Device
from fedcohort.errors import CheckpointError, ComponentError
from fedcohort.flat import Layout
from fedcohort.hook import ClientHook, count_stored_floats
from fedcohort.ledger import Charge
from fedcohort.objective.base import Objective
from fedcohort.proxy.base import Proxy
from fedcohort.regulariser.base import Regulariser
from fedcohort.round.backoff import NO_CLIENT_FAILURES, Backoff
from fedcohort.round.guard import prefix_errors_with_component
from fedcohort.round.in_flight import JobsInFlight
from fedcohort.round.populations import Populations
from fedcohort.round.uniform import UniformReference
from fedcohort.samples.base import LOSS_LIST_NAME, Samples
from fedcohort.selector.base import Selector
from fedcohort.server.base import ServerOptimizer
from fedcohort.signal_noise.base import SignalNoise
from fedcohort.state import pack_state, unpack_state
from fedcohort.types import Ids


@dataclass(frozen=True)
class Components:
    """The components of a run, one for each config group.

    Attributes:
        selector: chooses the cohort.
        agg: aggregates updates.
        server: server optimizer.
        objective: loss of local training.
        regulariser: term that is added to the loss.
        client: local optimizer, epochs and mini-batches.
        samples: chooses the samples that clients train on.
        deadline: closes rounds.
        codec: encodes updates.
        device: computes the seconds that clients' work takes.
        availability: determines when clients are ready.
        attack: makes the false values of attackers.
        proxy: provides the inputs that the server holds.
        augmentation: changes training inputs.
        signal_noise: adds noise to the numbers that clients report.
    """

    selector: Selector[Any]
    agg: Aggregator[Any]
    server: ServerOptimizer[Any]
    objective: Objective
    regulariser: Regulariser
    client: Client
    samples: Samples[Any]
    deadline: Deadline[Any]
    codec: Codec
    device: Device
    availability: Availability
    attack: Attack
    proxy: Proxy
    augmentation: Augmentation
    signal_noise: SignalNoise

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        """All client hooks in order of application; the aggregator's is first and receives the raw gradient."""
        return (*self.agg.hooks, *self.regulariser.hooks, *self.codec.hooks)

    @property
    def is_deadline_announced(self) -> bool:
        """Whether the deadline is announced to clients, for partial work or for the choice of samples."""
        return self.deadline.announces and (
            self.deadline.partial_work or ANNOUNCED_DEADLINE in self.samples.requirements
        )

    def select_client_hooks(self, is_fedavg: bool) -> tuple[ClientHook, ...]:
        """Return the client hooks of a round; only the codec's if `is_fedavg`, when the round is trained as FedAvg."""
        return self.codec.hooks if is_fedavg else self.hooks

    def needed_signals(self, is_fedavg: bool = False) -> frozenset[str]:
        """Return the names of the signals that the server reads.

        Args:
            is_fedavg: whether the round is trained as FedAvg (`Selection.plain`); the aggregator then reads no signal.
        """
        needed_signals = self.selector.needs | self.samples.needs | self.deadline.needs
        return needed_signals if is_fedavg else needed_signals | self.agg.needs

    def describe_component_states(self, state: "ServerState") -> dict[str, float]:
        """Return the metrics of sample selection and deadline by name; `state` is the server's state."""
        metrics = {"samples": self.samples.describe(state.samples), "deadline": self.deadline.describe(state.deadline)}
        return {f"{g}/{k}": v for g, m in metrics.items() for k, v in m.items()}

    def vector_lengths(self, is_fedavg: bool, layout: Layout, n_samples: int) -> dict[str, int]:
        """Return the number of floats of each vector that a client keeps between rounds, by the vector's name.

        Args:
            is_fedavg: whether the round is trained as FedAvg (`Selection.plain`).
            layout: positions of the model's tensors in its flat vector.
            n_samples: largest number of samples of a client.
        """
        floats_by_vector = count_stored_floats(self.select_client_hooks(is_fedavg), layout.n_params, n_samples)
        return floats_by_vector | ({LOSS_LIST_NAME: n_samples} if self.samples.keeps_losses else {})


LATER_STATE_FIELDS = (
    "reported_numbers",
    "joules",
)  # fields of the server's state that checkpoints of earlier versions lack


@dataclass
class ServerState:
    """The state of the server that changes between rounds, without the model.

    Attributes:
        selector, agg, server, samples, deadline: state of the component of this config group.
        times_selected: number of rounds in which each client was selected, [n_clients].
        reported_numbers: numbers that each client has reported with noise, [n_clients]; 0 without noise.
        uniform: the uniform reference cohorts, with which the selection is compared.
        spent: bytes, FLOPs and virtual seconds of the run so far.
        joules: energy of all clients so far.
        best_acc: best test accuracy so far, in [0, 1]; NaN before the first evaluation.
        choices: hash of the clients that were selected and that arrived; "" before the first round.
        failures: consecutive failures of clients, for back-off.
        in_flight: jobs that end in a later round.
    """

    selector: Any
    agg: Any
    server: Any
    samples: Any
    deadline: Any
    times_selected: Ids
    reported_numbers: Ids  # that each client has reported with noise, [n_clients]; 0 without noise
    uniform: UniformReference
    spent: Charge = field(default_factory=Charge)
    joules: float = 0.0
    best_acc: float = float("nan")
    choices: str = ""
    failures: Backoff = NO_CLIENT_FAILURES
    in_flight: JobsInFlight = field(default_factory=JobsInFlight)

    @classmethod
    def initial_state(cls, components: Components, populations: Populations, n_params: int) -> "ServerState":
        """Return the server's state before round 0, with the initial state of each component.

        Args:
            components: the components of the run.
            populations: static facts of the clients.
            n_params: number of model parameters.
        """
        make_population, selector_signals = populations.make_population, components.selector.needs
        return cls(
            selector=components.selector.init(
                populations.resize_cohort(components.deadline).make_population(selector_signals, "the selector")
            ),
            agg=components.agg.init(make_population(components.agg.needs, "the aggregator"), n_params),
            server=components.server.init(n_params),
            samples=components.samples.init(make_population(components.samples.needs, "the sample selection")),
            deadline=components.deadline.init(make_population(components.deadline.needs, "the deadline")),
            times_selected=np.zeros(populations.n_clients, dtype=np.int64),
            reported_numbers=np.zeros(populations.n_clients, dtype=np.int64),
            uniform=UniformReference.without_rounds(populations.n_clients),
        )

    def to_plain_data(self, components: Components | None = None) -> dict[str, Any]:
        """Return the fields of the state by name, as numbers, texts and tensors for a checkpoint.

        Args:
            components: components of the run, which the error names; None if they are unknown.

        Raises:
            ComponentError: the state of a component cannot be saved.
        """
        packed_fields = {}
        for field_name, field_value in vars(self).items():
            try:
                packed_fields[field_name] = pack_state(field_value)
            except TypeError as error:
                with prefix_errors_with_component(getattr(components, field_name, None)):
                    raise ComponentError(f"the state can't be saved in a checkpoint: {error}") from error
        return packed_fields

    @classmethod
    def from_plain_data(cls, packed_state: dict[str, Any], initial_state: "ServerState") -> "ServerState":
        """Restore a state from the result of `to_plain_data`.

        Args:
            packed_state: fields by name; fields in `LATER_STATE_FIELDS`, which older checkpoints lack, keep their
                initial value. Checkpoints without `Jobs.zero_fill` have no job with it.
            initial_state: state before round 0, with the class of each component's State.

        Raises:
            CheckpointError: `packed_state` has other fields than this version of fedcohort.
        """
        packed_state = {**{k: pack_state(vars(initial_state)[k]) for k in LATER_STATE_FIELDS}, **packed_state}
        if packed_state.keys() != vars(initial_state).keys():
            raise CheckpointError(
                "the checkpoint is of another version of fedcohort: its server state has the fields "
                f"{sorted(packed_state)}, this version has {sorted(vars(initial_state))}. Resume with the version that "
                "wrote it, or start a new run with resume=false"
            )
        job_columns = packed_state["in_flight"]["record"]["jobs"]["record"]  # of earlier versions without `zero_fill`
        job_columns.setdefault("zero_fill", pack_state(np.zeros(len(job_columns["tensor_mask"]["list"]), bool)))
        return cls(**{k: unpack_state(packed_state[k], type(v)) for k, v in vars(initial_state).items()})
