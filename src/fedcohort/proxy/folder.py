"""A user's public inputs, without labels: a folder with train.parquet or train.csv.

    python train.py agg=feddf dataset=folder dataset.path=my_data proxy=folder proxy.path=my_public_data

Samples are reshaped to the run's; if the columns have the same names, they are put into the order of the run's. They
must be other samples than the clients' (`proxy.base.check_foreign`). They are converted exactly as the run's inputs:

    images, of the run's size     bytes, or bytes divided by 255, are standardised as the run's pixels; scale: 1 or 255
    standardised inputs           (x / scale - mean) / sd, with the mean and standard deviation of the run
    other inputs                  x / scale
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.dataset.arrow_columns import is_row_number
from fedcohort.dataset.files import read_part
from fedcohort.dataset.image_dataset import NO_PIXELS, read_images, to_pixels
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.messages import list_names
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.proxy.base import Proxy, check_foreign, draw_inputs


@dataclass(frozen=True)
class Folder(Proxy):
    """A proxy set that reads inputs from a user's folder.

    Attributes:
        path: the folder.
        features: one column of lists or images, None for all columns of numbers except `leave_out`.
        leave_out: columns of numbers that are not inputs.
        scale: divisor of the inputs; for images 1 or 255, which have the same effect.
        n: number of inputs, None for all.
    """

    path: str
    features: str | None
    leave_out: Sequence[str]
    scale: float
    n: int | None

    def __post_init__(self) -> None:
        ranges.text("path", self.path)
        ranges.text("features", self.features, allow_null=True)
        ranges.texts("leave_out", self.leave_out)
        ranges.number("scale", self.scale, "(0, inf)")
        ranges.integer("n", self.n, "[1, inf)", allow_null=True)

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        frame = replace(read_part(self.path, "train", "proxy.path"), option="proxy.path")
        if federation.scale is not None:
            x = self._pixels(frame, federation)
        elif federation.converted is not None:
            x = federation.converted.convert(self._pixels(frame, federation))
        else:
            x = self._numbers(frame, federation)
        inputs = check_foreign(torch.from_numpy(x), f"proxy=folder ({frame.where})", federation)
        return draw_inputs(inputs, self.n, "its rows", seed)

    def _numbers(self, frame: Frame, federation: Federation) -> np.ndarray:
        """Return the inputs if those of the run are not pixels, float32."""
        names = self._names(frame, federation)
        values = frame.numbers(names) if self.features is None else frame.arrays(self.features)
        x: np.ndarray = _reshape(values, names, frame, federation).astype(np.float32) / np.float32(self.scale)
        if federation.standard is not None:
            mean, sd = federation.standard
            x = (x - mean) / sd
        return x

    def _pixels(self, frame: Frame, federation: Federation) -> np.ndarray:
        """Return the images as bytes [n, channels, height, width], read as the images of a dataset."""
        if self.scale not in (1, 255):
            allowed = "1 or 255, which have the same effect if the run's inputs are images"
            raise ranges.range_error("proxy.scale", allowed, self.scale)
        channels, height, width = federation.server_test.x.shape[1:]
        if self.features is not None:
            column = self.features
            frame = replace(frame, column_options={column: "proxy.features"}, renamed={column: column})
            return read_images([frame], [column], ImageFormat((channels, height, width)))
        names = self._names(frame, federation)
        values = _reshape(frame.numbers(names), names, frame, federation)
        pixels, is_no_pixel = to_pixels(values, 255 if values.max() > 1 else 1)
        if is_no_pixel.any():
            row, column = np.argwhere(is_no_pixel.reshape(len(is_no_pixel), -1))[0].tolist()
            raise frame.cell_error(
                names[column], row, f"holds {values[row].flat[column]:g}, but the run's inputs are images: {NO_PIXELS}"
            )
        return pixels

    def _names(self, frame: Frame, federation: Federation) -> list[str]:
        """Return the names of the columns that are inputs, in the order of the run's columns if these have them."""
        if self.features is not None:
            return [self.features]
        names = [name for name in frame.names if name not in self.leave_out and frame.is_number(name)]
        names = [name for name in names if not is_row_number(frame.table, name)]
        return list(federation.columns) if sorted(names) == sorted(federation.columns) else names


def _reshape(x: np.ndarray, names: Sequence[str], frame: Frame, federation: Federation) -> np.ndarray:
    """Return the inputs in the shape of the run's samples; raise `DataError` if these have more or fewer numbers."""
    shape = tuple(federation.server_test.x.shape[1:])
    if prod(x.shape[1:]) != prod(shape):
        raise DataError(
            f"proxy.path: a sample of {frame.where} has {prod(x.shape[1:])} numbers ({list_names(names)}), but one of "
            f"dataset={federation.name} has {prod(shape)}; proxy.leave_out=[id,label] leaves columns out"
        )
    return x.reshape(len(x), *shape)
