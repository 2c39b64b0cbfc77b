"""Read the inputs of a user's tables as arrays: numbers, windows of them, lists, or images."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset import images
from fedcohort.dataset.problems import Problems
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError

LARGE = 2_000_000_000  # bytes of float32 above which pixels=auto keeps bytes


@dataclass(frozen=True)
class Reader:
    """How columns become inputs.

    Attributes:
        columns: columns of numbers; empty if `lists` are the inputs.
        lists: columns of lists or images; several become the channels of a sample.
        window: rows of a sample, 1 if each row is one.
        gaps: whether missing numbers become NaN; otherwise they are errors.
        shape: shape of a sample, empty for the shape of the columns.
        scale: inputs are divided by it.
        pixels: "auto", "float32" or "uint8", see `dataset.folder.Folder`.
        standardised: whether the inputs are standardised afterwards.
    """

    columns: Sequence[str]
    lists: Sequence[str]
    window: int
    gaps: bool
    shape: tuple[int, ...]
    scale: float
    pixels: str
    standardised: bool

    def read(self, frames: Sequence[Frame]) -> tuple[list[np.ndarray], PixelScale | None]:
        """Return the inputs of each table, float32 [N, ...] or bytes, and the scale of pixels, None for other inputs.

        Raises:
            DataError: for cells that are no inputs; problems of several tables are raised together.
        """
        problems, n_samples = Problems(), sum(frame.table.num_rows for frame in frames) // self.window
        x: list[np.ndarray] = []
        pixels, keep = None, False
        for frame in frames:
            with problems.collect():
                values = self._read_columns(frame)
                if frame is frames[0]:
                    pixels = self._pixels(values, frame)
                    large = 4 * n_samples * values[0].size > LARGE
                    keep = pixels is not None and (self.pixels == "uint8" or (self.pixels == "auto" and large))
                x.append(self._divide(values, frame, keep))
        problems.raise_all()
        for frame, values in zip(frames[1:], x[1:], strict=True):
            if values.shape[1:] != x[0].shape[1:]:
                shape, first_shape = list(values.shape[1:]), list(x[0].shape[1:])
                what = f": a sample has the shape {shape}, and one of {frames[0].where} {first_shape}"
                raise frame.error([*self.lists, *self.columns][0], what)
        return [self._reshape(values, frame) for values, frame in zip(x, frames, strict=True)], pixels

    def _read_columns(self, frame: Frame) -> np.ndarray:
        """Return the inputs as they are stored, [N, ...]."""
        if not self.lists:
            values = frame.numbers(list(self.columns), gaps=self.gaps)
            if self.window == 1:
                return values
            return np.ascontiguousarray(values.reshape(-1, self.window, values.shape[1]).transpose(0, 2, 1))
        if len(self.lists) == 1:
            return frame.arrays(self.lists[0], gaps=self.gaps)
        channels = []
        for name in self.lists:
            channels.append(frame.arrays(name, gaps=self.gaps))
            if channels[-1].shape != channels[0].shape:
                what = f": {name!r} holds {channels[-1].shape[1:]} and {self.lists[0]!r} {channels[0].shape[1:]}"
                raise frame.error(name, f"{what}: columns of lists need one length")
        return np.stack(channels, axis=1)

    def _divides_bytes(self) -> bool:
        return bool(self.lists) and self.scale == 255 and not self.standardised

    def _pixels(self, x: np.ndarray, train: Frame) -> PixelScale | None:
        """Return what pixels become, None if the inputs are no images. Raises `DataError` for pixels=uint8 then."""
        shape = self.shape or x.shape[1:]
        are_images = x.dtype == np.uint8 and len(shape) == 3 and self._divides_bytes()
        if self.pixels == "uint8" and not are_images:
            what = f": dataset.pixels=uint8 is for images, {x.dtype} {list(shape)} are none"
            raise train.error(self.lists[0], what)
        return PixelScale((0.0,) * shape[0], (1.0,) * shape[0]) if are_images else None

    def _divide(self, x: np.ndarray, frame: Frame, keep: bool) -> np.ndarray:
        """Return float32 divided by `scale`; keep: bytes as they are, which the network divides."""
        if keep and x.dtype == np.uint8:
            return x
        if keep:
            what = f": holds {x.dtype}, not bytes as the training part: say dataset.pixels=float32"
            raise frame.error(self.lists[0], what)
        x = x.astype(np.float32, copy=False)  # reading has made an array that nothing else uses
        with np.errstate(all="ignore"):
            divisor = np.float32(self.scale)
            x /= divisor
        if np.isinf(divisor) or np.isinf(x).any() or (np.isnan(x).any() and not self.gaps):
            raise DataError(f"dataset.scale={self.scale} leaves nothing that float32 can hold of {frame.where}")
        return x

    def _reshape(self, x: np.ndarray, frame: Frame) -> np.ndarray:
        if not self.shape:
            return x
        if (size := int(np.prod(self.shape, dtype=object))) != x[0].size:
            raise DataError(
                f"dataset.shape={list(self.shape)} holds {size} values, and a sample of {frame.where} has {x[0].size}"
            )
        return x.reshape(len(x), *self.shape)


def are_images(frame: Frame, name: str) -> bool:
    """Return whether the column holds encoded images."""
    return name in frame.names and images.holds_images(frame.type_of(name))
