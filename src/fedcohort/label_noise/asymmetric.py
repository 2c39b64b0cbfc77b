"""Class-conditional label noise: a class is always mistaken for the same other one (Patrini et al. 2017).

    with probability rate_i the label c becomes its class's partner, c + 1 mod C unless `partners` says otherwise (the
    "pair flip" of Han et al. 2018)

rate_i is drawn by another word, `base`: beta, unless `label_noise@label_noise.base=bimodal` is said. Such noise is
harder to tell from the truth than the symmetric one: wrong labels agree with each other, and above a rate of 1/2 a
client teaches the partner's class. Which labels are wrong is the same as under `base` alone; what they become is not.

A class that is its own partner has no noise, so that a client has fewer wrong labels than rate_i says; yardsticks read
rate_i.

Departures from the papers: their data have one rate, here each client has its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import CLASSES, Requirement
from fedcohort.errors import OptionError
from fedcohort.label_noise.base import LabelNoise
from fedcohort.rng import Draws
from fedcohort.types import Ids


@dataclass(frozen=True)
class Asymmetric(LabelNoise):
    """Wrong labels are those of the class's partner.

    Attributes:
        base: the label noise that draws clients' rates.
        partners: the class that each class is mistaken for, [C]; empty for the next one.
    """

    base: LabelNoise
    partners: Sequence[int]

    requirements: ClassVar[frozenset[Requirement]] = frozenset({CLASSES})

    def __post_init__(self) -> None:
        ranges.integers("partners", self.partners, "[0, inf)")
        if isinstance(self.base, Asymmetric) or not hasattr(self.base, "rates"):
            allowed = "a label noise other than asymmetric, as in label_noise@label_noise.base=bimodal"
            raise ranges.refuse("base", allowed, self.base)

    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients]."""
        return self.base.rates(draws)

    def flip(self, labels: Ids, rate: float, n_classes: int, rng: np.random.Generator) -> Ids:
        """Return the labels that a client sees. Raises `OptionError` where `partners` fits other classes."""
        partner = np.array(self.partners or np.roll(np.arange(n_classes), -1))
        if len(partner) != n_classes or partner.max() >= n_classes:
            allowed = f"a list with one of the {n_classes} classes for each of them, or []"
            raise OptionError(f"label_noise.{ranges.refuse('partners', allowed, list(self.partners))}")
        return np.where(rng.random(len(labels)) < rate, partner[labels], labels)
