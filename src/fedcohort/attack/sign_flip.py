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
from fedcohort.attack.base import AttackByShare, UpdateStats


@dataclass(frozen=True)
class SignFlip(AttackByShare):
    """Sign flip, an attack in which attackers send -scale times the updates that they trained.

    Attributes:
        scale: length of the sent update, in lengths of the trained one.
    """

    scale: float

    falsifies_updates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("scale", self.scale, "[0, inf)")

    def send(self, update: Float[Tensor, "p"], stats: UpdateStats, rng: np.random.Generator) -> Float[Tensor, "p"]:
        return -self.scale * update
