"""SCAFFOLD: control variates correct client drift (Karimireddy et al. 2020).

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML
2020, arXiv 1910.06378, Alg. 1, option II.

    each step:  g~ = g - c_i + c
    client:  c_i+ = mean over the steps of the raw gradient g;  it sends D_i and c_i+ - c_i
    server:  direction = mean_i D_i,  c <- c + (1/N) sum_{i arrived} (c_i+ - c_i), N the number of all clients
    invariant:  c = (1/N) sum_i c_i

Departures from the paper:
- Option II prints c_i+ = c_i - c + (w - y_i) / (K eta), which for plain SGD is exactly the mean raw gradient. With
  momentum, Adam, clipping or a schedule it is no gradient: a constant gradient 1 becomes 4.14 after 10 steps with
  momentum 0.9. The mean is used instead. control=displacement is the printed form.
- A proximal term is not part of the mean, as c estimates the gradient of the client's loss. The printed form cannot
  separate the two, and is rejected together with a regulariser.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, SampleWeighted
from fedcohort.component import NO_BATCH_NORM, UNRESTRICTED_UPDATE, Requirement
from fedcohort.hook import ClientContext, ClientHook, Correction, HookResult, Vector
from fedcohort.types import Population

PLAIN_SGD_REQUIREMENT = Requirement(
    lambda facts: facts.components.client.plain and not facts.components.regulariser.hooks,
    "{option} computes the loss's gradient from the displacement of the model, which holds only for plain SGD on the "
    "loss: choose client=sgd without momentum, weight_decay and clip and regulariser=none, or "
    "agg.control=mean_gradient",
)


@dataclass(frozen=True)
class State:
    """The state of SCAFFOLD's server that is kept between rounds.

    Attributes:
        c: the server's control variate, float64 [P].
        n_clients: number of all clients, N.
    """

    c: Tensor
    n_clients: int


class _DriftCorrection:
    """The correction g - c_i + c of each gradient g in one client's local training, with control variates c_i and c."""

    def __init__(self, control: str, w: Tensor, c: Tensor, c_i: Tensor) -> None:
        self.control, self.w, self.c, self.c_i = control, w, c, c_i
        self.drift = c - c_i
        self.grad_sum = torch.zeros_like(c_i) if control == "mean_gradient" else None

    def correct(self, g: Float[Tensor, "*_k _p"], y: Float[Tensor, "*_k _p"]) -> None:
        if self.grad_sum is not None:
            self.grad_sum[: len(g)].add_(g)
        g.add_(self.drift[: len(g)])

    @staticmethod
    def stack(corrections: "Sequence[_DriftCorrection]") -> "_DriftCorrection":
        first_correction, c_i = corrections[0], torch.stack([correction.c_i for correction in corrections])
        stacked_correction = _DriftCorrection(first_correction.control, first_correction.w, first_correction.c, c_i)
        if stacked_correction.grad_sum is not None:
            for correction, client_gradient_sum in zip(corrections, stacked_correction.grad_sum, strict=True):
                correction.grad_sum = client_gradient_sum
        return stacked_correction

    def finish(self, y: Vector, steps: int, lr: float) -> HookResult:
        if steps == 0:
            return HookResult({"delta_c": torch.zeros_like(self.c_i)}, {"c": self.c_i})
        next_c_i = self.grad_sum / steps if self.grad_sum is not None else (self.w - y) / (steps * lr) - self.drift
        return HookResult({"delta_c": next_c_i - self.c_i}, {"c": next_c_i})


@dataclass(frozen=True)
class ControlVariate:
    """SCAFFOLD's client hook, which corrects gradients by the difference of two control variates.

    Attributes:
        control: rule for a client's next control variate (`Scaffold.control`); it is 0 before the first training.
        downloads: name of the server's control variate.
        uploads: name of the change of the client's control variate.
        remembers: name of the client's control variate, which it stores between rounds.
    """

    control: str
    downloads: tuple[str, ...] = ("c",)
    uploads: tuple[str, ...] = ("delta_c",)
    remembers: tuple[str, ...] = ("c",)

    def begin(
        self, w: Vector, broadcast: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Correction:
        c_i = stored["c"].to(w) if "c" in stored else torch.zeros_like(w)  # files and checkpoints are read on the host
        return _DriftCorrection(self.control, w, broadcast["c"].to(w), c_i)


@dataclass(frozen=True)
class Scaffold(SampleWeighted[State]):
    """SCAFFOLD, an aggregator with control variates that correct client drift.

    Attributes:
        control: next control variate of a client: the "mean_gradient" of its local steps, or, as printed in the paper
            and for SGD only, the "displacement" of its model over the learning rates.
    """

    control: str

    recommendations: ClassVar[frozenset[Requirement]] = frozenset({NO_BATCH_NORM})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("control", self.control, "mean_gradient", "displacement")

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({UNRESTRICTED_UPDATE, *((PLAIN_SGD_REQUIREMENT,) if self.control == "displacement" else ())})

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return (ControlVariate(self.control),)

    def init(self, population: Population, n_params: int) -> State:
        return State(torch.zeros(n_params, dtype=torch.float64), population.n_clients)

    def broadcast(self, state: State) -> Mapping[str, Tensor]:
        return {"c": state.c}

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        delta_c = arrived.totals["delta_c"]
        c = state.c.to(delta_c) + delta_c / state.n_clients  # a checkpoint's c is on the CPU
        return Direction(arrived.mean), State(c, state.n_clients)
