"""Subsampling: a random part of a finished update is sent, scaled up (Konecny et al. 2016, "sketched updates").

Konecny, McMahan, Yu, Richtarik, Suresh, Bacon, "Federated Learning: Strategies for Improving Communication Efficiency",
2016, arXiv 1610.05492, Sec. 3.

    M:  the share rho of each tensor's numbers, m of n
    client:  trains as usual, then sends a seed and D on M
    server:  (n / m) D on M, 0 elsewhere, which has the mean D

Unlike codec=mask it is unbiased and does not change local training. Its variance is (1 / rho - 1) D_j^2 per coordinate.

Departures from the paper: none. (Fractional numbers are rounded, to at least one per tensor.)
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.codec.sparse import Sparse


@dataclass(frozen=True)
class Subsample(Sparse):
    """Subsampling, an upload codec: a random share `rho` of a finished update is sent, scaled up without bias."""

    unbiased: ClassVar[bool] = True
