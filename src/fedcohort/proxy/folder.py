"""A user's public inputs, without labels: a folder with train.parquet or train.csv.

    python train.py agg=feddf dataset=folder dataset.path=my_data proxy=folder proxy.path=my_public_data

Samples are reshaped to the run's; if the columns have the same names, they are put into the order of the run's. They
must be other samples than the clients' (`proxy.base.check_proxy_inputs`). They are converted as the run's inputs:

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
from fedcohort.dataset.arrow_columns import is_row_index_column
from fedcohort.dataset.files import read_part_table
from fedcohort.dataset.image_dataset import NOT_PIXELS_TEXT, convert_to_pixels, read_images
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.messages import join_names
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.proxy.base import Proxy, check_proxy_inputs, draw_inputs


@dataclass(frozen=True)
class Folder(Proxy):
    """A proxy set that reads inputs from a user's folder.

    Attributes:
        path: path of the folder.
        features: name of the column of lists or images; None to use all columns of numbers except `leave_out`.
        leave_out: names of columns of numbers that are not inputs.
        scale: divisor of the inputs; for images 1 or 255, which have the same effect.
        n: number of inputs to draw; None for all.
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
        input_table = read_part_table(self.path, "train", "proxy.path")
        if federation.scale is not None:
            inputs = self._read_pixels(input_table, federation)
        elif federation.converted_scale is not None:
            inputs = federation.converted_scale.convert(self._read_pixels(input_table, federation))
        else:
            inputs = self._read_numbers(input_table, federation)
        checked_inputs = check_proxy_inputs(
            torch.from_numpy(inputs), f"proxy=folder ({input_table.origin})", federation
        )
        return draw_inputs(checked_inputs, self.n, "its rows", seed)

    def _read_numbers(self, table: Frame, federation: Federation) -> np.ndarray:
        """Return the inputs from `table`, float32 [n, *shape of a sample], for a run whose inputs are not pixels."""
        column_names = self._input_columns(table, federation)
        table_values = table.read_matrix(column_names) if self.features is None else table.read_arrays(self.features)
        inputs: np.ndarray = _reshape_to_samples(table_values, column_names, table, federation).astype(np.float32)
        inputs = inputs / np.float32(self.scale)
        if federation.feature_moments is not None:
            feature_mean, feature_deviation = federation.feature_moments
            inputs = (inputs - feature_mean) / feature_deviation
        return inputs

    def _read_pixels(self, table: Frame, federation: Federation) -> np.ndarray:
        """Return the images from `table` as uint8 [n, channels, height, width], in the format of the run's images.

        Raises `OptionError` if `scale` is neither 1 nor 255, `DataError` for numbers that are no pixels.
        """
        if self.scale not in (1, 255):
            raise ranges.range_error(
                "proxy.scale", "1 or 255, which have the same effect if the run's inputs are images", self.scale
            )
        channels, height, width = federation.server_test.x.shape[1:]
        if self.features is not None:
            feature_column = self.features
            table = replace(
                table,
                option_by_column={feature_column: "proxy.features"},
                column_renames={feature_column: feature_column},
            )
            return read_images([table], [feature_column], ImageFormat((channels, height, width)))
        column_names = self._input_columns(table, federation)
        table_values = _reshape_to_samples(table.read_matrix(column_names), column_names, table, federation)
        pixels, is_invalid_pixel = convert_to_pixels(table_values, 255 if table_values.max() > 1 else 1)
        if is_invalid_pixel.any():
            invalid_row, invalid_column = np.argwhere(is_invalid_pixel.reshape(len(is_invalid_pixel), -1))[0].tolist()
            invalid_number = table_values[invalid_row].flat[invalid_column]
            raise table.cell_error(
                column_names[invalid_column],
                invalid_row,
                f"holds {invalid_number:g}, but the run's inputs are images: {NOT_PIXELS_TEXT}",
            )
        return pixels

    def _input_columns(self, table: Frame, federation: Federation) -> list[str]:
        """Return the names of the input columns of `table`, in the order of the run's columns if the names are equal.

        `federation` holds the data of the run.
        """
        if self.features is not None:
            return [self.features]
        column_names = [name for name in table.names if name not in self.leave_out and table.is_number_column(name)]
        column_names = [name for name in column_names if not is_row_index_column(table.table, name)]
        return list(federation.columns) if sorted(column_names) == sorted(federation.columns) else column_names


def _reshape_to_samples(
    inputs: np.ndarray, column_names: Sequence[str], table: Frame, federation: Federation
) -> np.ndarray:
    """Return `inputs` [n, ...] in the shape of the run's samples; raise `DataError` if the numbers per sample differ.

    `column_names` and `table` are the source of the inputs, for the message; `federation` holds the data of the run.
    """
    sample_shape = tuple(federation.server_test.x.shape[1:])
    if prod(inputs.shape[1:]) != prod(sample_shape):
        raise DataError(
            f"proxy.path: a sample of {table.origin} has {prod(inputs.shape[1:])} numbers "
            f"({join_names(column_names)}), but one of dataset={federation.name} has {prod(sample_shape)}; "
            "proxy.leave_out=[id,label] leaves columns out"
        )
    return inputs.reshape(len(inputs), *sample_shape)
