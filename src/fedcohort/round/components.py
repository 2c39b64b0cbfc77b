"""The components of a run, the state of the server, and the static facts of clients that components may read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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
from fedcohort.round.backoff import NO_FAILURES, Backoff
from fedcohort.round.guard import name_component_of_errors
from fedcohort.round.in_flight import InFlight
from fedcohort.round.uniform import UniformReference
from fedcohort.samples.base import LOSS_LIST_NAME, Samples
from fedcohort.selector.base import Selector
from fedcohort.server.base import ServerOptimizer
from fedcohort.signal.base import Static, find_signal
from fedcohort.signal_noise.base import SignalNoise
from fedcohort.state import pack_state, unpack_state
from fedcohort.types import Ids, Population, Signals, Values

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation

TIMED_FACTS = (
    "expected_s",
    "expected_unit_s",
    "expected_up_s",
    "expected_down_s",
    "pass_units",
)  # facts that `round/cost.py` computes


@dataclass(frozen=True)
class Components:
    """The components of a run: one object per config group."""

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
    def announces_deadline(self) -> bool:
        """Whether the deadline is announced to clients, for partial work or for the choice of samples."""
        return self.deadline.announces and (
            self.deadline.partial_work or ANNOUNCED_DEADLINE in self.samples.requirements
        )

    def select_hooks(self, as_fedavg: bool) -> tuple[ClientHook, ...]:
        """Return the client hooks of a round; only the codec's if it is trained as FedAvg (`Selection.plain`)."""
        return self.codec.hooks if as_fedavg else self.hooks

    def needs(self, as_fedavg: bool = False) -> frozenset[str]:
        """Return the signals that the server reads; the aggregator reads none in a round that is trained as FedAvg."""
        names = self.selector.needs | self.samples.needs | self.deadline.needs
        return names if as_fedavg else names | self.agg.needs

    def state_metrics(self, state: "ServerState") -> dict[str, float]:
        """Return the metrics of the states of sample selection and deadline, by name."""
        metrics = {"samples": self.samples.describe(state.samples), "deadline": self.deadline.describe(state.deadline)}
        return {f"{group}/{name}": value for group, values in metrics.items() for name, value in values.items()}

    def vector_lengths(self, as_fedavg: bool, layout: Layout, n_samples: int) -> dict[str, int]:
        """Return the number of floats of each vector that a client keeps between rounds, by the vector's name.

        Args:
            as_fedavg: whether the round is trained as FedAvg (`Selection.plain`).
            layout: layout of the model.
            n_samples: largest number of samples of a client.
        """
        floats_by_name = count_stored_floats(self.select_hooks(as_fedavg), layout.n_params, n_samples)
        return floats_by_name | ({LOSS_LIST_NAME: n_samples} if self.samples.keeps_losses else {})


NEW_FIELDS = ("reported_numbers", "joules")  # fields of the server's state that checkpoints of earlier versions lack


