"""OortBalancer: the mini-batches of Oort, one per local epoch, are drawn above a loss threshold (Shin et al. 2022).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601, Sec. 3.4. With E = client.steps mini-batches of b samples:

    n_i >= b E:  draw L = b E samples, L p of them with loss_i >= lt, for one mini-batch after the other
    n_i < b E:  all samples, in as many passes as E mini-batches need

loss_i, lt, p and the clients' reports are FedBalancer's (`samples/threshold.py`).

Departures from the paper:
- client.steps is the number of mini-batches. The paper has one for each of its five local epochs.
- An update is weighted by the samples drawn, like all updates, not by the size of a mini-batch. This is the same for
  all clients with b E samples or more.
- A client reports on its whole list. The code reports on its first mini-batch, which leaves a percentile of ten losses.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.component import Requirement
from fedcohort.samples.base import SampleRequest
from fedcohort.samples.threshold import LossThreshold, State, draw_around_threshold
from fedcohort.types import Ids

STEPS_REQUIREMENT = Requirement(
    lambda facts: facts.components.client.steps is not None,
    "{option} draws the samples of a fixed number of mini-batches, but client.steps=null trains whole epochs: choose "
    "client.steps=5, one mini-batch for each of the paper's local epochs",
)
BATCH_REQUIREMENT = Requirement(
    lambda facts: facts.components.client.batch is not None,
    "{option} draws the samples of mini-batches, but client.batch=null makes one batch of all samples: choose "
    "client.batch=10",
)


@dataclass(frozen=True)
class OortBalancer(LossThreshold):
    """OortBalancer, a sample selection: Oort's mini-batches, of which a share is drawn above a loss threshold.

    Its options are those of `LossThreshold`.
    """

    requirements: ClassVar[frozenset[Requirement]] = LossThreshold.requirements | {STEPS_REQUIREMENT, BATCH_REQUIREMENT}

    def choose(self, state: State, request: SampleRequest) -> Ids:
        """Return the positions, [m], of as many samples as the steps take; all positions if the client has fewer.

        Args:
            state: the server's state, with the loss threshold.
            request: the losses of the client's samples, its number of steps and the size of its mini-batches.
        """
        n_drawn = request.units * request.batch
        if n_drawn >= request.n:
            return np.arange(request.n)
        return draw_around_threshold(request.losses >= state.threshold, n_drawn, self.p, request.rng("samples"))
