"""The parts that a run is composed of, and the few numbers that belong to none of them."""

from collections.abc import Mapping
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
from fedcohort.hook import ClientHook, memory_sizes
from fedcohort.ledger import Charge
from fedcohort.objective.base import Objective
from fedcohort.proxy.base import Proxy
from fedcohort.regulariser.base import Regulariser
from fedcohort.round.backoff import NO_FAILURES, Backoff
from fedcohort.round.guard import prefixed
from fedcohort.round.uniform import UniformReference
from fedcohort.samples.base import LOSSES, Samples
from fedcohort.selector.base import Selector
from fedcohort.server.base import ServerOptimizer
from fedcohort.signal.base import Static, find
from fedcohort.state import pack, unpack
from fedcohort.types import Ids, Population, Signals, Values

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation

TIMED = ("expected_s", "expected_unit_s", "expected_up_s", "pass_units")  # facts that `round/cost.py` works out


@dataclass(frozen=True)
class Parts:
    """The parts of a run: one object per config group."""

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

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        """All hooks, in the order in which they train; the aggregator's first: it sees the raw gradient."""
        return (*self.agg.hooks, *self.regulariser.hooks, *self.codec.hooks)

    @property
    def tells_deadline(self) -> bool:
        """Whether clients are told when the round closes: those who do what fits of before then have to know."""
        return self.deadline.announces and (
            self.deadline.partial_work or ANNOUNCED_DEADLINE in self.samples.requirements
        )

    def hooks_in(self, plain: bool) -> tuple[ClientHook, ...]:
        """Return the hooks of a round: the codec's alone where it is plain (`Selection.plain`)."""
        return self.codec.hooks if plain else self.hooks

    def needs(self, plain: bool = False) -> frozenset[str]:
        """Return the signals that the server reads; in a plain round the aggregator reads none."""
        needs = self.selector.needs | self.samples.needs | self.deadline.needs
        return needs if plain else needs | self.agg.needs

    def describe(self, state: "ServerState") -> dict[str, float]:
        """Return what sample selection and deadline say of their states, as metrics by name."""
        found = {"samples": self.samples.describe(state.samples), "deadline": self.deadline.describe(state.deadline)}
        return {f"{group}/{name}": value for group, values in found.items() for name, value in values.items()}

    def remembers(self, plain: bool, layout: Layout, n_samples: int) -> dict[str, int]:
        """Return how many floats each thing takes that a client keeps, by name; n_samples: the most that one has."""
        sizes = memory_sizes(self.hooks_in(plain), layout.n_params, n_samples)
        return sizes | ({LOSSES: n_samples} if self.samples.keeps_losses else {})


@dataclass
class ServerState:
    """Everything of the server that changes between rounds, the model apart."""

    selector: Any
    agg: Any
    server: Any
    samples: Any
    deadline: Any
    times_selected: Ids
    uniform: UniformReference
    spent: Charge = field(default_factory=Charge)
    best_acc: float = float("nan")
    choices: str = ""
    failures: Backoff = NO_FAILURES

    @classmethod
    def fresh(cls, parts: Parts, population: "Populations", n_params: int) -> "ServerState":
        """Make the state before round 0."""
        return cls(
            selector=parts.selector.init(
                population.asking(parts.deadline).for_reader(parts.selector.needs, "the selector")
            ),
            agg=parts.agg.init(population.for_reader(parts.agg.needs, "the aggregator"), n_params),
            server=parts.server.init(n_params),
            samples=parts.samples.init(population.for_reader(parts.samples.needs, "the sample selection")),
            deadline=parts.deadline.init(population.for_reader(parts.deadline.needs, "the deadline")),
            times_selected=np.zeros(population.n_clients, dtype=np.int64),
            uniform=UniformReference.fresh(population.n_clients),
        )

    def pack(self, parts: Parts | None = None) -> dict[str, Any]:
        """Return plain data for a checkpoint; parts: those of the run.

        Raises `ComponentError` where a part's state holds anything else.
        """
        packed = {}
        for name, value in vars(self).items():
            try:
                packed[name] = pack(value)
            except TypeError as error:
                with prefixed(getattr(parts, name, None)):
                    raise ComponentError(f"the state can't be saved in a checkpoint: {error}") from error
        return packed

    @classmethod
    def unpack(cls, payload: dict[str, Any], fresh: "ServerState") -> "ServerState":
        """Restore what `pack` made; `fresh` tells the class of each part's State.

        Raises `CheckpointError` where the payload is of other code.
        """
        if payload.keys() != vars(fresh).keys():
            raise CheckpointError(f"the server's state has {sorted(vars(fresh))}, the checkpoint's {sorted(payload)}")
        return cls(**{name: unpack(payload[name], type(value)) for name, value in vars(fresh).items()})


@dataclass(frozen=True)
class Populations:
    """Makes the `Population` that each part may see: the static signals that it declares.

    facts: by the names that `signal.base.Static` uses.
    """

    n_clients: int
    n_classes: int
    cohort: int
    facts: Mapping[str, np.ndarray]

    def signals(self, needs: frozenset[str], reader: str, own: Mapping[str, float] = MappingProxyType({})) -> Signals:
        """Return what `reader` may know. own: what the server has measured of w_t itself, by word."""
        found = {word: find(word) for word in needs}
        values = {word: self.facts[s.fact] for word, s in found.items() if isinstance(s, Static)}
        return Signals({**values, **own}, needs, reader)

    def asking(self, deadline: Deadline[Any]) -> "Populations":
        """Return the populations of a selector, which is asked for as many clients as the deadline has it."""
        return replace(self, cohort=deadline.ask(self.cohort))

    def for_reader(self, needs: frozenset[str], reader: str) -> Population:
        return Population(self.n_clients, self.n_classes, self.cohort, self.signals(needs, reader))

    @classmethod
    def over(
        cls, federation: "Federation", cohort: int, timed: Mapping[str, Values] = MappingProxyType({})
    ) -> "Populations":
        """Make the populations of a federation.

        Args:
            federation: the data of all clients.
            cohort: clients asked for per round.
            timed: the facts of devices and jobs, each [n_clients]; ones where they are not known yet.
        """
        facts = {
            "n_train": federation.n_train,
            "label_counts": federation.label_counts,
            "noise_rate": federation.noise_rate,
            **{fact: timed.get(fact, np.ones(federation.n_clients)) for fact in TIMED},
        }
        if federation.group_counts is not None:
            facts["group_counts"] = federation.group_counts
        return cls(federation.n_clients, federation.n_classes, cohort, facts)
