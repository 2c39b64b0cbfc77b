"""Your own public inputs, without labels: a folder with train.parquet or train.csv.

    python train.py agg=feddf dataset=folder dataset.path=my_data proxy=folder proxy.path=my_public_data

A sample takes the shape of the run's; columns of the same names are put into the order of the run's. They must be
others than the clients' own (`proxy.base.foreign`). What the run makes of its inputs is made of these, to the bit:

    images, of the run's size     bytes, or such divided by 255, are normalised as the run's pixels are; scale: 1 or 255
    standardised inputs           (x / scale - mean) / sd, with the run's own mean and deviation
    others                        x / scale
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.dataset.files import part_of
from fedcohort.dataset.images import Fit
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.pictures import NO_PIXELS, images_of, pixels_of
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.proxy.base import Proxy, draw_rows, foreign


@dataclass(frozen=True)
class Folder(Proxy):
    """The proxy set, with its options.

    Attributes:
        path: the folder.
        features: one column of lists or images, None for all columns of numbers besides `leave_out`.
        scale: inputs are divided by it, as the run's own; of images it is 1 or 255, which are the same.
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
        frame = replace(part_of(self.path, "train", "proxy.path"), option="proxy.path")
        if federation.scale is not None:
            x = self._pixels(frame, federation)
        elif federation.converted is not None:
            x = federation.converted.convert(self._pixels(frame, federation))
        else:
            x = self._numbers(frame, federation)
        found = foreign(torch.from_numpy(x), f"proxy=folder ({frame.where})", federation)
        return draw_rows(found, self.n, "its rows", seed)

    def _numbers(self, frame: Frame, federation: Federation) -> np.ndarray:
        """The inputs of a run that doesn't know of pixels, float32."""
        names = self._names(frame, federation)
        found = frame.numbers(names) if self.features is None else frame.arrays(self.features)
        x: np.ndarray = _shaped(found, names, frame, federation).astype(np.float32) / np.float32(self.scale)
        if federation.standard is not None:
            mean, sd = federation.standard
            x = (x - mean) / sd
        return x

    def _pixels(self, frame: Frame, federation: Federation) -> np.ndarray:
        """The images as bytes [n, channels, height, width], read as those of a run are."""
        if self.scale not in (1, 255):
            raise ranges.refuse(
                "proxy.scale", "1 or 255, which are the same where the run's inputs are images", self.scale
            )
        channels, height, width = federation.server_test.x.shape[1:]
        if self.features is not None:
            column = self.features
            frame = replace(frame, named={column: "proxy.features"}, renamed={column: column})
            return images_of([frame], [column], Fit((channels, height, width)))
        names = self._names(frame, federation)
        found = _shaped(frame.numbers(names), names, frame, federation)
        pixels, wrong = pixels_of(found, 255 if found.max() > 1 else 1)
        if wrong.any():
            row, column = np.argwhere(wrong.reshape(len(wrong), -1))[0].tolist()
            raise frame.blame(
                names[column], row, f"holds {found[row].flat[column]:g}, and the run's inputs are images: {NO_PIXELS}"
            )
        return pixels

    def _names(self, frame: Frame, federation: Federation) -> list[str]:
        """The columns that are inputs."""
        if self.features is not None:
            return [self.features]
        names = [name for name in frame.names if name not in self.leave_out and frame.is_number(name)]
        names = [name for name in names if not frame.is_row_number(name)]
        return list(federation.columns) if sorted(names) == sorted(federation.columns) else names


def _shaped(x: np.ndarray, names: Sequence[str], frame: Frame, federation: Federation) -> np.ndarray:
    """The inputs in the shape of the run's. Raises `DataError` where that has not as many numbers."""
    shape = tuple(federation.server_test.x.shape[1:])
    if prod(x.shape[1:]) != prod(shape):
        raise DataError(
            f"proxy.path: a sample of {frame.where} has {prod(x.shape[1:])} numbers ({list_names(names)}), and one "
            f"of dataset={federation.name} {prod(shape)}; proxy.leave_out=[id,label] leaves columns out"
        )
    return x.reshape(len(x), *shape)
