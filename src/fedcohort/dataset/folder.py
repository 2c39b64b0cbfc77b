"""Your own dataset: a folder with train.parquet and test.parquet, or train.csv and test.csv.

    python train.py dataset=folder dataset.path=my_data dataset.label=diagnosis

Each row is a sample: the label (0, 1, 2, ...), the features, and optionally who made it. With `client` set, the
owners are numbered in sorted order, and heterogeneity=natural makes each of them a client with its own test rows.
Row numbers that pandas writes are no features, and neither are texts; the start-up table says what was taken.

Departures from the paper: none (of no paper).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort import ranges
from fedcohort.dataset.base import Raw, checked
from fedcohort.dataset.table import Frame, listed, local, text
from fedcohort.errors import DataError
from fedcohort.types import Ids


@dataclass(frozen=True)
class Folder:
    """path: the folder. label: column of the labels. client: column of the owners' ids, texts or integers.

    features: one column of lists or images; None for all columns of numbers besides label, client and `leave_out`.
    n_classes: None for the largest label and one. shape: of one sample, empty for what the columns give.
    scale: inputs are divided by it.
    """

    path: str
    features: str | None
    label: str
    client: str | None
    leave_out: Sequence[str]
    n_classes: int | None
    shape: Sequence[int]
    scale: float

    def __post_init__(self) -> None:
        text("path", self.path)
        text("features", self.features, optional=True)
        text("label", self.label)
        text("client", self.client, optional=True)
        for option, name in (("client", self.client), ("features", self.features)):
            if name == self.label:
                raise ranges.refuse(option, "another column than label", name)
        names = self.leave_out
        if (
            isinstance(names, str)
            or not isinstance(names, Sequence)
            or not all(isinstance(name, str) for name in names)
        ):
            raise ranges.refuse("leave_out", "a list of texts, as [id,age]", self.leave_out)
        if self.leave_out and self.features is not None:
            raise ranges.refuse("leave_out", "[] where features names one column", self.leave_out)
        ranges.integer("n_classes", self.n_classes, "[2, inf)", optional=True)
        ranges.numbers("shape", self.shape, "[1, inf)")
        for size in self.shape:
            ranges.integer("each of shape", size, "[1, inf)")
        ranges.number("scale", self.scale, "(0, inf)")

    def load(self, seed: int) -> Raw:
        """float32 inputs [N, *shape]; nothing is drawn. Raises `DataError` naming file, column and row."""
        columns = {"features": self.features, "client": self.client, "label": self.label}
        named = {name: f"dataset.{option}" for option, name in columns.items() if name is not None}
        train, test = (replace(frame, named=named) for frame in local(self.path))
        labels = [frame.labels(self.label, self.n_classes) for frame in (train, test)]
        n_classes = self.n_classes or self._guessed_classes(test, *labels)
        names = self._columns(train)
        inputs = [self._inputs(frame, names) for frame in (train, test)]
        owners = self._owners(train, test)
        words = self._words(train, names, inputs[0].shape[1:])
        return checked(Raw("folder", inputs[0], labels[0], inputs[1], labels[1], n_classes, *owners, words))

    def _guessed_classes(self, test: Frame, train_y: Ids, test_y: Ids) -> int:
        """The largest label and one. A test label that training never has is a mistake, unless `n_classes` is set."""
        n_classes = max(2, 1 + int(train_y.max()), 1 + int(test_y.max()))
        if len(unseen := np.setdiff1d(test_y, train_y)):
            raise test.error(
                self.label,
                f": column {self.label!r} has labels that no training row has: {listed([str(y) for y in unseen])}; "
                f"mend the split, or set dataset.n_classes={n_classes} if that is meant",
            )
        return n_classes

    def _columns(self, train: Frame) -> list[str]:
        """The columns that are inputs."""
        for name in self.leave_out:
            if name not in train.names:
                raise DataError(
                    f"dataset.leave_out: {train.where} has no column {name!r}; it has {listed(train.names)}"
                )
        if self.features is not None:
            return [self.features]
        others = (self.label, self.client, *self.leave_out)
        names = [name for name in train.names if name not in others and train.is_number(name)]
        names = [name for name in names if not train.is_row_number(name)]
        if not names:
            raise DataError(
                f"dataset.features: {train.where} has no column of numbers besides the label; name one column of lists "
                f"or images: {listed(train.names)}"
            )
        return names

    def _words(self, train: Frame, names: list[str], shape: Sequence[int]) -> str:
        """`8: x0 ... x7 (left out: comment, site)`."""
        rest = [name for name in train.names if name not in (*names, self.label)]
        size = " x ".join(str(length) for length in shape)
        return f"{size}: {listed(names)}" + (f" (left out: {listed(rest)})" if rest else "")

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
