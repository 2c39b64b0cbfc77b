"""FedBalancer: clients train on samples whose loss is above a threshold that rises with time (Shin et al. 2022).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601, Algorithm 1. Its deadline is deadline=fedbalancer; each works without the other.

    S:  samples of which E epochs in whole mini-batches fit before the deadline;  S >= n_i: train on all samples
    OT:  {x: loss_i(x) >= lt}
    UT:  all other samples
    L:  max(S, |OT|)
    training set:  L p random samples of OT and L (1 - p) of UT

The threshold lt and the client's list loss_i are described in `samples/threshold.py`.

Departures from the paper:
- L p is rounded up; where OT or UT has too few samples the other one fills up.
- The paper does not say how S is computed. Here it is from the deadline less the expected travel time, in whole
  mini-batches.
- as_released=true follows the authors' code: S includes the travel time and parts of mini-batches. In the code a
  client's first round is on OT in any case, which is not implemented.
- The departures of `samples/threshold.py`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.component import EPOCH_TRAINING, Requirement
from fedcohort.samples.base import SampleRequest
from fedcohort.samples.threshold import LossThreshold, State, draw_around_threshold
from fedcohort.types import Ids


@dataclass(frozen=True)
class FedBalancer(LossThreshold):
    """FedBalancer, a sample selection: clients train mainly on samples above a loss threshold.

    Its options are those of `LossThreshold`.
    """

    requirements: ClassVar[frozenset[Requirement]] = LossThreshold.requirements | {EPOCH_TRAINING}

    def choose(self, state: State, request: SampleRequest) -> Ids:
        """Return the positions, [m], of the samples to train on (Alg. 1): mainly those above the loss threshold.

        Args:
            state: the server's state, with the loss threshold.
            request: the losses of the client's samples, the deadline, and the expected times of its job.
        """
        n_samples_in_time = self._count_samples_in_time(request)
        if n_samples_in_time >= request.n:
            return np.arange(request.n)
        is_above_threshold = request.losses >= state.threshold
        n_drawn = max(n_samples_in_time, int(is_above_threshold.sum()), 1)
        return draw_around_threshold(is_above_threshold, n_drawn, self.p, request.rng("samples"))

    def _count_samples_in_time(self, request: SampleRequest) -> int:
        """Return the number of samples on which the client can do all requested epochs before the deadline.

        `request` has the deadline and the expected times of the client's job.
        """
        available_training_s = request.deadline_s if self.as_released else request.deadline_s - request.travel_s
        mini_batch_s = request.unit_s * request.batch / request.n
        n_batches = max(0.0, available_training_s / (request.units * mini_batch_s)) if mini_batch_s > 0 else math.inf
        if n_batches * request.batch >= request.n + request.batch:
            return request.n
        # 25 / (5 x .1) is 49.99999999999999 of a batch in floating point
        return int((n_batches if self.as_released else math.floor(n_batches + 1e-9)) * request.batch + 1e-9)
