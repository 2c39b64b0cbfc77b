"""Objectives of samples with a target at each position: the mean over the labelled positions.

l_j = mean over the labelled positions p of sample j of l(logits_jp, y_jp)
"""

from dataclasses import dataclass

from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.data.targets import Positions, Targets
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class PerPosition(Objective):
    """An objective of samples that averages an objective of single targets; no engine has its gradient in closed form.

    Attributes:
        base: objective of a single target.
        targets: the kind of labels.
    """

    base: Objective
    targets: Positions

    @property
    def uses_reference(self) -> bool:
        return self.base.uses_reference

    @property
    def averages(self) -> bool:
        return self.base.averages

    @property
    def reach(self) -> float:
        return self.base.reach

    def per_sample(
        self, logits: Float[Tensor, "b t c"], y: Int64[Tensor, "b t"], reference: Float[Tensor, "b t c"] | None
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        flat = None if reference is None else reference.flatten(0, 1)
        value, plain = self.base.per_sample(logits.flatten(0, 1), self.targets.flat(y), flat)
        return self.targets.mean(value, y), self.targets.mean(plain, y)

    def outer(self, mean: Float[Tensor, "*k"]) -> Float[Tensor, "*k"]:
        return self.base.outer(mean)


def adapt_objective(targets: Targets, objective: Objective) -> Objective:
    """Return the objective of samples with this kind of labels."""
    return PerPosition(objective, targets) if isinstance(targets, Positions) else objective
