"""Your own dataset: a folder with train.parquet and test.parquet, or train.csv and test.csv.

    python train.py dataset=folder dataset.path=my_data dataset.label=diagnosis

Each row is a sample: the label (0, 1, 2, ...), the features, and optionally who made it. With `client` set, the
owners are numbered in sorted order, and heterogeneity=natural makes each of them a client with its own test rows.

Departures from the paper: none (of no paper).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.dataset.base import Raw, checked
from fedcohort.dataset.table import Frame, local, text
from fedcohort.errors import DataError
from fedcohort.types import Ids


@dataclass(frozen=True)
class Folder:
    """path: the folder. label: column of the labels. client: column of the owners' ids, texts or integers.

    features: one column of lists or images; None for all columns of numbers besides label and client.
    n_classes: None for the largest label and one. shape: of one sample, empty for what the columns give.
    scale: inputs are divided by it.
    """

    path: str
    features: str | None
    label: str
    client: str | None
    n_classes: int | None
    shape: Sequence[int]
    scale: float

    def __post_init__(self) -> None:
        text("path", self.path)
        text("features", self.features, optional=True)
        text("label", self.label)
        text("client", self.client, optional=True)
        ranges.integer("n_classes", self.n_classes, "[2, inf)", optional=True)
        ranges.numbers("shape", self.shape, "[1, inf)")
        for size in self.shape:
            ranges.integer("each of shape", size, "[1, inf)")
        ranges.number("scale", self.scale, "(0, inf)")

    def load(self, seed: int) -> Raw:
        """float32 inputs [N, *shape]; nothing is drawn. Raises `DataError` naming file, column and row."""
        frames = local(self.path)
        labels = [frame.labels(self.label, self.n_classes) for frame in frames]
        n_classes = self.n_classes or max(2, 1 + max(int(y.max()) for y in labels))
        names = self._columns(frames[0])
        inputs = [self._inputs(frame, names) for frame in frames]
        owners = self._owners(*frames)
        return checked(Raw("folder", inputs[0], labels[0], inputs[1], labels[1], n_classes, *owners))

    def _columns(self, train: Frame) -> list[str]:
        if self.features is not None:
            return [self.features]
        names = [name for name in train.names if name not in (self.label, self.client) and train.is_number(name)]
        if not names:
            raise DataError(
                f"{train.where} has no column of numbers besides the label; set dataset.features to one column of "
                f"lists or images: {', '.join(train.names)}"
            )
        return names

    def _inputs(self, frame: Frame, names: list[str]) -> np.ndarray:
        x = frame.numbers(names) if self.features is None else frame.arrays(self.features)
        x = x.astype(np.float32)
        x /= np.float32(self.scale)
        if not self.shape:
            return x
        if np.prod(self.shape) != x[0].size:
            raise DataError(
                f"dataset.shape={list(self.shape)} holds {np.prod(self.shape)} values, and a sample of {frame.where} "
                f"has {x[0].size}"
            )
        return x.reshape(len(x), *self.shape)

    def _owners(self, train: Frame, test: Frame) -> tuple[Ids | None, Ids | None]:
        if self.client is None:
            return None, None
        found = [frame.column(self.client).to_numpy() for frame in (train, test) if self.client in frame.names]
        if not found or self.client not in train.names:
            train.column(self.client)  # raises
        try:
            _, ids = np.unique(np.concatenate(found), return_inverse=True)
        except TypeError as error:
            raise DataError(f"{train.where}: column {self.client!r} mixes texts and numbers") from error
        first, second = np.split(ids.astype(np.int64), [len(found[0])])
        return first, second if len(found) == 2 else None
