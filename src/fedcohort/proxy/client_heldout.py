"""The validation inputs of all clients, without labels.

They have the distribution of the clients' data, which is the best case of a proxy set. In a real federation clients
would have to send this data to the server.
"""

from dataclasses import dataclass

from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.errors import DataError
from fedcohort.proxy.base import Proxy, draw_inputs


@dataclass(frozen=True)
class ClientHeldout(Proxy):
    """A proxy set of the clients' validation inputs.

    Attributes:
        n: number of inputs to draw; None for all.
    """

    n: int | None

    def __post_init__(self) -> None:
        ranges.integer("n", self.n, "[1, inf)", allow_null=True)

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        if not len(federation.val.x):
            raise DataError(
                "proxy=client_heldout: no client has validation samples; set split.client_val above 0 or choose "
                "another proxy"
            )
        return draw_inputs(federation.val.x, self.n, "validation samples of all clients", seed)
