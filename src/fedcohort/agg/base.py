"""The contract of an aggregator, which turns the updates that arrived into the server's step.

It is algebra on flat vectors. The loop adds updates up one by one in float64 (`Arrived.mean`), so that memory does not
grow with the cohort. A method that needs the matrix of updates sets `stacked`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from fedcohort import ranges
from fedcohort.component import Component
from fedcohort.errors import renamed_attribute
from fedcohort.hook import ClientHook
from fedcohort.types import Ids, Population, ReadOnly, RoundOutcome, Values

S = TypeVar("S")


class ServerModels(Protocol):
    """The networks on the server, for aggregators that work with whole networks and inputs without labels.

    Work done in these networks is counted and charged to the server (`comp/server_flops`).

    Attributes:
        proxy: the server's unlabelled inputs, [n, ...]; available where the aggregator requires "proxy".
    """

    @property
    def proxy(self) -> Tensor: ...

    def model(self, update: Float[Tensor, "p"], buffers: Float[Tensor, "b"] | None) -> nn.Module:
        """Return a new network with the parameters w_t + `update`, w_t the global model.

        `buffers` are its buffers, such as batch norm's statistics; None takes the mean of the clients' buffers.
        """
        ...

    def update_of(self, network: nn.Module) -> Float[Tensor, "p"]:
        """Return the trained parameters of `network` minus the global model w_t, float64 [P]."""
        ...

    def accuracy(self, network: nn.Module) -> float:
        """Return the accuracy of `network` on the server's validation set, in eval mode, in [0, 1]."""
        ...

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random generator of the run's seed, the round and `purpose`, a text that names the use."""
        ...


@dataclass(frozen=True)
class Arrived(ReadOnly):
    """The updates that arrived in a round, which an aggregator combines; at least one client arrived.

    Attributes:
        outcome: ids, signals and durations of the m clients that arrived.
        mean: weighted mean of the updates, sum_i p_i D_i, in float64 [P].
        totals: sum over clients of each vector that the hooks uploaded, by name, float64 [P]; a weighted mean for the
            vectors that a `Weigher` averages.
        weights: weight p_i of each of `outcome.clients`, [m]. The weights sum to 1, unless a selector sets weights that
            must keep their sum. A client that the selector excludes has weight 0, and counts as not arrived.
        updates: update D_i = y_i - w_t of each client, [m, P] in the order of `outcome.clients`, for `stacked`
            aggregators, else None.
        buffers: the clients' buffers (batch norm's statistics), float64 [m, B], for `stacked` aggregators, else None.
        server_models: the networks on the server, for this round.
        discounts: factor by which the deadline has lowered the weight of each client for the staleness of its update,
            [m]; None if all updates are of the current model.
        end_s: virtual second at which each update arrived, [m]; None if it is unknown.
        sent_offset: function of a round that returns the model sent to its clients minus w_t, float64 [P]; None if
            it is unknown.
    """

    outcome: RoundOutcome
    mean: Float[Tensor, "p"]
    totals: Mapping[str, Tensor]
    weights: Values
    updates: Float[Tensor, "m p"] | None
    buffers: Float[Tensor, "m b"] | None = None
    server_models: ServerModels | None = None
    discounts: Values | None = None
    end_s: Values | None = None
    sent_offset: Callable[[int], Tensor] | None = None
    workshop = renamed_attribute("Arrived.workshop", "server_models")
    bench = renamed_attribute("Arrived.bench", "required_server_models")

    @property
    def required_server_models(self) -> ServerModels:
        """Return the networks on the server, for an aggregator that requires them. Raises `ValueError` without them."""
        if self.server_models is None:
            raise ValueError("Arrived has no server_models, which this aggregator requires: pass it to Arrived")
        return self.server_models

    def model_of(self, i: int) -> nn.Module:
        """Return the network that the i-th of `outcome.clients` trained, with its own buffers."""
        return self.required_server_models.model(self.matrix[i], None if self.buffers is None else self.buffers[i])

    @property
    def matrix(self) -> Float[Tensor, "m p"]:
        """Return the matrix of the clients' updates, [m, P]. Raises `ValueError` for aggregators without `stacked`."""
        if self.updates is None:
            raise ValueError(
                "Arrived has no matrix of updates, which the aggregator reads: set stacked = True in the aggregator"
            )
        return self.updates

    @property
    def staleness_factors(self) -> Values:
        """Return the discount of each update for its staleness, [m]; ones if all updates are of the current model."""
        return np.ones(len(self.weights)) if self.discounts is None else self.discounts

    def add_model_offsets(self, update_sum: Float[Tensor, "p"], weights: Values) -> Float[Tensor, "p"]:
        """Return the weighted sum of y_i - w_t over the clients' models y_i, [P], also if some updates are late.

        An update is y_i minus the model that the client received, which is older than w_t for a late update. Raises
        `ValueError` if there are late updates, but no `sent_offset`.

        Args:
            update_sum: weighted sum of the updates, [P].
            weights: weight of each update in both sums, [m].
        """
        staleness = self.outcome.staleness
        for staleness_in_steps in np.unique(staleness[staleness > 0]).tolist():
            if self.sent_offset is None:
                raise ValueError("Arrived has late updates but no sent_offset: pass sent_offset to Arrived")
            model_offset = self.sent_offset(self.outcome.round - staleness_in_steps)
            update_sum = update_sum + float(weights[staleness == staleness_in_steps].sum()) * model_offset
        return update_sum

    def combine(self, weights: Values) -> "Direction":
        """Return the sum of updates times `weights`, [m], as a direction; the weights are not normalised."""
        return Direction(torch.tensor(weights).to(self.matrix) @ self.matrix, weights)


