"""The contract of a codec: what an upload costs on the wire, and what is left of it at the server."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from fedcohort.flat import Layout
from fedcohort.hook import Vector


class Codec(Protocol):
    def bytes_up(self, layout: Layout) -> int:
        """Bytes of one encoded update; known before training, so that the device model can charge its time."""
        ...

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        """The update as the server decodes it. rng: makes the generator of (seed, "codec", round, client)."""
        ...
