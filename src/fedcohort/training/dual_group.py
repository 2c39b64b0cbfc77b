"""A group of clients that the dual engine trains at once: its shape, its plan, and its samples with padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.training.client_task import ClientTask
from fedcohort.training.passes import PassOrders

GramMatrices = Float[Tensor, "k rows rows"]
MAX_ENTRIES = 2**20  # of a group's inputs, and of its Gram matrices, so that they stay in the processor's cache
# Rough speed of small matrix products; seconds of a mini-batch step apart from them, and of bringing an entry of a Gram
# matrix into the order of a further pass. They only decide between dual and plain steps.
FLOPS_PER_SECOND, STEP_OVERHEAD_S, REORDER_ENTRY_S = 5e10, 6e-5, 1e-8


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

    def find_max_clients(self, n_inputs: int) -> int:
        """Return the largest number of clients with `n_inputs` inputs per sample whose entries are in the cache."""
        return max(1, MAX_ENTRIES // (self.n_rows * max(self.n_rows, n_inputs)))


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
