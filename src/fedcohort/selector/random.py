"""Random selection, the baseline of every paper: uniform, or in proportion to data (McMahan et al. 2017).

McMahan, Moore, Ramage, Hampson, Aguera y Arcas, "Communication-Efficient Learning of Deep Networks from Decentralized
Data", AISTATS 2017, arXiv 1602.05629. The proportional draw is pi_rand of UCB-CS (Cho et al. 2020, Sec. II-B).

    uniform:  every set of m available clients has the same probability
    proportional:  clients are drawn successively, k with probability n_k / sum of n_j over those not drawn yet

Departures from the paper:
- Draws are without replacement, so that the m clients are distinct and cost as much as those of other selectors. The
  papers do not say.
- A proportional draw represents the data, so that models should be averaged with equal weights: set
  agg.weighting=uniform. agg.weighting=used counts sizes twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Stateless, StatelessSelector, draw
from fedcohort.types import ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class Random(StatelessSelector):
    """A selector of random clients, uniform or in proportion to the clients' data.

    Attributes:
        weights: "uniform", or "proportional" to the number of training samples.
    """

    weights: str

    def __post_init__(self) -> None:
        ranges.choice("weights", self.weights, "uniform", "proportional")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"n_train"} if self.weights == "proportional" else ())

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        draw_weights = ctx.signals["n_train"] if self.weights == "proportional" else np.ones(ctx.n_clients)
        return Selection(draw(draw_weights.astype(float, copy=False), ctx.available, ctx.cohort, ctx.rng)), state
