"""Random mask: clients train only the coordinates that they send (Konecny et al. 2016, "structured updates").

Konecny, McMahan, Yu, Richtarik, Suresh, Bacon, "Federated Learning: Strategies for Improving Communication Efficiency",
2016, arXiv 1610.05492, Sec. 2.

    M:  the share rho of each tensor's coordinates, drawn by each client in each round
    each step:  g~ = g on M, 0 elsewhere
    client:  sends the seed of M and D on M
    server:  D is 0 elsewhere, without scaling

Every local optimizer leaves a coordinate unchanged whose gradients were all 0; weight decay does not.

Departures from the paper: none. (Fractional numbers of coordinates are rounded, to at least one per tensor.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool
from torch import Tensor

from fedcohort.codec.sparse import Sparse
from fedcohort.codec.wire import draw_seed, draw_sent_positions, to_memory_order
from fedcohort.component import UNDECAYED_CLIENT, Requirement
from fedcohort.hook import ClientContext, ClientHook, Correction, Vector


@dataclass(frozen=True)
class _MaskCorrection(Correction):
    is_frozen_param: Bool[Tensor, "p"]

    def correct(self, g: Vector, y: Vector) -> None:
        g.masked_fill_(self.is_frozen_param, 0.0)  # a product would keep what is not finite


@dataclass(frozen=True)
class MaskHook(ClientHook):
    """The client hook of the random mask, which keeps the parameters unchanged that are not sent.

    Attributes:
        rho: share of each tensor's numbers that is trained and sent.
    """

    rho: float

    def begin(
        self, w: Vector, broadcast: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Correction:
        is_frozen_param = np.ones(ctx.layout.n_params, dtype=np.bool_)
        for sent_positions in draw_sent_positions(self.rho, ctx.layout, draw_seed(ctx.rng("codec"))):
            is_frozen_param[sent_positions] = False
        return _MaskCorrection(to_memory_order(is_frozen_param, ctx.layout, w))


@dataclass(frozen=True)
class Mask(Sparse):
    """The random mask, an upload codec: clients train and send only a random share `rho` of the parameters."""

    unbiased: ClassVar[bool] = False

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return (MaskHook(self.rho),)

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({UNDECAYED_CLIENT})
