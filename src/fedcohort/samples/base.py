"""The contract of a sample selection: the samples that a client trains on in a round, and its reports about them."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Bool

from fedcohort.component import Component, Requirement
from fedcohort.types import Ids, Population, ReadOnly, RoundOutcome, Values

S = TypeVar("S")

LOSS_LIST_NAME = "sample_losses"  # the name under which a client stores its list of losses
CLEAN_LABELS_REQUIREMENT = Requirement(
    lambda facts: facts.federation and not facts.federation.noise_rate.any(),
    "{option} prefers samples with high losses, but wrong labels ({label_noise}) also cause high losses (choose "
    "samples=all, or label_noise=none)",
)


@dataclass(frozen=True)
class SampleRequest(ReadOnly):
    """The information by which a client chooses the samples of its next training.

    Attributes:
        client: id of the client.
        n: number of training samples of the client.
        deadline_s: the announced deadline in seconds, inf without one.
        travel_s: expected virtual seconds of everything but the training: download, forward passes, upload.
        unit_s: expected virtual seconds of one unit of work (an epoch or a step) on all n samples.
        units: number of units of work that the server requests.
        batch: samples in a mini-batch, at most n.
        losses: last known cross-entropy of each sample in nats, float64 [n]; empty if the client keeps no losses
            (`Samples.keeps_losses`), or has not computed them yet.
        rng: function that takes a purpose and returns the client's random generator for this round.
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
    """A sample selection: which of its samples each client trains on in a round.

    Attributes:
        uses_all_samples: whether all clients train on all of their samples, so that `choose` is not called.
        is_foreseeable: whether `choose` depends on the request's n and rng only, so that any client's samples of a
            round are known before the round is planned (`round.sampling.predict_chosen_samples`).
        keeps_losses: whether clients keep the last loss of each of their samples. A client without losses computes them
            with a forward pass of the global model over all of its samples. Later the losses in the first local epoch
            replace them, in each round in which the client's update arrives.
        reports_losses: whether `report_losses` returns the signals `loss_low` and `loss_high`; otherwise a run that
            reads these signals is rejected.
        needs: names of the signals that `observe` reads.
        bytes_down: bytes that each client receives in addition to the model and the deadline.
    """

    @property
    def uses_all_samples(self) -> bool:
        return False

    @property
    def is_foreseeable(self) -> bool:
        return self.uses_all_samples

    @property
    def keeps_losses(self) -> bool:
        return False

    @property
    def reports_losses(self) -> bool:
        return False

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def bytes_down(self) -> int:
        return 0

    @abstractmethod
    def init(self, population: Population) -> S:
        """Return the sample selection's state before round 0; `population` has sizes and static signals."""

    def stores_losses(self, state: S, n_samples: Ids) -> Bool[np.ndarray, "clients"]:
        """Return whether each client keeps the last losses of its samples, bool [clients].

        Args:
            state: the server's state of the sample selection.
            n_samples: training samples of each client, [clients].
        """
        return np.full(len(n_samples), self.keeps_losses)

    @abstractmethod
    def choose(self, state: S, request: SampleRequest) -> Ids:
        """Return the samples to train on: sorted positions in [0, n), at least one.

        Args:
            state: the server's state of the sample selection. A client reads only the loss threshold in it, if any.
            request: what the client knows of its samples and its work.
        """

    def sent_threshold(self, state: S) -> float:
        """Return the loss threshold, in nats, that clients receive with the model; 0 if they receive none.

        Args:
            state: the server's state of the sample selection.
        """
        return 0.0

    def report_losses(self, threshold: float, request: SampleRequest, losses: Values) -> Mapping[str, float]:
        """Return a client's reports about its sample losses after training, by name of the signal.

        Args:
            threshold: the loss threshold that the client received (`sent_threshold`), in nats.
            request: the information by which the client chose its samples.
            losses: last known loss of each of the client's samples, after its training, in nats, [n].
        """
        return {}

    def describe(self, state: S) -> Mapping[str, float]:
        """Return the numbers of `state` to log after each round, by name; the run logs each as `samples/<name>`."""
        return {}

    def observe(self, state: S, outcome: RoundOutcome) -> S:
        """Return the state that follows `state`; `outcome` has the arrivals of the round."""
        return state
