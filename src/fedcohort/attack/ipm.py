"""IPM: attackers send the opposite of the honest mean, to turn the server's step (Xie et al. 2020).

Xie, Koyejo, Gupta, "Fall of Empires: Breaking Byzantine-tolerant SGD by Inner Product Manipulation", UAI 2019, arXiv
1903.03936.

    sent:  -epsilon * mean of the known updates, by all attackers

With f attackers among n equal weights, the mean of all updates turns round where epsilon > (n - f) / f. A small epsilon
passes rules that leave out distant updates. The abstract and two public implementations were read, the full text was
not. Attackers that know no update send the updates that they trained.

Departures from the paper:
- The paper's attack is on the gradients of a step. Here it is on the updates of local training.
- knows=own takes the mean of the updates that the attackers trained.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.attack.base import Colluding, UpdateStats


@dataclass(frozen=True)
class Ipm(Colluding):
    """Inner product manipulation, an attack in which attackers send -epsilon times the mean of the known updates.

    Attributes:
        epsilon: factor of the opposite of this mean; 0 sends zeros.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("epsilon", self.epsilon, "[0, inf)")

    def send(self, update: Float[Tensor, "p"], stats: UpdateStats, rng: np.random.Generator) -> Float[Tensor, "p"]:
        return update if stats.mean is None else -self.epsilon * stats.mean