@dataclass
class ServerState:
    """The state of the server that changes between rounds, without the model."""

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
    failures: Backoff = NO_FAILURES
    in_flight: InFlight = field(default_factory=InFlight)

    @classmethod
    def initial_state(cls, components: Components, population: "Populations", n_params: int) -> "ServerState":
        """Return the server's state before round 0, with the state that each component makes for itself."""
        return cls(
            selector=components.selector.init(
                population.for_selector(components.deadline).for_reader(components.selector.needs, "the selector")
            ),
            agg=components.agg.init(population.for_reader(components.agg.needs, "the aggregator"), n_params),
            server=components.server.init(n_params),
            samples=components.samples.init(population.for_reader(components.samples.needs, "the sample selection")),
            deadline=components.deadline.init(population.for_reader(components.deadline.needs, "the deadline")),
            times_selected=np.zeros(population.n_clients, dtype=np.int64),
            reported_numbers=np.zeros(population.n_clients, dtype=np.int64),
            uniform=UniformReference.make_empty(population.n_clients),
        )

    def pack(self, components: Components | None = None) -> dict[str, Any]:
        """Return the state as plain data for a checkpoint; components: the run's components, which messages name.

        Raises `ComponentError` if a component's state cannot be saved.
        """
        packed_fields = {}
        for name, value in vars(self).items():
            try:
                packed_fields[name] = pack_state(value)
            except TypeError as error:
                with name_component_of_errors(getattr(components, name, None)):
                    raise ComponentError(f"the state can't be saved in a checkpoint: {error}") from error
        return packed_fields

    @classmethod
    def unpack(cls, packed_state: dict[str, Any], initial_state: "ServerState") -> "ServerState":
        """Restore a state from the result of `pack`.

        `initial_state`, a state before round 0, has the class of each component's State. The entries `NEW_FIELDS`,
        which older checkpoints lack, keep their initial value.

        Raises `CheckpointError` if `packed_state` has other entries than this version of fedcohort.
        """
        packed_state = {**{name: pack_state(vars(initial_state)[name]) for name in NEW_FIELDS}, **packed_state}
        if packed_state.keys() != vars(initial_state).keys():
            raise CheckpointError(
                "the checkpoint is of another version of fedcohort: its server state has the fields "
                f"{sorted(packed_state)}, this version has {sorted(vars(initial_state))}. Resume with the version that "
                "wrote it, or start a new run with resume=false"
            )
        return cls(
            **{name: unpack_state(packed_state[name], type(value)) for name, value in vars(initial_state).items()}
        )


@dataclass(frozen=True)
class Populations:
    """Makes the `Population` of each component, with the static signals that it declares.

    Attributes:
        n_clients: size of the population.
        n_classes: number of classes.
        cohort: number of clients per round.
        facts: static facts of all clients, by the names in `signal.base.Static`.
        report: returns the values of a signal that clients report, from its name, all ids and the true values.
    """

    n_clients: int
    n_classes: int
    cohort: int
    facts: Mapping[str, np.ndarray]
    report: Callable[[str, Ids, np.ndarray], np.ndarray] = lambda signal, clients, values: values

    def read_reported(self, name: str, signal: Static) -> np.ndarray:
        """Return the values of a static signal that clients report when they register, [n_clients, ...]."""
        return self.report(name, np.arange(self.n_clients), self.facts[signal.fact])

    def signals(
        self, needs: frozenset[str], reader_name: str, server_signals: Mapping[str, float] = MappingProxyType({})
    ) -> Signals:
        """Return the values of the signals that a component declares; reading others raises an error.

        Args:
            needs: signals that it declares.
            reader_name: name of the component in messages.
            server_signals: signals that the server has measured, by name.
        """
        static_values = {
            name: self.read_reported(name, signal) for name in needs if isinstance(signal := find_signal(name), Static)
        }
        return Signals({**static_values, **server_signals}, needs, reader_name)

    def for_selector(self, deadline: Deadline[Any]) -> "Populations":
        """Return the populations for a selector, with the cohort size that the deadline requests."""
        return replace(self, cohort=deadline.cohort_size(self.cohort))

    def for_reader(self, declared_signals: frozenset[str], reader_name: str) -> Population:
        return Population(self.n_clients, self.n_classes, self.cohort, self.signals(declared_signals, reader_name))

    @classmethod
    def from_federation(
        cls, federation: "Federation", cohort: int, timed_facts: Mapping[str, Values] = MappingProxyType({})
    ) -> "Populations":
        """Return the populations of a federation's clients, with their static facts.

        Args:
            federation: data of the run.
            cohort: number of clients per round.
            timed_facts: facts of devices and jobs, each [n_clients]; a missing one is 1 for every client.
        """
        client_facts = {
            "n_train": federation.n_train,
            "label_counts": federation.label_counts,
            "noise_rate": federation.noise_rate,
            **{fact_name: timed_facts.get(fact_name, np.ones(federation.n_clients)) for fact_name in TIMED_FACTS},
        }
        if federation.group_counts is not None:
            client_facts["group_counts"] = federation.group_counts
        return cls(federation.n_clients, federation.n_classes, cohort, client_facts)
