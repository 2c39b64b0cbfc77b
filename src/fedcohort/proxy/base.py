"""The contract of a proxy set, and the draw that all of them share.

What is not the clients' own kind of data teaches less: tables say which proxy a number was made with.
"""

from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from fedcohort.errors import OptionError
from fedcohort.federation import Federation
from fedcohort.rng import generator


class Proxy(Protocol):
    """holds: whether there are any inputs."""

    holds: ClassVar[bool]

    def inputs(self, federation: Federation, seed: int) -> Tensor | None:
        """float32 [n, *shape of a sample], None without any; seed: `data_seed`.

        A function of its arguments alone. Raises `OptionError` or `DataError`.
        """
        ...


def drawn(x: Tensor, n: int | None, what: str, seed: int) -> Tensor:
    """n of the rows of x in their order, all where n is None. Raises `OptionError` where there are not as many."""
    if n is None:
        return x
    if n > len(x):
        raise OptionError(f"proxy.n must be at most {len(x)}, the number of {what}, or null for all of them, got {n}")
    rows = np.sort(generator(seed, "proxy").choice(len(x), n, replace=False))
    return x[torch.from_numpy(rows)]
