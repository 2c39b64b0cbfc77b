"""ALIE: attackers shift the honest mean by a multiple of the honest deviation (Baruch et al. 2019).

Baruch, Baruch, Goldberg, "A Little Is Enough: Circumventing Defenses For Distributed Learning", NeurIPS 2019, arXiv
1902.06156.

    sent:  mu - z s in each parameter, by all attackers; mu, s: mean and standard deviation of the known updates
    z:  Phi^-1((n - f - q) / (n - f)),  q = floor(n / 2) + 1 - f,  of n updates f from attackers

q is the number of honest updates that, with the attackers, are a majority. z is the largest shift at which q honest
updates are expected beyond the false ones, if updates are normal. The full text was not read. Public implementations
disagree on z, on its sign and on whether s is of the honest updates or of the attackers'.

Departures from the paper:
- form=all takes (n - q) / n, the second reading of z. A negative z becomes 0.
- Where q <= 0, the attackers are a majority, and z is Phi^-1(0.99).
- Attackers that know no update send the updates that they trained; s of a single known update is 0.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.attack.base import Colluding, UpdateStats

MAJORITY_QUANTILE = 0.99


@dataclass(frozen=True)
class Alie(Colluding):
    """A Little Is Enough, an attack in which attackers send mean - z x standard deviation of the known updates.

    Attributes:
        z: number of standard deviations of the shift; None for the quantile of `form`. A negative number shifts the
            other way.
        form: with z=None, z is the normal quantile of (n - f - q) / (n - f) ("honest"), or of (n - q) / n ("all"). Of
            n updates f are false, and q is n // 2 + 1 - f.
    """

    z: float | None
    form: str

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("z", self.z, "(-inf, inf)", allow_null=True)
        ranges.choice("form", self.form, "honest", "all")

    def send(self, update: Float[Tensor, "p"], stats: UpdateStats, rng: np.random.Generator) -> Float[Tensor, "p"]:
        if stats.mean is None or stats.std is None:
            return update
        z = alie_attack_factor(stats.n_honest, stats.n_attackers, self.form) if self.z is None else self.z
        return stats.mean - z * stats.std


def alie_attack_factor(n_honest: int, n_attackers: int, shift_form: str) -> float:
    """Return the number of standard deviations by which attackers shift their updates.

    Args:
        n_honest: number of honest updates.
        n_attackers: number of the attackers' updates.
        shift_form: normal quantile that is the number, "honest" or "all", as in `Alie`.
    """
    n = n_honest + n_attackers
    q = n // 2 + 1 - n_attackers
    if q <= 0:
        return NormalDist().inv_cdf(MAJORITY_QUANTILE)
    shift_quantile = (n_honest - q) / n_honest if shift_form == "honest" else (n - q) / n
    return NormalDist().inv_cdf(shift_quantile) if shift_quantile > 0.5 else 0.0
