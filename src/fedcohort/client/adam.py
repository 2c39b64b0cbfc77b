"""Local Adam: `torch.optim.Adam` on the flat parameter (FLASH trains with it).

Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, arXiv 1412.6980.

Departures from the paper: none.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedcohort import ranges
from fedcohort.client.base import LocalOptimization

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Adam(LocalOptimization):
    """Adam, a local optimizer; `client.base.LocalOptimization` explains its further options.

    Attributes:
        beta1: decay of the first moment.
        beta2: decay of the second moment.
        eps: number that is added to the denominator of a step.
    """

    beta1: float
    beta2: float
    eps: float

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("beta1", self.beta1, "[0, 1)")
        ranges.number("beta2", self.beta2, "[0, 1)")
        ranges.number("eps", self.eps, "[1e-30, inf)")

    def optimizer(self, flat_parameter: "torch.nn.Parameter", lr: float) -> "torch.optim.Optimizer":
        import torch  # noqa: PLC0415 - torch is imported after the options are checked

        from fedcohort.maths.optimizers import uncompiled_optimizer  # noqa: PLC0415

        make_adam, betas = uncompiled_optimizer(torch.optim.Adam), (float(self.beta1), float(self.beta2))
        return make_adam([flat_parameter], lr=lr, betas=betas, eps=self.eps, weight_decay=self.weight_decay)
