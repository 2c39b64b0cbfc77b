"""Local SGD: `torch.optim.SGD` on the flat parameter.

Without momentum, weight decay and clipping the step is y <- y - lr g, and the engine computes it without an optimizer.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedcohort import ranges
from fedcohort.client.base import LocalOptimization

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Sgd(LocalOptimization):
    """SGD, a local optimizer; `client.base.LocalOptimization` explains its further options.

    Attributes:
        momentum: heavy-ball momentum within a round.
    """

    momentum: float

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("momentum", self.momentum, "[0, 1)")

    @property
    def plain(self) -> bool:
        return self.momentum == 0 and self.weight_decay == 0 and self.clip is None

    @property
    def linear(self) -> bool:
        return True

    def optimizer(self, flat_parameter: "torch.nn.Parameter", lr: float) -> "torch.optim.Optimizer":
        import torch  # noqa: PLC0415 - torch is imported after the options are checked

        from fedcohort.maths.optimizers import uncompiled_optimizer  # noqa: PLC0415

        make_sgd = uncompiled_optimizer(torch.optim.SGD)
        return make_sgd([flat_parameter], lr=lr, momentum=self.momentum, weight_decay=self.weight_decay)
