"""FedBalancer's controller of the loss threshold and the deadline (Shin et al. 2022, Alg. 3).

    utility:  U_R = (sum of losses of the samples trained on) / (their number x deadline), of the arrivals in round R
    every w rounds, with past = U_(R-2w+1) + ... + U_(R-w) and recent = U_(R-w+1) + ... + U_R:
        past > recent:   ltr <- min(ltr + lss, 1),   ddlr <- max(ddlr - dss, 0)
        otherwise:       ltr <- max(ltr - lss, 0),   ddlr <- min(ddlr + dss, 1)

ltr is the position of the loss threshold between the lowest and the high losses, ddlr that of the deadline between its
bounds; they start at 0 and 1. R counts the rounds with arrivals, from 1; the first change is in round 2 w. Values are
rounded to 12 decimals, so that twenty steps of .05 are 1.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from fedcohort import ranges
from fedcohort.types import Values

POSITION_DECIMALS = 12


@dataclass(frozen=True)
class PaceState:
    """State of FedBalancer's controller of loss threshold and deadline.

    Attributes:
        n_rounds: number of rounds with arrivals.
        utilities: utility of at most the last 2 w rounds in nats per second, the newest last, [rounds].
        ltr, ddlr: relative positions of the loss threshold and of the deadline between their bounds, in [0, 1].
    """

    n_rounds: int
    utilities: Values
    ltr: float
    ddlr: float


@dataclass(frozen=True)
class PaceControl:
    """FedBalancer's controller, which moves loss threshold and deadline by fixed steps as training advances.

    Attributes:
        w: rounds between two changes.
        lss: step of the loss threshold's position; 0 for a component that only reads the deadline's.
        dss: step of the deadline's position; 0 for a component that only reads the loss threshold's.
    """

    w: int
    lss: float = 0.0
    dss: float = 0.0

    def __post_init__(self) -> None:
        ranges.integer("w", self.w, "[1, inf)")
        ranges.number("lss", self.lss, "[0, 1]")
        ranges.number("dss", self.dss, "[0, 1]")

    def first_state(self) -> PaceState:
        """Return the controller's state before the first round."""
        return PaceState(0, np.empty(0), 0.0, 1.0)

    def observe(self, state: PaceState, utility: float) -> PaceState:
        """Return the state after a round with `utility` in nats per second; it is unchanged if that is not finite."""
        if not np.isfinite(utility):
            return state
        n_rounds, utilities = state.n_rounds + 1, np.append(state.utilities, utility)[-2 * self.w :]
        ltr, ddlr = state.ltr, state.ddlr
        if n_rounds % self.w == 0 and n_rounds >= 2 * self.w:
            step_sign = 1 if utilities[: self.w].sum() > utilities[self.w :].sum() else -1
            ltr = round(min(max(ltr + step_sign * self.lss, 0.0), 1.0), POSITION_DECIMALS)
            ddlr = round(min(max(ddlr - step_sign * self.dss, 0.0), 1.0), POSITION_DECIMALS)
        return PaceState(n_rounds, utilities, ltr, ddlr)


@runtime_checkable
class PaceControlledComponent(Protocol):
    """A component with a `PaceControl` (property `control`), the controller of loss threshold and deadline."""

    @property
    def control(self) -> PaceControl: ...


def pace_utility(loss_sum: Values, n_used: Values, deadline_s: float) -> float:
    """Return the utility of a round in nats per second: mean loss of the trained samples over the deadline.

    Args:
        loss_sum: sum of the sample losses of each client that arrived in nats, [m].
        n_used: number of these samples of each client, [m].
        deadline_s: announced deadline in seconds.
    """
    samples_times_seconds = float(n_used.sum()) * deadline_s
    return float(loss_sum.sum()) / samples_times_seconds if samples_times_seconds > 0 else float("nan")
