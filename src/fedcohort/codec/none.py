"""No compression: an update is sent as P float32 numbers, and arrives unchanged.

Departures from the paper: none (no paper).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.codec.base import Codec
from fedcohort.flat import Layout
from fedcohort.hook import Vector


@dataclass(frozen=True)
class NoCodec(Codec):
    """An upload codec without compression; it has no options."""

    identity: ClassVar[bool] = True

    def bytes_up(self, layout: Layout) -> int:
        return 4 * layout.n_params

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        return delta
