"""Inputs that clients hold out of their training: some of all V_k, without labels.

As if clients had given them away. They are of the clients' own distribution, the best case of a proxy set, and count as
what they are: data that left a client.
"""

from dataclasses import dataclass

from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.errors import DataError
from fedcohort.proxy.base import Proxy, draw_rows


@dataclass(frozen=True)
class ClientHeldout(Proxy):
    """The proxy, with its option.

    Attributes:
        n: how many of them, None for all.
    """

    n: int | None

    def __post_init__(self) -> None:
        ranges.integer("n", self.n, "[1, inf)", optional=True)

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        if not len(federation.val.x):
            raise DataError("proxy=client_heldout: no client holds anything out (split.client_val)")
        return draw_rows(federation.val.x, self.n, "samples that clients hold out", seed)
