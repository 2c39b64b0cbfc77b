"""Late updates that arrive in a later round: how old they may be, and how much they weigh.

    s(0) = 1
    constant:    s(tau) = 1
    polynomial:  s(tau) = (1 + tau)^-a
    hinge:       s(tau) = 1 if tau <= b, else 1 / (c (tau - b) + 1)

tau is the staleness: the number of server steps between the model that a client received and the step in which its
update counts. Xie, Koyejo, Gupta, "Asynchronous Federated Optimization", arXiv 1903.03934, Sec. 5, propose the three
functions; a = 0.5, b = 4 and c = 10 are its values.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.deadline.base import Deadline, S
from fedcohort.types import Ids, Values

MIN_DISCOUNT = 1e-300  # of a weight, by which aggregators divide again
WEIGHTS_REQUIREMENT = Requirement(
    lambda facts: not (facts.components.deadline.carries and facts.components.selector.weighs),
    "{option} lets updates arrive in later rounds, and the weights that {selector} advises are for the cohort of one "
    "round: choose another selector, or a form of it that advises no weights",
)


@dataclass(frozen=True, kw_only=True)
class LateUpdates(Deadline[S]):
    """The options of a deadline after which late clients may go on working.

    Attributes:
        max_staleness: server steps after which an update is dropped; None for no limit.
        staleness: factor s of an update by its staleness tau in server steps: "constant", 1; "polynomial",
            (1 + tau)^-a; or "hinge", 1 / (c max(tau - b, 0) + 1).
        staleness_exponent: the exponent a of "polynomial".
        hinge_slope: the slope c of "hinge", per server step.
        hinge_start: the largest staleness b without a discount by "hinge", in server steps.
    """

    max_staleness: int | None
    staleness: str
    staleness_exponent: float
    hinge_slope: float
    hinge_start: int

    def __post_init__(self) -> None:
        ranges.integer("max_staleness", self.max_staleness, "[0, inf)", allow_null=True)
        ranges.choice("staleness", self.staleness, "constant", "polynomial", "hinge")
        ranges.number("staleness_exponent", self.staleness_exponent, "[0, inf)")
        ranges.number("hinge_slope", self.hinge_slope, "[0, inf)")
        ranges.integer("hinge_start", self.hinge_start, "[0, inf)")

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({WEIGHTS_REQUIREMENT})

    def staleness_limit(self) -> int | None:
        return self.max_staleness

    def discount(self, staleness: Ids) -> Values:
        """Return the factor s(tau) of each update's weight, [m]; `staleness` is tau in server steps, [m]."""
        discount_factors: Values = np.ones(len(staleness))
        if self.staleness == "polynomial":
            discount_factors = (1.0 + staleness) ** -self.staleness_exponent
        elif self.staleness == "hinge":
            discount_factors = 1.0 / (self.hinge_slope * np.maximum(staleness - self.hinge_start, 0) + 1.0)
        return np.asarray(np.maximum(discount_factors, MIN_DISCOUNT), np.float64)
