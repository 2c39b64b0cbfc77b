"""The contract of an aggregator: what is done with the updates that arrive.

It is algebra on flat vectors. The loop adds updates up one by one in float64 (`Arrived.mean`), so that methods which
need a weighted sum alone keep memory flat in the cohort; those that need the matrix say `stacked`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from fedcohort.component import Component
from fedcohort.hook import ClientHook
from fedcohort.types import Ids, Population, ReadOnly, RoundOutcome, Values

S = TypeVar("S")


class ServerModels(Protocol):
    """Where an aggregator works with whole networks, on the server: w_t at hand, and inputs without labels.

    What goes through the networks made here is counted, and charged to the server (`comp/server_flops`).
    proxy: the server's inputs, [n, ...]; there are some where the aggregator requires `component.PROXY`.
    """

    @property
    def proxy(self) -> Tensor: ...

    def model(self, update: Float[Tensor, "p"], buffers: Float[Tensor, "b"] | None) -> nn.Module:
        """Make a network with w_t + update, whose tensors are its own; buffers None: the round's average."""
        ...

    def update_of(self, network: nn.Module) -> Float[Tensor, "p"]:
        """Return the network's trained parameters minus w_t, float64 [P]."""
        ...

    def accuracy(self, network: nn.Module) -> float:
        """Return the network's accuracy on the server's validation set, in eval mode, in [0, 1]."""
        ...

    def rng(self, purpose: str) -> np.random.Generator:
        """Make the generator of (seed, purpose, round)."""
        ...


@dataclass(frozen=True)
class Arrived(ReadOnly):
    """What `direction` sees: at least one client has arrived.

    Attributes:
        mean: sum_i p_i D_i in float64 [P], p_i from `weights` normalised over those who arrived, D_i = y_i - w_t.
        totals: sum_i of each vector that the hooks uploaded, float64 [P]; sum_i p_i of those that a `Weigher` averages.
        weights: p_i, aligned with `outcome.clients`. They sum to 1, unless a selector's advice is absolute, and are 0
            for whom it leaves out, who counts as one that has not arrived.
        updates: D, [m, P] in the order of `outcome.clients`, for `stacked` aggregators, else None.
        buffers: float64 [m, B], likewise.
        workshop: the server's, for this round.
    """

    outcome: RoundOutcome
    mean: Float[Tensor, "p"]
    totals: Mapping[str, Tensor]
    weights: Values
    updates: Float[Tensor, "m p"] | None
    buffers: Float[Tensor, "m b"] | None = None
    workshop: ServerModels | None = None

    @property
    def bench(self) -> ServerModels:
        """The workshop, for an aggregator that works in one."""
        if self.workshop is None:
            raise ValueError("this aggregator works in a workshop, and was given none")
        return self.workshop

    def model_of(self, i: int) -> nn.Module:
        """Make the network that client i of `outcome.clients` trained, with its own buffers."""
        return self.bench.model(self.matrix[i], None if self.buffers is None else self.buffers[i])

    @property
    def matrix(self) -> Float[Tensor, "m p"]:
        """The updates [m, P], for a `stacked` aggregator."""
        if self.updates is None:
            raise ValueError("only an aggregator with stacked = True gets the matrix of updates")
        return self.updates

    def combine(self, weights: Values) -> "Direction":
        """Return sum_i weights_i D_i as a direction, with the weights [m] as they are."""
        return Direction(torch.tensor(weights).to(self.matrix) @ self.matrix, weights)


@dataclass(frozen=True)
class Direction:
    """What the server optimizer applies.

    Attributes:
        displacement: what the server optimizer applies, float64 [P].
        weights: those that each of `outcome.clients` has in it, [m]; None where they are `Arrived.weights`.
    """

    displacement: Float[Tensor, "p"]
    weights: Values | None = None


class Aggregator(Component, Protocol[S]):
    """The server's step from the clients' updates; it writes `init`, `weights`, `direction`, and what else it does.

    Attributes:
        needs: signals of the clients that it reads. A ClassVar, or a property where options decide.
        stacked: whether it needs the matrix of updates, not their weighted sum alone.
        hooks: its client half.
        own_length: whether its paper chooses the length of the step, and not as a mean of updates has it.
    """

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def stacked(self) -> bool:
        return False

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return ()

    @property
    def own_length(self) -> bool:
        return False

    @abstractmethod
    def init(self, population: Population, n_params: int) -> S:
        """Make the state before round 0."""

    def broadcast(self, state: S) -> Mapping[str, Tensor]:
        """Return the vectors sent to clients beside the model, by the names that the hooks download."""
        return {}

    @abstractmethod
    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        """Return the raw weights of clients, before normalisation, [len(n_used)].

        They are known before training, so that sums can stream.
        """

    @abstractmethod
    def direction(self, state: S, arrived: Arrived) -> tuple[Direction, S]:
        """Return what the server optimizer applies, and the next state. Not called in an empty round."""


def sample_weights(rule: str, n_used: Ids, n_train: Ids) -> Values:
    """Return raw weights, float64, aligned with the arguments.

    rule: "used" weighs by the samples that mini-batches are drawn from (`ClientUpdate.n_used`), "samples" by those
    owned, "uniform" equally.
    """
    if rule == "uniform":
        return np.ones(len(n_used))
    return (n_used if rule == "used" else n_train).astype(np.float64)
