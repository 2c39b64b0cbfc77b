"""Read the inputs of a user's tables as arrays: numbers, windows of them, lists, or images."""

from collections.abc import Sequence

import numpy as np

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.messages import ErrorList
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.options import TableOptions
from fedcohort.errors import DataError

MAX_AUTO_BYTES = 2_000_000_000  # bytes of float32 above which pixels=auto keeps bytes
SPLIT_NAMES = ("training", "test", "validation")


def read_inputs(
    options: TableOptions, frames: Sequence[Frame], columns: Sequence[str], lists: Sequence[str], input_divisor: float
) -> tuple[list[np.ndarray], PixelScale | None]:
    """Return the inputs of each table, float32 or uint8 [N, ...], and how pixels are normalised; None without images.

    Args:
        options: options of the table: window, shape, pixels, missing and standardise.
        frames: the tables, the training rows first.
        columns: columns of numbers; not used if `lists` are the inputs.
        lists: columns of lists or images; several columns become the channels of a sample.
        input_divisor: divisor of the inputs.

    Raises:
        DataError: cells are no inputs; problems of several tables are raised together.
    """
    allow_missing = options.missing == "mean"
    input_arrays = _read_unscaled_inputs(frames, columns, lists, options.window or 1, allow_missing)
    shape, train_shape, column_name = list(map(int, options.shape)), input_arrays[0].shape[1:], [*lists, *columns][0]
    if shape and (sample_size := int(np.prod(shape, dtype=object))) != (n := input_arrays[0][0].size):
        raise DataError(f"dataset.shape={shape} must have {n} values, as {frames[0].origin} has, but has {sample_size}")
    is_image_input = bool(lists) and input_arrays[0].dtype == np.uint8 and len(shape or train_shape) == 3
    pixel_scale = None
    if is_image_input and input_divisor == 255 and not options.standardises_inputs:
        n_channels = (shape or train_shape)[0]
        pixel_scale = PixelScale((0.0,) * n_channels, (1.0,) * n_channels)
    elif options.pixels == "uint8":
        problem_text = (
            f": dataset.pixels=uint8 needs images, but a sample is {input_arrays[0].dtype} {list(train_shape)}"
        )
        raise frames[0].column_error(column_name, f"{problem_text}: set dataset.pixels=auto")
    is_float32_over_2gb = 4 * sum(x.size for x in input_arrays) > MAX_AUTO_BYTES
    prefers_uint8 = options.pixels == "uint8" or (options.pixels == "auto" and is_float32_over_2gb)
    keeps_uint8_pixels = pixel_scale is not None and prefers_uint8
    for i, (frame, x) in enumerate(zip(frames, input_arrays, strict=True)):
        if x.shape[1:] != train_shape:
            problem_text = (
                f": a sample has the shape {list(x.shape[1:])}, but one of {frames[0].origin} {list(train_shape)}"
            )
            raise frame.column_error(column_name, f"{problem_text}: make them equal")
        if not keeps_uint8_pixels:
            x = x.astype(np.float32, copy=False)  # reading has made an array that nothing else uses
            with np.errstate(all="ignore"):
                x /= (float32_divisor := np.float32(input_divisor))
            if np.isinf(float32_divisor) or np.isinf(x).any() or (np.isnan(x).any() and not allow_missing):
                problem_text = f"makes values of {frame.origin} that float32 can't hold: choose another scale"
                raise DataError(f"dataset.scale={input_divisor} {problem_text}")
        elif x.dtype != np.uint8:
            problem_text = f" holds {x.dtype}, but the training part bytes: set dataset.pixels=float32"
            raise frame.column_error(column_name, problem_text)
        input_arrays[i] = x.reshape(len(x), *shape) if shape else x
    return input_arrays, pixel_scale


