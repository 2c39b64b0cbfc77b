"""The contract of a codec: what an upload costs on the wire, and what is left of it at the server.

It is the update that a codec encodes. What travels beside it travels as it is, and is counted: what hooks upload
(SCAFFOLD's delta_c, P floats), buffers, and the numbers that signals report.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np

from fedcohort.component import Component, Requirement
from fedcohort.flat import Layout
from fedcohort.hook import ClientHook, Vector
from fedcohort.ledger import NUMBER

SMALLER_UPDATE = Requirement(
    lambda run: run.layout and run.parts.codec.shrinks(run.layout),
    "{option} makes no update of this network smaller: with its options every tensor is sent whole, or in more bytes",
)


class Codec(Component, Protocol):
    """What is left of an update, and what it costs.

    Attributes:
        hooks: what it does to local training, where the update is kept within what can be sent; () where it works on
            finished updates. Aggregators that need updates to be free of that require `component.FREE_UPDATE`.
        identity: whether every update arrives as it is.
    """

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return ()

    @property
    def identity(self) -> bool:
        return False

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({SMALLER_UPDATE})

    def shrinks(self, layout: Layout) -> bool:
        """Whether an encoded update has fewer bytes than the update, or nobody wants it to."""
        return self.identity or self.bytes_up(layout) < NUMBER * layout.n_params

    @abstractmethod
    def bytes_up(self, layout: Layout) -> int:
        """Return the bytes of one encoded update.

        They are known before training, so that the device model can charge its time.
        """

    @abstractmethod
    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        """Returns the update as the server decodes it, [P].

        `rng` makes the generator of (seed, "codec", round, client), which a hook gets as `job.rng("codec")`.
        """
