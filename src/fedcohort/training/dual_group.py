"""A group of clients that the dual engine trains at once: its shape, its plan, and its samples with padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.training.client_task import ClientTask
from fedcohort.training.passes import PassOrders

GramMatrices = Float[Tensor, "k rows rows"]


@dataclass(frozen=True)
class GroupShape:
    """Properties that clients must share to be trained at once.

    Attributes:
        n_steps: number of steps of one pass over the samples.
        batch_width: number of samples of a step, with padding.
        units: epochs or steps of the task.
    """

    n_steps: int
    batch_width: int
    units: int

    @property
    def n_rows(self) -> int:
        return self.n_steps * self.batch_width


@dataclass(frozen=True)
class GroupPlan:
    """A group of clients of equal `GroupShape`, which are trained at once.

    Attributes:
        tasks: tasks of the clients.
        shape: shape that they share.
        pass_orders: passes of each client over its samples.
        index_arrays: arrays that are copied to the device at once. First the row of each sample in the training data,
            in the order of the first pass and with padding, [k, rows]. Then the positions in the first pass of the
            samples of further passes, [passes - 1, k, rows], and the numbers of samples, [k].
    """

    tasks: Sequence[ClientTask]
    shape: GroupShape
    pass_orders: Sequence[PassOrders]
    index_arrays: Sequence[np.ndarray]


@dataclass(frozen=True)
class PaddedSamples:
    """Samples of several clients, padded to the same number of rows.

    Attributes:
        x: inputs.
        y: labels.
        logits: logits of the global model.
        sample_shares: 1 over the size of the mini-batch at this row, 0 for padding.
    """

    x: Float[Tensor, "k rows d"]
    y: Int64[Tensor, "k rows"]
    logits: Float[Tensor, "k rows c"]
    sample_shares: Float[Tensor, "k rows"]

    def reorder_samples(self, row_order: Int64[Tensor, "k rows"]) -> "PaddedSamples":
        """Return the samples in `row_order`, positions of rows; inputs and mini-batch shares stay in place."""
        logits = self.logits.gather(1, row_order[:, :, None].expand_as(self.logits))
        return PaddedSamples(self.x, self.y.gather(1, row_order), logits, self.sample_shares)


def reorder_gram_matrices(grams: GramMatrices, row_order: Int64[Tensor, "k rows"]) -> GramMatrices:
    """Return `grams` with rows and columns in the order of `row_order`, positions of samples."""
    return grams.gather(1, row_order[:, :, None].expand_as(grams)).gather(2, row_order[:, None, :].expand_as(grams))
