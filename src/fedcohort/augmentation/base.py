"""The contract of augmentation: how the samples that clients train on are changed, anew in every pass over them."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float

from fedcohort.component import Component

if TYPE_CHECKING:
    from torch import Tensor


class Augmentation(Component, Protocol):
    """What local training makes of its samples; probes, evaluations and reference predictions see them as they are.

    Attributes:
        identity: whether they are left as they are: then nobody is asked.
    """

    @property
    def identity(self) -> bool:
        return False

    @abstractmethod
    def change(self, x: "Float[Tensor, 'n *shape']", rng: np.random.Generator) -> "Float[Tensor, 'n *shape']":
        """Return the samples of one pass, changed, of the same shape, type and memory layout.

        Args:
            x: inputs as the network sees them, in the order of the pass; they are left alone.
            rng: keyed by (seed, round, client); one pass after the other draws from it.
        """
