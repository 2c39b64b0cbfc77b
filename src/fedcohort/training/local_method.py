"""The components of a run that determine the local training of clients."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort.augmentation.base import Augmentation
from fedcohort.client.base import Client
from fedcohort.codec.base import Codec
from fedcohort.hook import ClientHook
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class LocalTrainingMethod:
    """An objective, an optimizer and the components that change gradients, samples or updates.

    Attributes:
        objective: the minimised function of a sample.
        client: the optimizer and its options.
        codec: the compression of updates.
        hooks: all hooks, in the order in which they act.
        regularisers: the hooks that change the minimised function.
        augmentation: random changes of samples, None for none.
    """

    objective: Objective
    client: Client
    codec: Codec
    hooks: Sequence[ClientHook]
    regularisers: Sequence[ClientHook] = ()
    augmentation: Augmentation | None = None
