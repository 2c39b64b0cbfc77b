"""The contract of a codec: what an upload costs on the wire, and what is left of it at the server."""

from typing import Protocol

import numpy as np

from fedcohort.flat import Layout
from fedcohort.hook import Vector


class Codec(Protocol):
    def bytes_up(self, layout: Layout) -> int:
        """Bytes of one encoded update; known before training, so that the device model can charge its time."""
        ...

    def transmit(self, delta: Vector, layout: Layout, rng: np.random.Generator) -> Vector:
        """The update as the server decodes it. rng: keyed by (seed, "codec", round, client)."""
        ...
