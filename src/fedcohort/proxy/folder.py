"""Your own public inputs, without labels: a folder with train.parquet or train.csv.

    python train.py agg=feddf dataset=folder dataset.path=my_data proxy=folder proxy.path=my_public_data

A sample takes the shape of the run's; columns of the same names are put into the order of the run's. Where the run's
inputs are standardised, these are by the same mean and deviation. They must be others than the clients' own
(`proxy.base.foreign`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.table import part_of
from fedcohort.errors import DataError
from fedcohort.proxy.base import Proxy, draw_rows, foreign


@dataclass(frozen=True)
class Folder(Proxy):
    """The proxy set, with its options.

    Attributes:
        path: the folder.
        features: one column of lists or images, None for all columns of numbers besides `leave_out`.
        scale: inputs are divided by it, as the run's own.
        n: how many of the inputs, None for all.
    """

    path: str
    features: str | None
    leave_out: Sequence[str]
    scale: float
    n: int | None

    def __post_init__(self) -> None:
        ranges.text("path", self.path)
        ranges.text("features", self.features, optional=True)
        ranges.texts("leave_out", self.leave_out)
        ranges.number("scale", self.scale, "(0, inf)")
        ranges.integer("n", self.n, "[1, inf)", optional=True)

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        frame = part_of(self.path, "train", "proxy.path")
        names = [name for name in frame.names if name not in self.leave_out and frame.is_number(name)]
        names = [name for name in names if not frame.is_row_number(name)]
        if sorted(names) == sorted(federation.columns):
            names = list(federation.columns)
        found = frame.numbers(names) if self.features is None else frame.arrays(self.features)
        x = found.astype(np.float32) / np.float32(self.scale)
        shape = tuple(federation.server_test.x.shape[1:])
        if prod(x.shape[1:]) != prod(shape):
            raise DataError(
                f"proxy.path: a sample of {frame.where} has {prod(x.shape[1:])} numbers ({list_names(names)}), and one "
                f"of dataset={federation.name} {prod(shape)}; proxy.leave_out=[id,label] leaves columns out"
            )
        x = x.reshape(len(x), *shape)
        if federation.standard is not None:
            mean, sd = federation.standard
            x = (x - mean) / sd
        return draw_rows(
            foreign(torch.from_numpy(x), f"proxy=folder ({frame.where})", federation), self.n, "its rows", seed
        )
