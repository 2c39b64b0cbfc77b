"""Class-conditional label noise: each class is mistaken for one other class (Patrini et al. 2017).

Patrini, Rozza, Menon, Nock, Qu, "Making Deep Neural Networks Robust to Label Noise: A Loss Correction Approach", CVPR
2017, arXiv 1609.03683. The pair flip is from Han et al., "Co-teaching", NeurIPS 2018, arXiv 1804.06872.

    with probability rate_i the label c becomes partner(c), by default c + 1 mod C ("pair flip", Han et al. 2018)

The label noise `base` draws rate_i: beta by default, bimodal with `label_noise@label_noise.base=bimodal`. This noise is
harder to detect than symmetric noise, as wrong labels are consistent: above a rate of 1/2 a client trains the partner's
class. The same labels are wrong as under `base`; only their new classes differ.

A class that is its own partner has no noise. The client then has fewer wrong labels than rate_i, which oracle selectors
read.

Departures from the papers: their data have one rate; here each client has a rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.errors import OptionError
from fedcohort.label_noise.base import LabelNoise
from fedcohort.rng import Draws
from fedcohort.types import Ids


@dataclass(frozen=True)
class Asymmetric(LabelNoise):
    """A class-conditional label noise: a wrong label becomes the partner class of the true one.

    Attributes:
        base: label noise that draws the clients' rates.
        partners: class that each class is mistaken for, [C]; an empty list stands for the next class.
    """

    base: LabelNoise
    partners: Sequence[int]

    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    def __post_init__(self) -> None:
        ranges.integers("partners", self.partners, "[0, inf)")
        if isinstance(self.base, Asymmetric) or not hasattr(self.base, "rates"):
            raise ranges.range_error(
                "base", "a label noise other than asymmetric, as in label_noise@label_noise.base=bimodal", self.base
            )

    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients], from `draws`, the run's random numbers."""
        return self.base.rates(draws)

    def flip(self, labels: Ids, noise_rate: float, n_classes: int, rng: np.random.Generator) -> Ids:
        """Return the labels that a client sees, int64 [n].

        Args:
            labels: true labels of the client, int64 [n].
            noise_rate: probability that a label is wrong.
            n_classes: number of classes.
            rng: random generator of this client.

        Raises:
            OptionError: `partners` does not fit the classes.
        """
        partner_of_class = np.array(self.partners or np.roll(np.arange(n_classes), -1))
        if len(partner_of_class) != n_classes or partner_of_class.max() >= n_classes:
            allowed_text = f"a list with one of the {n_classes} classes for each of them, or []"
            raise OptionError(f"label_noise.{ranges.range_error('partners', allowed_text, list(self.partners))}")
        return np.where(rng.random(len(labels)) < noise_rate, partner_of_class[labels], labels)