@dataclass(frozen=True)
class Direction:
    """The server update (pseudo-gradient) of a round.

    Attributes:
        displacement: the vector that the server optimizer applies, float64 [P].
        weights: weight of each of `outcome.clients` in `displacement`, [m]; None stands for `Arrived.weights`.
    """

    displacement: Float[Tensor, "p"]
    weights: Values | None = None


class Aggregator(Component, Protocol[S]):
    """The server's step from the clients' updates; a method implements `init`, `weights` and `direction`.

    Attributes:
        needs: names of the client signals that the method reads. A ClassVar, or a property where options decide.
        stacked: whether the method needs the matrix of updates, not only their weighted sum.
        hooks: the part of the method that runs in local training.
        sets_step_length: whether the method sets the length of the step; otherwise the step is a mean of updates.
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
    def sets_step_length(self) -> bool:
        return False

    @abstractmethod
    def init(self, population: Population, n_params: int) -> S:
        """Return the aggregator's state before round 0.

        Args:
            population: numbers of clients and classes, cohort size, and static signals.
            n_params: number of model parameters P.
        """

    def broadcast(self, state: S) -> Mapping[str, Tensor]:
        """Return the vectors sent to clients in addition to the model, by the names in `downloads` of the hooks.

        `state` is the aggregator's state before the round.
        """
        return {}

    @abstractmethod
    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        """Return the weights of n clients before normalisation, [n].

        The weights are known before training, so that updates can be summed one by one.

        Args:
            n_used: samples that each client's mini-batches are drawn from, [n].
            n_train: training samples of each client, [n].
        """

    @abstractmethod
    def direction(self, state: S, arrived: Arrived) -> tuple[Direction, S]:
        """Return the server update of a round and the state that follows `state`.

        `arrived` has the updates that arrived, at least one; a round without arrivals makes no step.
        """


@dataclass(frozen=True)
class SampleWeighted(Aggregator[S]):
    """An aggregator that weighs clients by their samples or equally, by the option `weighting`.

    Attributes:
        weighting: "used" weighs by the samples that mini-batches are drawn from, "samples" by the training samples,
            "uniform" equally.
    """

    weighting: str

    def __post_init__(self) -> None:
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        if self.weighting == "uniform":
            return np.ones(len(n_used))
        return (n_used if self.weighting == "used" else n_train).astype(np.float64)


class EquallyWeighted(Aggregator[S]):
    """An aggregator that gives all clients the same weight before normalisation."""

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return np.ones(len(n_used))


class Stateless(Aggregator[None]):
    """An aggregator that keeps no state between rounds."""

    def init(self, population: Population, n_params: int) -> None:
        """Return None, whatever `population` and `n_params` are: the method keeps no state between rounds."""


class StatelessSampleWeighted(Stateless, SampleWeighted[None]):
    """A `SampleWeighted` aggregator that keeps no state between rounds."""
