"""PropFair: proportional fairness between the clients' utilities (Zhang et al. 2023).

Zhang, Malekmohammadi, Chen, Yu, "Proportional Fairness in Federated Learning", TMLR 2023, arXiv 2202.01666.

    objective:  maximise sum_k p_k log(M - F_k)
    clients minimise phi(l) of the mean loss l of their base objective over a mini-batch:
    M - l >= epsilon:  phi(l) = -log(M - l) + log M
    beyond:  phi(l) = -log epsilon - (M - l - epsilon) / epsilon + log M, the tangent of slope 1 / epsilon

phi'(l) = 1 / (M - l): clients with a high loss take longer steps. Near zero loss the slope is 1 / M, so that client.lr
needs to be several times larger. The server is FedAvg's (agg=propfair).

Departures from the paper:
- log M is added so that phi(0) = 0, which changes no gradient.
- phi of a mini-batch's mean is on average an upper bound of phi of the client's loss (Jensen), as in the paper.
- tail=ce continues with l / M, as a third-party implementation does: its slope drops from 1 / epsilon to 1 / M.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class PropFair(Objective):
    """PropFair, a local objective that gives clients with high losses longer steps.

    Attributes:
        base: objective of a sample, whose mean over a mini-batch is the loss that is transformed.
        M: constant from which the loss is subtracted, above the largest relevant loss, in nats.
        epsilon: value of M minus the loss, in nats, below which the objective is linear in the loss.
        tail: slope of the linear part: "huber", that of the tangent, 1 / epsilon, or "ce", 1 / M.
    """

    base: Objective
    M: float
    epsilon: float
    tail: str

    def __post_init__(self) -> None:
        ranges.number("M", self.M, "(0, inf)")
        ranges.number("epsilon", self.epsilon, "[1e-30, inf)")
        ranges.choice("tail", self.tail, "huber", "ce")
        if isinstance(self.base, PropFair) or not hasattr(self.base, "per_sample"):
            allowed_text = "an objective other than propfair, as in objective@objective.base=gce"
            raise ranges.range_error("base", allowed_text, self.base)
        if self.epsilon > self.M:
            raise ranges.range_error("M", f"at least epsilon = {self.epsilon:g}", self.M)
        if self.max_bounded_loss >= self.M:
            allowed_text = f"above {self.max_bounded_loss:g}, the largest value of the bounded terms of objective.base"
            raise ranges.range_error("M", allowed_text, self.M)

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({CLEAN_LABELS} if self.epsilon < self.M else ())

    def notices(self, objective_name: str) -> Sequence[str]:
        if self.epsilon < self.M:
            return ()
        notice_text = (
            f"objective.M = objective.epsilon = {self.M:g} switches PropFair off: clients minimise objective.base with "
            f"{1 / self.epsilon:g} times the learning rate. Choose objective.epsilon below objective.M"
        )
        return (notice_text,)

    @property
    def uses_reference(self) -> bool:
        return self.base.uses_reference

    @property
    def minimises_mean(self) -> bool:
        return False

    @property
    def max_bounded_loss(self) -> float:
        return self.base.max_bounded_loss

    def per_sample(
        self, logits: Float[Tensor, "b c"], labels: Int64[Tensor, "b"], reference_probs: Float[Tensor, "b c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        return self.base.per_sample(logits, labels, reference_probs)

    def transform_mean(self, mean_loss: Float[Tensor, "*k"]) -> Float[Tensor, "*k"]:
        mean_utility = self.M - mean_loss
        log_loss = math.log(self.M) - mean_utility.clamp(min=self.epsilon).log()  # clamped: no NaN reaches the gradient
        linear_loss = math.log(self.M / self.epsilon) - (mean_utility - self.epsilon) / self.epsilon
        tail_loss = linear_loss if self.tail == "huber" else mean_loss / self.M
        return torch.where(mean_utility >= self.epsilon, log_loss, tail_loss)
