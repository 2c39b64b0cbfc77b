"""The contract of a codec: the bytes of an upload, and the update that the server decodes.

A codec encodes the update. Everything else is sent unchanged, and charged: uploads of hooks (SCAFFOLD's delta_c, P
floats), buffers, and the numbers of signals.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from fedcohort.codec.wire import Float32Vector, SentArrays, to_memory_order
from fedcohort.component import Component, Requirement
from fedcohort.flat import Layout
from fedcohort.hook import ClientHook, Vector
from fedcohort.ledger import BYTES_PER_NUMBER

SMALLER_UPDATE_REQUIREMENT = Requirement(
    lambda facts: facts.layout and facts.components.codec.shrinks(facts.layout),
    "{option} does not make updates of this network smaller: with its options every tensor is sent whole, or in more "
    "bytes. Choose other options of the codec, or codec=none",
)


class Codec(Component, Protocol):
    """A codec: how clients encode updates for the upload, and how the server decodes them.

    Attributes:
        hooks: client hooks that restrict local training to updates that can be sent; () if the codec encodes finished
            updates. Aggregators that need unrestricted updates require `component.UNRESTRICTED_UPDATE`.
        identity: whether every update arrives unchanged.
    """

    identity: ClassVar[bool] = False

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return ()

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({SMALLER_UPDATE_REQUIREMENT})

    def shrinks(self, layout: Layout) -> bool:
        """Return whether an encoded update has fewer bytes than the update, or whether every update arrives unchanged.

        Args:
            layout: names and shapes of the network's tensors.
        """
        return self.identity or self.bytes_up(layout) < BYTES_PER_NUMBER * layout.n_params

    @abstractmethod
    def bytes_up(self, layout: Layout) -> int:
        """Return the bytes of one encoded update.

        The number is known before training, so that the device model can compute the time of the upload.

        Args:
            layout: names and shapes of the network's tensors.
        """

    @abstractmethod
    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        """Return a client's update as the server decodes it, a vector of P parameters.

        Args:
            delta: the update, [P].
            layout: names and shapes of the network's tensors.
            rng: function that returns the generator of (seed, "codec", round, client), as `ctx.rng("codec")` in a hook.
        """


class WireCodec(Codec, Protocol):
    """A codec that sends arrays: `encode` makes them from an update, and `decode` an update from them."""

    @abstractmethod
    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> SentArrays:
        """Return the arrays that a client sends for its update.

        Args:
            delta: the update, float [P].
            layout: names and shapes of the network's tensors.
            rng: function that returns the generator of (seed, "codec", round, client).
        """

    @abstractmethod
    def decode(self, sent_arrays: SentArrays, layout: Layout) -> Float32Vector:
        """Return the update that the server decodes from the arrays of `encode`, float32 [P].

        Args:
            sent_arrays: the arrays.
            layout: names and shapes of the network's tensors.
        """

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        return to_memory_order(self.decode(self.encode(delta, layout, rng), layout), layout, delta)
