"""FedBiO on data cleaning: clients learn weights of their own samples on their V_k (after Li, Huang and Huang 2023).

    lower    g_i(x, y) = mean over T_i of 2 sigmoid(x_j) l_j(y),   upper  f_i(y) = mean cross-entropy on V_i
    u        grad f_V(y) (first_order), or  u <- u + tau (grad f_V(y) - H u),  H the Hessian of g_B (second_order)
    a step   y <- y - lr grad g_B(y),   x_j <- x_j + eta_x sigmoid'(x_j) <grad l_j(y), u> / |B|,   from the old x, y, u
    server   y <- y + sum_i p_i dy_i,   u <- u + sum_i p_i du_i;   x_i stays on client i, 0 at first

A sample whose gradient agrees with u gains weight; at x = 0 every weight is 1, and eta_x = 0 is FedAvg. V_i is cut from
the same noisy labels as T_i: where FLASH's own V_i is noisy there is no clean signal, and none is assumed.

A documented stand-in: FLASH compares with "FedBiO" and gives no formulation of it (nor of the x, y, f and g that a
bilevel method needs), so its column can't be reproduced. The paper's own application, cleaning data by weights, is.

Departures from the paper: weights are 2 sigmoid(x), not sigmoid(x), so that a run starts as FedAvg; the step of x
leaves that 2 to eta_x. first_order looks ahead one step instead of solving H u = grad f: no Hessian, nothing more to
send. u and x are bounded (u_max, x_max). No momentum (FedBiOAcc). u is averaged as y is; the paper's means are uniform.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.component import CLASSES, FREE_UPDATE, Facts, Requirement
from fedcohort.hook import ClientContext, ClientHook, HookResult, StepView, Vector, Weighing
from fedcohort.types import Ids, Population, Values

GIVEN_LABELS = Requirement(
    lambda run: not run.parts.objective.uses_reference,
    "{option} learns which labels to trust, and so does the objective from w_t's own predictions ({objective}): choose "
    "another objective",
)
MEAN_OBJECTIVE = Requirement(
    lambda run: run.parts.objective.averages,
    "{option} moves the weight of a sample along the gradient of its own loss, and with {objective} clients minimise a "
    "function of their mean loss, whose gradient has another length: choose another objective",
)


def _has_client_val(run: Facts) -> bool:
    """Return whether every client has validation samples of its own."""
    if run.federation is None:
        return bool(run.config["split"]["client_val"] > 0)
    return bool((np.diff(run.federation.val.offsets) > 0).all())


CLIENT_VAL = Requirement(
    _has_client_val,
    "{option} learns from each client's V_k, and clients have none to speak of (split.client_val=0 leaves two samples "
    "each): choose split.client_val in (0, 0.5]",
)


SLOPES, GRADIENT, HESSIAN = 3.0, 3.0, 6.0  # forward passes: each derivative's products of matrices, to a forward pass's


@dataclass(frozen=True)
class State:
    """What FedBiO keeps on the server.

    Attributes:
        u: the solution of H u = grad f that clients share, float64 [P]; [0] in first order.
    """

    u: Tensor


class _Cleaning:
    """Learns the weights of one client's samples during its local training.

    Attributes:
        x: of all samples of T_k, [n]; a sample weighs 2 sigmoid(x).
    """

    def __init__(self, options: "Cleaning", x: Tensor, u: Tensor | None) -> None:
        self.options, self.x, self.u, self.received = options, x, u, u

    def weigh(self, step: StepView) -> Float[Tensor, "b"]:
        x, options = self.x[step.positions], self.options
        sigma = torch.sigmoid(x)
        gradient = step.validation_gradient()
        if self.u is None:
            u = options.bound(gradient)
        else:
            u = self.u
            self.u = options.bound(u + options.tau * (gradient - step.curvature(u, 2 * sigma)))
        gain = torch.nan_to_num(sigma * (1 - sigma) * step.along(u) / len(x), nan=0.0)
        self.x[step.positions] = (x + options.eta_x * gain).clamp(-options.x_max, options.x_max)
        return 2 * sigma

    def correct(self, g: Vector, y: Vector) -> None:
        """Change nothing: the weights are all that this method changes."""

    def finish(self, y: Vector, steps: int, lr: float) -> HookResult:
        if self.u is None or self.received is None:
            return HookResult({}, {"x": self.x})
        return HookResult({"delta_u": self.u - self.received}, {"x": self.x})


@dataclass(frozen=True)
class Cleaning:
    """The client half (`hook.Weigher`); a client that was never seen has x = 0."""

    second_order: bool
    eta_x: float
    tau: float
    u_max: float
    x_max: float
    remembers: tuple[str, ...] = ("x",)
    per_sample: tuple[str, ...] = ("x",)

    @property
    def downloads(self) -> tuple[str, ...]:
        return ("u",) if self.second_order else ()

    @property
    def uploads(self) -> tuple[str, ...]:
        return ("delta_u",) if self.second_order else ()

    @property
    def averaged(self) -> tuple[str, ...]:
        return self.uploads

    @property
    def passes(self) -> float:
        return SLOPES + GRADIENT + (HESSIAN if self.second_order else 0.0)

    def bound(self, u: Tensor) -> Tensor:
        return u * torch.clamp(self.u_max / (u.norm() + 1e-12), max=1.0)

    def begin(
        self, w: Vector, down: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Weighing:
        x = stored["x"][: ctx.samples].to(w) if "x" in stored else torch.zeros(ctx.samples).to(w)
        return _Cleaning(self, x.clone(), down["u"].to(w) if self.second_order else None)


@dataclass(frozen=True)
class FedBiO(Aggregator[State]):
    """The aggregator, with its options.

    Attributes:
        variant: "first_order" or "second_order".
        eta_x, tau: rates.
        u_max, x_max: bounds.
        weighting: as FedAvg's.
    """

    variant: str
    eta_x: float
    tau: float
    u_max: float
    x_max: float
    weighting: str

    def __post_init__(self) -> None:
        ranges.choice("variant", self.variant, "first_order", "second_order")
        ranges.number("eta_x", self.eta_x, "[0, inf)")
        ranges.number("tau", self.tau, "(0, inf)")
        ranges.number("u_max", self.u_max, "(0, 1e30]")
        ranges.number("x_max", self.x_max, "(0, 1e30]")
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")

    @property
    def requirements(self) -> frozenset[Requirement]:
        second = {FREE_UPDATE} if self.variant == "second_order" else set()
        return frozenset({GIVEN_LABELS, MEAN_OBJECTIVE, CLIENT_VAL, CLASSES, *second})

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return (Cleaning(self.variant == "second_order", self.eta_x, self.tau, self.u_max, self.x_max),)

    def init(self, population: Population, n_params: int) -> State:
        return State(torch.zeros(n_params if self.variant == "second_order" else 0, dtype=torch.float64))

    def broadcast(self, state: State) -> Mapping[str, Tensor]:
        return {"u": state.u} if self.variant == "second_order" else {}

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        if self.variant == "first_order":
            return Direction(arrived.mean), state
        return Direction(arrived.mean), State(state.u + arrived.totals["delta_u"].to(state.u))
