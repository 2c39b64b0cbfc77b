"""Sparse uploads: a seed and the share rho of each tensor's numbers, at random positions that the seed selects."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.codec import wire
from fedcohort.codec.base import WireCodec
from fedcohort.flat import Layout
from fedcohort.hook import Vector
from fedcohort.ledger import BYTES_PER_NUMBER


@dataclass(frozen=True)
class Sparse(WireCodec):
    """A codec that sends a random share of an update's numbers, at positions that a seed selects.

    Attributes:
        rho: share of each tensor's numbers that is sent.
        unbiased: whether the server scales the numbers by the inverse of their share.
    """

    rho: float

    unbiased: ClassVar[bool]

    def __post_init__(self) -> None:
        ranges.number("rho", self.rho, "(0, 1]")

    def bytes_up(self, layout: Layout) -> int:
        """Return the bytes of an upload: 4 for each number sent, and 8 for the seed of their positions.

        Args:
            layout: names and shapes of the network's tensors.
        """
        n_sent_numbers = sum(wire.count_sent_numbers(self.rho, block.size) for block in layout.parameters)
        return wire.SEED_BYTES + BYTES_PER_NUMBER * n_sent_numbers

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> wire.SentArrays:
        """Return the arrays to send: a seed, uint64 [1], and the numbers of the update that the seed selects.

        Args:
            delta: the update, [P].
            layout: names and shapes of the network's tensors.
            rng: function that returns the generator from which the seed is drawn.
        """
        seed, update_numbers = wire.draw_seed(rng()), wire.to_index_order(delta, layout)
        positions_by_block = wire.draw_sent_positions(self.rho, layout, seed)
        return seed, wire.join_arrays([update_numbers[entry_ids] for entry_ids in positions_by_block])

    def decode(self, sent_arrays: wire.SentArrays, layout: Layout) -> wire.Float32Vector:
        """Return the update that the arrays of `encode` stand for, float32 [P], with 0 for each number not sent.

        Args:
            sent_arrays: the arrays.
            layout: names and shapes of the network's tensors.
        """
        seed, sent_numbers = sent_arrays
        decoded_update = np.zeros(layout.n_params, dtype=np.float32)
        sent_start = 0
        for block, entry_ids in zip(layout.parameters, wire.draw_sent_positions(self.rho, layout, seed), strict=True):
            unbiased_factor = block.size / len(entry_ids) if self.unbiased else 1.0
            decoded_update[entry_ids] = sent_numbers[sent_start : sent_start + len(entry_ids)] * unbiased_factor
            sent_start += len(entry_ids)
        return decoded_update
