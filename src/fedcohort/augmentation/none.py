"""No augmentation: clients train on unchanged samples.

Departures from the paper: none.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from fedcohort.augmentation.base import Augmentation

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NoAugmentation(Augmentation):
    identity: ClassVar[bool] = True

    def change(self, x: "Float[Tensor, 'n *shape']", rng: np.random.Generator) -> "Float[Tensor, 'n *shape']":
        """Return the training samples `x` unchanged; `rng` is not used."""
        return x
