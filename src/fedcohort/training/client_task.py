"""The job of one client in one round, as the round's plan hands it to training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from fedcohort.training.upload import Kept
from fedcohort.types import Ids, Values

Remember = Callable[[Values], tuple[Mapping[str, Tensor], Mapping[str, float]]]


@dataclass(frozen=True)
class ClientTask:
    """The job of one client in one round.

    Attributes:
        rows: positions of its samples, None for all of T_k.
        units: epochs (or steps) to do.
        duration: virtual seconds until its answer.
        stored: what it kept from earlier rounds.
        plain: only the codec's hooks.
        kept: which of the network's tensors it uploads, None for all.
        loss_after: whether it measures what it has trained.
        remember: makes what it keeps and tells of its samples' losses, given those that it trained on.
    """

    round: int
    client: int
    rows: Ids | None
    units: int
    units_asked: int
    lr: float
    duration: float
    stored: Mapping[str, Tensor]
    plain: bool = False
    kept: Kept | None = None
    loss_after: bool = False
    remember: Remember | None = None
