"""The training inputs of another dataset, without their labels: FedDF's and RHFL's public data.

    python train.py agg=feddf proxy=dataset dataset@proxy.source=folder proxy.source.path=my_public_data

Its samples must have the shape of the run's. Refused are inputs of the run's test set, and data of which half or more
are the clients' own (proxy=client_heldout is the honest name for that).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.dataset.base import Dataset
from fedcohort.errors import DataError
from fedcohort.federation import Federation
from fedcohort.proxy.base import drawn


@dataclass(frozen=True)
class OtherDataset:
    """source: the dataset, one whose yaml chooses nothing else. n: how many of its inputs, None for all."""

    source: Dataset
    n: int | None

    holds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.integer("n", self.n, "[1, inf)", optional=True)
        if not hasattr(self.source, "load"):
            allowed = "a dataset without clients of its own, as in dataset@proxy.source=folder"
            raise ranges.refuse("source", allowed, self.source)

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        raw = self.source.load(seed)
        x, shape = torch.from_numpy(raw.train_x), tuple(federation.server_test.x.shape[1:])
        if tuple(x.shape[1:]) != shape:
            raise DataError(
                f"proxy=dataset: a sample of {raw.name} has the shape {list(x.shape[1:])}, one of the run's "
                f"dataset={federation.name} has {list(shape)}"
            )
        if tested := shared(x, federation.server_test.x):
            raise DataError(f"proxy=dataset: {tested} inputs of {raw.name} are in the run's test set")
        if shared(x, torch.cat([federation.train.x, federation.val.x])) * 2 >= len(x):
            raise DataError(
                f"proxy=dataset: the inputs of {raw.name} are the clients' own: choose another dataset@proxy.source, "
                "or proxy=client_heldout"
            )
        return drawn(x, self.n, f"training samples of {raw.name}", seed)


def shared(x: Tensor, among: Tensor) -> int:
    """How many rows of x are rows of `among`, to the bit."""
    known = {hash(row.tobytes()) for row in among.flatten(1).cpu().numpy()}
    return sum(hash(row.tobytes()) in known for row in x.flatten(1).numpy())
