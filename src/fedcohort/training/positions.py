"""Objectives of samples with a target at each position: the mean over the labelled positions.

l_j = mean over the labelled positions p of sample j of l(logits_jp, y_jp)
"""

from dataclasses import dataclass

from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.data.targets import PerPositionTargets, Targets
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class PerPositionObjective(Objective):
    """An objective of samples that averages an objective of single targets; engines differentiate it by autograd.

    Attributes:
        target_objective: objective of a single target.
        targets: the structure of labels, with a target at each position.
    """

    target_objective: Objective
    targets: PerPositionTargets

    @property
    def uses_reference(self) -> bool:
        return self.target_objective.uses_reference

    @property
    def minimises_mean(self) -> bool:
        return self.target_objective.minimises_mean

    @property
    def max_bounded_loss(self) -> float:
        return self.target_objective.max_bounded_loss

    def per_sample(
        self,
        logits: Float[Tensor, "b t c"],
        labels: Int64[Tensor, "b t"],
        reference_probs: Float[Tensor, "b t c"] | None,
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        flat_reference_probs = None if reference_probs is None else reference_probs.flatten(0, 1)
        position_objectives, cross_entropies = self.target_objective.per_sample(
            logits.flatten(0, 1), self.targets.flatten(labels), flat_reference_probs
        )
        return self.targets.average(position_objectives, labels), self.targets.average(cross_entropies, labels)

    def transform_mean(self, mean_loss: Float[Tensor, "*k"]) -> Float[Tensor, "*k"]:
        return self.target_objective.transform_mean(mean_loss)


def adapt_objective(targets: Targets, objective: Objective) -> Objective:
    """Return `objective`, of single targets, as one of samples whose labels are `targets`."""
    return PerPositionObjective(objective, targets) if isinstance(targets, PerPositionTargets) else objective
