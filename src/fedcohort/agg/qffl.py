"""q-FFL by q-FedAvg: clients with high losses get more weight (Li et al. 2020).

Li, Sanjabi, Beirami, Smith, "Fair Resource Allocation in Federated Learning", ICLR 2020, arXiv 1905.10497, Alg. 2.

    objective:  sum_i p_i F_i^(q+1) / (q+1)
    g_i:  -L D_i
    h_i:  q F_i^(q-1) |g_i|^2 + L F_i^q, F_i = F_i(w_t) + 1e-10
    direction:  sum_i p_i F_i^q L D_i / sum_i p_i h_i

L is 1 / the local learning rate, so that g_i is the sum of the gradients of client i's steps. Of updates from several
rounds it is the smallest of their learning rates. q = 0 is FedAvg. The direction is shorter than a mean, as h_i >
L F_i^q; for 0 < q < 1 a client with a loss near 0 makes it very short. F_i is the cross-entropy whatever clients
minimise, so that it is not negative. With objective=propfair the D_i are those of PropFair, and both favour clients
with high losses.

With loss_cap, and fewer than half of the arrivals lying, the reports of a client i have a limited effect:

    weight of i:  at most (p_i / p_j) (loss_cap median(F) / F_j)^q times the weight of any other client j

Departures from the paper:
- In the paper clients are drawn in proportion to p_i and weighted equally, which is the default. selector=random draws
  uniformly and so drops p_i from the objective; weighting=samples restores it.
- L is no Lipschitz constant where local steps are Adam's: `lipschitz` is then required.
- A client that did part of its work counts with the D_i that it sent.
- All F are divided by the largest, which leaves the result unchanged and prevents overflow at large q.
- Clients without a finite loss are left out; where none has one, the round is a plain mean.
- Only the loss before training is offered, as h_i bounds the curvature of F_i at w_t.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted
from fedcohort.component import CLEAN_LABELS, NO_BATCH_NORM, RELATIVE_ADVICE, Requirement

SGD_CLIENT_REQUIREMENT = Requirement(
    lambda facts: facts.components.client.linear,
    "{option} uses 1 / client.lr as Lipschitz constant, which holds only for SGD: choose client=sgd, or set "
    "agg.lipschitz",
)


LOSS_OFFSET = 1e-10  # nats; added to every loss


@dataclass(frozen=True)
class QFfl(StatelessSampleWeighted):
    """q-FFL by q-FedAvg, an aggregator that gives more weight to clients with high losses.

    Attributes:
        q: exponent of the fairness objective.
        lipschitz: Lipschitz constant L of the losses' gradients; None for 1 / the local learning rate.
        loss_cap: largest loss that counts, in multiples of the arrivals' median loss; None for no limit.
    """

    q: float
    lipschitz: float | None
    loss_cap: float | None

    stacked: ClassVar[bool] = True
    sets_step_length: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("q", self.q, "[0, inf)")
        ranges.number("lipschitz", self.lipschitz, "(0, inf)", allow_null=True)
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", allow_null=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"loss"} if self.lipschitz is not None else {"loss", "lr"})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({NO_BATCH_NORM, *((CLEAN_LABELS,) if self.q > 0 else ())})

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({RELATIVE_ADVICE, *((SGD_CLIENT_REQUIREMENT,) if self.lipschitz is None else ())})

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        positions_with_loss, F = losses.read_valid_losses(arrived, "loss", self.loss_cap)
        if not len(positions_with_loss):
            return Direction(arrived.mean), None
        p = losses.normalised_weights(arrived, positions_with_loss)
        L = self.lipschitz if self.lipschitz is not None else 1 / float(arrived.outcome.signals["lr"].min())
        g = L * torch.linalg.vector_norm(arrived.matrix, dim=1).cpu().numpy()[positions_with_loss]
        largest_loss = F.max() + LOSS_OFFSET
        F = (F + LOSS_OFFSET) / largest_loss
        h = self.q * F ** (self.q - 1) / largest_loss * g**2 + L * F**self.q
        w = p * F**self.q * L / (p @ h)
        return arrived.combine(losses.spread_weights_to_clients(arrived, positions_with_loss, w)), None
