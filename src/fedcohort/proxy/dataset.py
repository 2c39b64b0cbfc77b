"""The training inputs of another dataset, without labels: the public data of FedDF and RHFL.

    python train.py agg=feddf proxy=dataset dataset@proxy.source=fashion_mnist

The inputs must have the shape of the run's samples and be other samples (`proxy.base.check_proxy_inputs`). They are
standardised by the mean and standard deviation of the source dataset. proxy=folder reads a user's files.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.dataset.base import Dataset, check_raw_data
from fedcohort.proxy.base import Proxy, check_proxy_inputs, draw_inputs


@dataclass(frozen=True)
class OtherDataset(Proxy):
    """A proxy set of the training inputs of another dataset.

    Attributes:
        source: the other dataset, whose yaml must not set options of other config groups.
        n: number of inputs to draw; None for all.
    """

    source: Dataset
    n: int | None

    def __post_init__(self) -> None:
        ranges.integer("n", self.n, "[1, inf)", allow_null=True)
        if not hasattr(self.source, "load"):
            raise ranges.range_error(
                "source", "a dataset without generated clients, as in dataset@proxy.source=digits", self.source
            )

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        raw_dataset = check_raw_data(self.source.load(seed))
        source_name = f"proxy=dataset (dataset@proxy.source={raw_dataset.name})"
        inputs = check_proxy_inputs(torch.from_numpy(raw_dataset.train_x), source_name, federation)
        inputs = draw_inputs(inputs, self.n, f"training samples of {raw_dataset.name}", seed)
        if raw_dataset.scale is None or raw_dataset.scale == federation.scale:
            return inputs
        # The network would standardise bytes by the run's scale.
        return torch.from_numpy(raw_dataset.scale.convert(inputs.numpy()))
