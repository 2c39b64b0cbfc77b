"""Scaling: attackers multiply their updates, so that they outweigh the others (Bagdasaryan et al. 2020).

Bagdasaryan, Veit, Hua, Estrin, Shmatikov, "How To Backdoor Federated Learning", AISTATS 2020, arXiv 1807.00459.

    sent:  factor * D_i

With factor = n / eta for n equal weights and a server's step size eta, one attacker replaces the global model by its
local one. The paper was not read.

Departures from the paper:
- Attackers train on their own data; the paper's backdoor is not part of this attack.
- The factor is an option, because the attackers do not know n.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.attack.base import AttackByShare, UpdateStats


@dataclass(frozen=True)
class Scaling(AttackByShare):
    """Scaling, an attack in which attackers multiply the updates that they trained by a factor.

    Attributes:
        factor: this factor; 1 has no effect.
    """

    factor: float

    falsifies_updates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("factor", self.factor, "(-inf, inf)")

    def send(self, update: Float[Tensor, "p"], stats: UpdateStats, rng: np.random.Generator) -> Float[Tensor, "p"]:
        return self.factor * update
