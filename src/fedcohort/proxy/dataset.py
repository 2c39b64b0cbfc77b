"""The training inputs of another dataset, without their labels: FedDF's and RHFL's public data.

    python train.py agg=feddf proxy=dataset dataset@proxy.source=fashion_mnist

Its samples must have the shape of the run's, and be others (`proxy.base.foreign`). They are normalised as the source's
own are, whether pixels stand in memory as bytes or as numbers. Your own are read by proxy=folder.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.dataset.base import Dataset, check
from fedcohort.proxy.base import Proxy, draw_rows, foreign


@dataclass(frozen=True)
class OtherDataset(Proxy):
    """The proxy set, with its options.

    Attributes:
        source: the dataset, one whose yaml chooses nothing else.
        n: how many of its inputs, None for all.
    """

    source: Dataset
    n: int | None

    def __post_init__(self) -> None:
        ranges.integer("n", self.n, "[1, inf)", optional=True)
        if not hasattr(self.source, "load"):
            allowed = "a dataset that makes no clients, as in dataset@proxy.source=digits"
            raise ranges.refuse("source", allowed, self.source)

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        raw = check(self.source.load(seed))
        x = foreign(torch.from_numpy(raw.train_x), f"proxy=dataset (dataset@proxy.source={raw.name})", federation)
        x = draw_rows(x, self.n, f"training samples of {raw.name}", seed)
        if raw.scale is None or raw.scale == federation.scale:
            return x
        return torch.from_numpy(raw.scale.convert(x.numpy()))  # the network would take them for bytes of the run's