def _read_unscaled_inputs(
    frames: Sequence[Frame], columns: Sequence[str], lists: Sequence[str], window: int, allow_missing: bool
) -> list[np.ndarray]:
    """Return the inputs of each table as they are stored, without scaling.

    Columns of numbers are [N, columns], and windows of consecutive rows of them [N, columns, window].

    Args:
        frames: the tables, the training rows first.
        columns: columns of numbers; not used if `lists` are the inputs.
        lists: columns of lists or images.
        window: number of rows in a sample; 1 for single rows.
        allow_missing: whether a missing number becomes NaN; otherwise it is an error.

    Raises:
        DataError: cells are no inputs; problems of several tables are raised together.
    """
    input_arrays, table_problems = list[np.ndarray](), ErrorList()
    for frame in frames:
        with table_problems.collect_data_errors():
            if lists:
                input_arrays.append(_read_list_columns(frame, lists, allow_missing))
                continue
            x = frame.read_matrix(columns, allow_missing=allow_missing)
            if window > 1:
                x = np.ascontiguousarray(x.reshape(-1, window, x.shape[1]).transpose(0, 2, 1))
            input_arrays.append(x)
    table_problems.raise_collected_errors()
    return input_arrays


def _read_list_columns(frame: Frame, list_columns: Sequence[str], allow_missing: bool) -> np.ndarray:
    """Return columns of lists or images, [N, ...]; several columns become channels, [N, columns, ...].

    Args:
        frame: table that has the columns.
        list_columns: names of the columns.
        allow_missing: whether a missing number becomes NaN; otherwise it is an error.
    """
    channel_arrays = []
    for name in list_columns:
        channel_arrays.append(frame.read_arrays(name, allow_missing=allow_missing))
        if channel_arrays[-1].shape != channel_arrays[0].shape:
            raise frame.column_error(
                name,
                f": {name!r} holds {channel_arrays[-1].shape[1:]} and {list_columns[0]!r} "
                f"{channel_arrays[0].shape[1:]}: all columns of lists must have the same length",
            )
    return channel_arrays[0] if len(channel_arrays) == 1 else np.stack(channel_arrays, axis=1)


def fill_nans(frame: Frame, columns: Sequence[str], input_parts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Replace NaN by the feature's mean over the training rows; return the inputs and a note on the filled cells.

    Args:
        frame: the training table, for messages.
        columns: names of the columns of numbers, or of lists.
        input_parts: inputs [N, ...] of the training part, and of the test and validation parts if they exist.

    Raises:
        DataError: a feature has no number in any training row.
    """
    is_missing_number = np.isnan(input_parts[0])
    if (is_missing_feature := is_missing_number.all(0).reshape(-1)).any():
        feature_index = int(is_missing_feature.argmax())
        column = columns[
            feature_index
            if len(columns) == is_missing_feature.size
            else feature_index * len(columns) // is_missing_feature.size
        ]
        raise frame.column_error(
            column, f": column {column!r} has no number in any training row: no mean fills its gaps, leave it out"
        )
    feature_means = np.nanmean(input_parts[0], axis=0, dtype=np.float64).astype(np.float32)
    missing_counts = [int(np.isnan(part_inputs).sum()) for part_inputs in input_parts]
    fill_note = ""
    if any(missing_counts):
        filled_count_texts = [
            f"{missing_count} {split_name}"
            for missing_count, split_name in zip(missing_counts, SPLIT_NAMES, strict=False)
        ]
        count_text = ", ".join(filled_count_texts[:-1]) + f" and {filled_count_texts[-1]}"
        fill_note = f"{count_text} cells filled with the means of the training rows"
    return [np.where(np.isnan(part_inputs), feature_means, part_inputs) for part_inputs in input_parts], fill_note


def standardise_inputs(input_parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Standardise all parts in place; return each feature's mean and deviation over the training rows, float32 [...].

    The training rows include those that the server takes for validation. A feature that never varies has deviation 1.

    Args:
        input_parts: inputs [N, ...] of the training part, and of the test and validation parts if they exist.
    """
    train_x = input_parts[0]
    feature_stds = np.where(train_x.max(0) > train_x.min(0), train_x.std(0, dtype=np.float64), 1.0).astype(np.float32)
    feature_means = train_x.mean(0, dtype=np.float64).astype(np.float32)
    for part_inputs in input_parts:
        part_inputs -= feature_means
        part_inputs /= feature_stds
    return feature_means, feature_stds
