"""The contract of sample selection: which of its samples a client trains on this round, and what it tells of them."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Bool

from fedcohort.component import Component, Requirement
from fedcohort.types import Ids, Population, ReadOnly, RoundOutcome, Values

S = TypeVar("S")

LOSSES = "sample_losses"  # the name under which a client keeps its list
CLEAN_LABELS = Requirement(
    lambda run: run.federation and not run.federation.noise_rate.any(),
    "high losses draw {option} to samples, and wrong labels ({label_noise}) make losses high, too",
)


@dataclass(frozen=True)
class SampleRequest(ReadOnly):
    """A client that asks which samples to train on.

    Attributes:
        client: its id.
        n: samples it has.
        deadline_s: what was announced, inf without a deadline.
        travel_s: expected virtual seconds of all but the training: download, forward passes beside it, upload.
        unit_s: expected virtual seconds of one unit of work on all n samples.
        units: units asked.
        batch: samples in a mini-batch.
        losses: the last cross-entropy of each sample that the client knows of, in nats, float64 [n]; empty where
            clients keep no list (`Samples.keeps_losses`), or this one hasn't looked.
        rng: makes the client's own generator of a purpose for this round; only those who draw pay for it.
    """

    client: int
    n: int
    deadline_s: float
    travel_s: float
    unit_s: float
    units: int
    batch: int
    losses: Values
    rng: Callable[[str], np.random.Generator]


class Samples(Component, Protocol[S]):
    """Which of its samples each client trains on.

    Attributes:
        everything: whether that is all of them for everybody: then nobody is asked.
        foreseen: whether `choose` goes by the request's n and rng alone, so that it is known before a round is planned
            what any client would train on in it (`round.sampling.foresee`).
        keeps_losses: whether clients keep a list of their samples' losses. Who has none looks at all of its samples,
            for a forward pass on w_t; later the list follows from the first local epoch of each round that arrives.
        tells_losses: whether `tell` says `loss_low` and `loss_high` of each list; without it these signals are refused.
        needs: signals that `observe` reads.
        bytes_down: of what each client is told beside the model and the deadline.
    """

    @property
    def everything(self) -> bool:
        return False

    @property
    def foreseen(self) -> bool:
        return self.everything

    @property
    def keeps_losses(self) -> bool:
        return False

    @property
    def tells_losses(self) -> bool:
        return False

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def bytes_down(self) -> int:
        return 0

    @abstractmethod
    def init(self, population: Population) -> S:
        """The state before round 0."""

    def look(self, state: S, n: Ids) -> Bool[np.ndarray, "clients"]:
        """Say which clients keep a list, given their numbers of samples n, [clients]."""
        return np.full(len(n), self.keeps_losses)

    @abstractmethod
    def choose(self, state: S, request: SampleRequest) -> Ids:
        """Choose the samples to train on: sorted positions in [0, n), at least one."""

    def tell(self, state: S, request: SampleRequest, losses: Values) -> Mapping[str, float]:
        """Return what a client tells of its list after training, by word of `signal/`; losses: the list then, [n]."""
        return {}

    def describe(self, state: S) -> Mapping[str, float]:
        """Return numbers of the state that are logged after each round, by a name that goes behind the group's."""
        return {}

    def observe(self, state: S, outcome: RoundOutcome) -> S:
        """Learn from those who arrived."""
        return state
