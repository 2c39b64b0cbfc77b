"""q-FFL by q-FedAvg: Li, Sanjabi, Beirami, Smith, "Fair Resource Allocation in Federated Learning" (2020), Alg. 2.

    objective   sum_i p_i F_i^(q+1) / (q+1)
    g_i = -L D_i,   h_i = q F_i^(q-1) |g_i|^2 + L F_i^q,   F_i = F_i(w_t) + 1e-10
    direction = sum_i p_i F_i^q L D_i / sum_i p_i h_i

L = 1 / the local learning rate; g_i is then the sum of the gradients that client i stepped along. q = 0 is FedAvg. The
direction is shorter than a mean: h_i > L F_i^q. For 0 < q < 1 a client whose loss is nearly 0 makes it very short.
F_i is the plain cross-entropy whatever clients minimise, so that it is never negative: with objective=propfair D_i are
those of PropFair, F_i is not, and both lean towards clients with high losses.

With `loss_cap`, and fewer than half of those who arrive lying, client i's weight is at most
(p_i / p_j) (loss_cap median(F) / F_j)^q times that of any other client j, whatever i claims.

Departures from the paper: sampling carries p_i there, so that weights over those who arrived are equal, and so they are
here by default; `selector=random` draws uniformly and drops p_i from the objective, `weighting=samples` puts it back.
L is no Lipschitz constant where local steps are Adam's: it must then be given. A client that did part of its work
counts with the D_i that it sent. All F are divided by the largest, and the result is the same, so that large q don't
overflow. Clients without a finite loss are left out; where nobody has one, the round is a plain mean. Only the loss
before training is offered: h_i bounds how F_i bends at w_t.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.component import CLEAN_LABELS, NO_BATCH_NORM, RELATIVE_ADVICE, Requirement
from fedcohort.types import Ids, Population, Values

SGD_CLIENT = Requirement(
    lambda run: run.parts.client.linear,
    "{option} takes 1 / client.lr for a Lipschitz constant, which only holds for SGD: choose client=sgd, or set "
    "agg.lipschitz",
)


ZERO = 1e-10  # nats; added to every loss


@dataclass(frozen=True)
class QFfl(Aggregator[None]):
    """The aggregator, with its options.

    Attributes:
        q: how fair.
        lipschitz: L, None for one over the local learning rate.
        weighting: p_i, as FedAvg's.
        loss_cap: times the median, see `agg/losses.py`.
    """

    q: float
    lipschitz: float | None
    weighting: str
    loss_cap: float | None

    stacked: ClassVar[bool] = True
    own_length: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("q", self.q, "[0, inf)")
        ranges.number("lipschitz", self.lipschitz, "(0, inf)", optional=True)
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", optional=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"loss"} if self.lipschitz is not None else {"loss", "lr"})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({NO_BATCH_NORM, *((CLEAN_LABELS,) if self.q > 0 else ())})

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({RELATIVE_ADVICE, *((SGD_CLIENT,) if self.lipschitz is None else ())})

    def init(self, population: Population, n_params: int) -> None:
        """No state."""

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        rows, F = losses.read_losses(arrived, "loss", self.loss_cap)
        if not len(rows):
            return Direction(arrived.mean), None
        p, L = losses.shares(arrived, rows), self._lipschitz(arrived)
        g = L * torch.linalg.vector_norm(arrived.matrix, dim=1).cpu().numpy()[rows]
        largest = F.max() + ZERO
        F = (F + ZERO) / largest
        h = self.q * F ** (self.q - 1) / largest * g**2 + L * F**self.q
        w = p * F**self.q * L / (p @ h)
        return arrived.combine(losses.over_all(arrived, rows, w)), None

    def _lipschitz(self, arrived: Arrived) -> float:
        return self.lipschitz if self.lipschitz is not None else 1 / float(arrived.outcome.signals["lr"][0])
