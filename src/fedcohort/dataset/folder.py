"""Your own dataset: a folder with train.parquet and test.parquet, or train.csv and test.csv.

    python train.py dataset=folder dataset.path=my_data dataset.label=diagnosis dataset.client=hospital

Each row is a sample: the label (0, 1, 2, ... or texts), the features, and optionally who made it. With `client` set,
the owners are numbered in sorted order, and each of them is a client with its own test rows; else clients are made,
each a random sample. Nobody's labels are changed, unless you ask for it. Row numbers that pandas writes are no
features, and neither are texts and dates; the start-up table says what was taken.

valid.parquet or valid.csv, where the folder has one, is the server's validation data, and all of the training rows are
the clients' then; valid=none leaves the file alone.

Departures from the paper: none (of no paper).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset import own
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.labels import MOST, labels_of
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.owners import owners_of
from fedcohort.dataset.pictures import LARGE
from fedcohort.dataset.table import Frame, give_back, text
from fedcohort.errors import DataError
from fedcohort.rng import generator

REMEDY = "; mend it, or choose dataset.missing=drop, which leaves such rows out"
FOR_NUMBERS = ", or dataset.missing=mean, which takes the feature's mean over the training rows"


@dataclass(frozen=True)
class Folder(Dataset):
    """The data set, with its options.

    Attributes:
        path: the folder.
        label, client: columns of the labels, and of the owners' ids, texts or integers.
        features: one column of lists or images; None for all columns of numbers besides label, client and `leave_out`.
        n_classes: None for as many as there are.
        shape: of one sample, empty for what the columns give.
        scale: inputs are divided by it.
        standardise: "none", or "train" for mean 0 and deviation 1 of each feature over the training rows.
        missing: what becomes of rows with cells that hold no number: "error", "drop" or "mean".
        test_share: of the training rows, cut for a test part where the folder has none.
        pixels: how images stand in memory, "float32", "uint8" (converted batch by batch; scale must be 255), or "auto":
            uint8 where float32 would take more than 2 GB.
        test: who holds the test rows, "clients" (each its own, or a share) or "server" (it alone: no client has any, as
            where the test part is of others).
        valid: what becomes of a validation file, "server" (its rows are the server's validation data) or "none".
    """

    path: str
    features: str | None
    label: str
    client: str | None
    leave_out: Sequence[str]
    n_classes: int | None
    shape: Sequence[int]
    scale: float
    standardise: str
    missing: str
    test_share: float | None
    test: str
    valid: str
    pixels: str

    def __post_init__(self) -> None:
        text("path", self.path)
        text("features", self.features, optional=True)
        text("label", self.label)
        text("client", self.client, optional=True)
        for option, name in (("client", self.client), ("features", self.features)):
            if name == self.label:
                raise ranges.refuse(option, "another column than label", name)
        if self.client is not None and self.client == self.features:
            raise ranges.refuse("client", "another column than features", self.client)
        self._check_left_out()
        ranges.integer("n_classes", self.n_classes, f"[2, {MOST}]", optional=True)
        ranges.numbers("shape", self.shape, "[1, inf)")
        for size in self.shape:
            ranges.integer("each of shape", size, "[1, inf)")
        ranges.number("scale", self.scale, "(0, inf)")
        ranges.choice("standardise", self.standardise, "none", "train")
        if self.standardise != "none" and self.scale != 1:
            raise ranges.refuse("scale", "1 where standardise=train undoes it", self.scale)
        ranges.choice("missing", self.missing, "error", "drop", "mean")
        ranges.number("test_share", self.test_share, "(0, 0.5]", optional=True)
        ranges.choice("test", self.test, "clients", "server")
        ranges.choice("valid", self.valid, "server", "none")
        ranges.choice("pixels", self.pixels, "auto", "float32", "uint8")
        if self.pixels == "uint8" and not self._divides_bytes():
            allowed = "auto or float32, where features is no column of images, scale isn't 255 or they are standardised"
            raise ranges.refuse("pixels", allowed, self.pixels)

    def _check_left_out(self) -> None:
        ranges.texts("leave_out", self.leave_out)
        if self.leave_out and self.features is not None:
            raise ranges.refuse("leave_out", "[] where features names one column", self.leave_out)
        if {self.label, self.client} & set(self.leave_out):
            raise ranges.refuse("leave_out", "columns besides label and client, which are no inputs", self.leave_out)

    def load(self, seed: int) -> Raw:
        """float32 inputs [N, *shape], or images of bytes; only a test part is drawn.

        Raises `DataError` naming file, column and row.
        """
        remarks: list[str] = []
        frames, names = self._frames(seed, remarks)
        labels = labels_of(frames, self.label, self.n_classes)
        owners = owners_of(frames[0], frames[1], self.client)
        x, pixels = self._inputs(frames, names, sum(len(y) for y in labels.parts))
        scale = pixels if x[0].dtype == np.uint8 else None
        if self.missing == "mean" and scale is None:
            x = own.fill(frames[0], names, x, remarks)
        standard = own.standardise(x, remarks) if self.standardise == "train" else None
        remarks += ["kept as bytes"] * (scale is not None)
        remarks += ["the server alone holds the test rows: no clients/acc_*"] * (self.test == "server")
        valid = (x[2], labels.parts[2]) if len(frames) > 2 else None
        remarks += [f"{len(y):,} validation rows are the server's" for y in labels.parts[2:]]
        raw = Raw(
            "folder",
            x[0],
            labels.parts[0],
            x[1],
            labels.parts[1],
            labels.n_classes,
            owners.train,
            owners.test,
            owner_names=owners.names,
            inputs=self._words(frames[0], names, x[0].shape[1:], remarks),
            class_names=tuple(labels.names),
            columns=tuple(names) if self.features is None else (),
            pooled_test=self.test == "server",
            standard=standard,
            scale=scale,
            converted=pixels if scale is None else None,
            valid=valid,
            single_use=True,
        )
        del frames
        give_back()
        return raw

    def _frames(self, seed: int, remarks: list[str]) -> tuple[list[Frame], list[str]]:
        """The tables of `own.PARTS` without the rows that are dropped, and the columns that are inputs."""
        columns = {"features": self.features, "client": self.client, "label": self.label}
        named = {name: f"dataset.{option}" for option, name in columns.items() if name is not None}
        files = own.files_of(self.path, self.test_share is not None, self.valid == "server", remarks)
        files = [replace(frame, named=named, remedy=REMEDY, for_numbers=FOR_NUMBERS) for frame in files]
        names = self._columns(files[0])
        if self.missing == "drop":
            files = [own.complete(frame, list(named), names, self.features, remarks) for frame in files]
        if self.test_share is not None:
            files = [*self._cut(files[0], seed, remarks), *files[1:]]
        return files, names

    def _cut(self, frame: Frame, seed: int, remarks: list[str]) -> list[Frame]:
        labels = labels_of([frame], self.label, self.n_classes).parts[0]
        owner = owners_of(frame, frame, self.client).train
        test = own.held_out(labels, owner, float(self.test_share or 0), generator(seed, "test_part"))
        remarks.append(f"{len(test)} rows cut for the test part")
        return [frame.take(np.setdiff1d(np.arange(len(labels)), test)), frame.take(test)]

    def _columns(self, train: Frame) -> list[str]:
        """The columns that are inputs."""
        for name in self.leave_out:
            if name not in train.names:
                raise DataError(
                    f"dataset.leave_out: {train.where} has no column {name!r}; it has {list_names(train.names)}"
                )
        if self.features is not None:
            return [self.features]
        others = {self.label, self.client, *self.leave_out}
        names = [name for name in train.names if name not in others and train.is_number(name)]
        names = [name for name in names if not train.is_row_number(name)]
        if not names:
            raise DataError(
                f"dataset.features: {train.where} has no column of numbers besides the label; name one column of lists "
                f"or images: {list_names(train.names)}"
            )
        return names

    def _inputs(self, frames: Sequence[Frame], names: list[str], n: int) -> tuple[list[np.ndarray], PixelScale | None]:
        """The inputs of each table, float32 or bytes, and what pixels become, None without. n: rows of all tables."""
        found = self._read(frames[0], names)
        pixels = self._pixels(found, frames[0])
        large = 4 * n * found[0].size > LARGE
        keep = pixels is not None and (self.pixels == "uint8" or (self.pixels == "auto" and large))
        x = [self._divide(found, frames[0], keep)]
        del found
        for frame in frames[1:]:
            x.append(self._divide(self._read(frame, names), frame, keep))
            if x[-1].shape[1:] != x[0].shape[1:]:
                here, there = (list(each.shape[1:]) for each in (x[-1], x[0]))
                what = f": a sample has the shape {here}, and one of {frames[0].where} {there}"
                raise frame.error(names[0], what)
        return [self._reshape(each, frame) for each, frame in zip(x, frames, strict=True)], pixels

    def _read(self, frame: Frame, names: list[str]) -> np.ndarray:
        """The inputs as they are stored, [N, ...]; NaN where a number is missing and `missing` is mean."""
        gaps = self.missing == "mean"
        return frame.numbers(names, gaps=gaps) if self.features is None else frame.arrays(self.features, gaps=gaps)

    def _divides_bytes(self) -> bool:
        return self.features is not None and self.scale == 255 and self.standardise == "none"

    def _pixels(self, x: np.ndarray, train: Frame) -> PixelScale | None:
        """What pixels become, None where inputs are none, or others."""
        shape = tuple(int(length) for length in self.shape) or x.shape[1:]
        able = x.dtype == np.uint8 and len(shape) == 3 and self._divides_bytes()
        if self.pixels == "uint8" and not able:
            raise train.error(
                str(self.features), f": dataset.pixels=uint8 is for images, {x.dtype} {list(shape)} are none"
            )
        return PixelScale((0.0,) * shape[0], (1.0,) * shape[0]) if able else None

    def _divide(self, x: np.ndarray, frame: Frame, keep: bool) -> np.ndarray:
        """float32 [N, ...], divided by `scale`; bytes as they are where the network does it (`keep`)."""
        if keep and x.dtype == np.uint8:
            return x
        if keep:
            raise frame.error(
                str(self.features), f": holds {x.dtype}, not bytes as the training part: say dataset.pixels=float32"
            )
        gaps = self.missing == "mean"
        x = x.astype(np.float32, copy=False)  # both ways of reading have made an array of their own
        with np.errstate(all="ignore"):
            divisor = np.float32(self.scale)
            x /= divisor
        if np.isinf(divisor) or np.isinf(x).any() or (np.isnan(x).any() and not gaps):
            raise DataError(f"dataset.scale={self.scale} leaves nothing that float32 can hold of {frame.where}")
        return x

    def _reshape(self, x: np.ndarray, frame: Frame) -> np.ndarray:
        if not self.shape:
            return x
        if (size := int(np.prod([int(length) for length in self.shape], dtype=object))) != x[0].size:
            raise DataError(
                f"dataset.shape={list(self.shape)} holds {size} values, and a sample of {frame.where} has {x[0].size}"
            )
        return x.reshape(len(x), *self.shape)

    def _words(self, train: Frame, names: list[str], shape: Sequence[int], remarks: Sequence[str]) -> str:
        """`8: x0 ... x7 (left out: comment, site); 120 rows cut for the test part`."""
        rest = [name for name in train.names if name not in {*names, self.label}]
        size = " x ".join(str(length) for length in shape)
        left = f" (left out: {list_names(rest)})" if rest else ""
        return "; ".join([f"{size}: {list_names(names)}{left}", *remarks])
