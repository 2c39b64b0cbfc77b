"""FedProx's proximal term: each client minimises F_i(y) + mu/2 ||y - w_t||^2 (Li et al. 2020).

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated Optimization in Heterogeneous Networks", MLSys 2020, arXiv
1812.06127.

    each step:  g <- g + mu (y - w_t) after the backward pass and before the optimizer

FedProx is this term with partial work: agg=fedprox chooses both.

Departures from the paper:
- Its Alg. 2 draws client k with probability p_k and averages with equal weights. Here, as in its authors' code, the
  draw is uniform by default (selector=random), and weights are by samples.
- Stragglers do a random number of epochs in the paper; here they do what fits before the deadline.
- FedDiverse prints the norm without its square, whose gradient would have the same length everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.hook import ClientContext, ClientHook, Correction, Vector
from fedcohort.regulariser.base import Regulariser


@dataclass(frozen=True)
class _ProximalCorrection(Correction):
    """The correction that adds the proximal gradient mu (y - w) to each gradient of one client's training.

    Attributes:
        mu: strength of the pull towards the received model.
        w: the received model, [P].
    """

    mu: float
    w: Tensor

    def correct(self, g: Float[Tensor, "*_k _p"], y: Float[Tensor, "*_k _p"]) -> None:
        g.add_(y - self.w, alpha=self.mu)

    @staticmethod
    def stack(corrections: "Sequence[_ProximalCorrection]") -> "_ProximalCorrection":
        return corrections[0]  # all clients start from the same model


@dataclass(frozen=True)
class ProxHook(ClientHook):
    """The client hook that adds the gradient of the proximal term to each gradient.

    Attributes:
        mu: strength of the pull towards the received model.
    """

    mu: float

    def begin(
        self, w: Vector, broadcast: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Correction:
        return _ProximalCorrection(self.mu, w)


@dataclass(frozen=True)
class Prox(Regulariser):
    """FedProx's proximal term, a regulariser that keeps local models near the received one.

    Attributes:
        mu: strength of the pull towards the received model; with 0 clients train exactly as without the term.
    """

    mu: float

    def __post_init__(self) -> None:
        ranges.number("mu", self.mu, "[0, 1e30]")

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return (ProxHook(self.mu),) if self.mu else ()
