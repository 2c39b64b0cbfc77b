"""The contract of a local optimizer, and the work and the learning-rate schedule that all share."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fedcohort import ranges
from fedcohort.component import Component

if TYPE_CHECKING:
    import torch


MIN_LR = 1e-30  # it changes no parameter; aggregators divide by learning rates, in float32


class Client(Component, Protocol):
    """A local optimizer: how a client trains in a round, by which steps and for how long.

    Attributes:
        epochs: number of local epochs in a round, unless `steps` is set.
        steps: number of mini-batch steps in a round; None to train `epochs`.
        batch: samples of a mini-batch; None for one batch of all samples.
        clip: largest gradient norm; None for no clipping.
        weight_decay: multiple of the parameters y that is added to the gradient.
        plain: whether a step is exactly y <- y - lr g, for the parameters y and their gradient g.
        linear: whether steps are linear in past gradients (SGD with momentum is, Adam is not).
    """

    epochs: int
    steps: int | None
    batch: int | None
    clip: float | None
    weight_decay: float

    @property
    def plain(self) -> bool:
        return False

    @property
    def linear(self) -> bool:
        return False

    def takes_several_steps(self, n_samples: int | None = None) -> bool | None:
        """Return whether a client takes more than one step in a round; None if it depends on unknown data.

        Args:
            n_samples: number of training samples of the client; None if unknown.
        """
        if self.steps is not None or self.epochs > 1:
            return self.steps is None or self.steps > 1
        if self.batch is None:
            return False
        return None if n_samples is None else n_samples > self.batch

    @abstractmethod
    def lr_at(self, round: int) -> float:
        """Return the local learning rate in the round `round`, counted from 0."""

    @abstractmethod
    def optimizer(self, flat_parameter: "torch.nn.Parameter", lr: float) -> "torch.optim.Optimizer":
        """Return a new optimizer; clients keep no optimizer state between rounds.

        Args:
            flat_parameter: all parameters of the network in one vector, [P].
            lr: learning rate of the round.
        """


@dataclass(frozen=True)
class LocalOptimization(Client):
    """A local optimizer with a learning-rate schedule, whose options all local optimizers share.

    The learning rate must be at most 1e30, as clients train in float32. `Client` explains the other options.

    Attributes:
        lr: local learning rate of round 0.
        decay: factor by which the learning rate is multiplied in each round.
        milestones: rounds, counted from 0; from each of them on the learning rate is multiplied by `factor`.
        factor: factor of the learning rate at each milestone.
    """

    lr: float
    decay: float
    milestones: Sequence[int]
    factor: float
    weight_decay: float
    epochs: int
    steps: int | None
    batch: int | None
    clip: float | None

    def __post_init__(self) -> None:
        ranges.number("lr", self.lr, "(0, 1e30]")
        ranges.number("decay", self.decay, "(0, 1]")
        ranges.integers("milestones", self.milestones, "[1, inf)")
        ranges.number("factor", self.factor, "(0, 1]")
        ranges.number("weight_decay", self.weight_decay, "[0, 1e30]")
        ranges.integer("epochs", self.epochs, "[1, inf)")
        ranges.integer("steps", self.steps, "[1, inf)", allow_null=True)
        ranges.integer("batch", self.batch, "[1, inf)", allow_null=True)
        ranges.number("clip", self.clip, "(0, inf)", allow_null=True)

    def lr_at(self, round: int) -> float:
        """Return the learning rate of a round, lr decay^round factor^(number of milestones up to this round).

        It is at least `MIN_LR`.
        """
        n_milestones = sum(round >= milestone for milestone in self.milestones)
        return max(float(self.lr * self.decay**round * self.factor**n_milestones), MIN_LR)
