"""The contract of augmentation: random changes of training samples, drawn again in every pass over them."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float

from fedcohort.component import Component

if TYPE_CHECKING:
    from torch import Tensor


class Augmentation(Component, Protocol):
    """A random change of the samples of local training; all other uses, such as queries and evaluations, see no change.

    Attributes:
        identity: whether samples stay unchanged; `change` is not called then.
    """

    @property
    def identity(self) -> bool:
        return False

    @abstractmethod
    def change(self, x: "Float[Tensor, 'n *shape']", rng: np.random.Generator) -> "Float[Tensor, 'n *shape']":
        """Return the changed samples of one pass, [n, ...], with the same shape, type and memory layout.

        Args:
            x: inputs as the network sees them, in the order of the pass; not changed in place.
            rng: random generator of the seed, the round and the client; successive passes draw from it.
        """
