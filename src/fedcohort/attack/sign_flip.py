"""Sign flip: attackers send the opposite of the update that they trained.

Not from a paper; a common attack in studies of robust aggregation.

    sent:  -scale * D_i

Part of the public code flips the gradient of every local step instead. That gives another update where a client takes
several steps.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.attack.base import ShareOfClients, UpdateStats


@dataclass(frozen=True)
class SignFlip(ShareOfClients):
    """Sign flip, an attack on updates.

    Attributes:
        scale: factor of the opposite update.
    """

    scale: float

    falsifies_updates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("scale", self.scale, "[0, inf)")

    def send(self, update: Float[Tensor, "p"], stats: UpdateStats, rng: np.random.Generator) -> Float[Tensor, "p"]:
        return -self.scale * update
