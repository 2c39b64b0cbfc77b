"""Read the inputs of a user's tables as arrays: numbers, windows of them, lists, or images."""

from collections.abc import Sequence

import numpy as np

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.messages import Problems
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.options import TableOptions
from fedcohort.errors import DataError

AUTO_UINT8_BYTES = 2_000_000_000  # bytes of float32 above which pixels=auto keeps bytes
PART_NAMES = ("training", "test", "validation")


def read_inputs(
    options: TableOptions, frames: Sequence[Frame], columns: Sequence[str], names: Sequence[str], scale: float
) -> tuple[list[np.ndarray], PixelScale | None]:
    """Return the inputs of each table, float32 [N, ...] or bytes, and the scale of pixels, None for other inputs.

    Args:
        options: window, shape, pixels, missing and standardise.
        frames: the tables, the training rows first.
        columns: columns of numbers; not used if `names` are the inputs.
        names: columns of lists or images; several become the channels of a sample.
        scale: divisor of the inputs.

    Raises:
        DataError: for cells that are no inputs; problems of several tables are raised together.
    """
    window, gaps, problems = options.window or 1, options.missing == "mean", Problems()
    arrays: list[np.ndarray] = []
    for frame in frames:
        with problems.collect():
            arrays.append(_read_lists(frame, names, gaps) if names else _read_windows(frame, columns, window, gaps))
    problems.raise_all()
    shape, train_shape, first_name = list(map(int, options.shape)), arrays[0].shape[1:], [*names, *columns][0]
    if shape and (size := int(np.prod(shape, dtype=object))) != (n_values := arrays[0][0].size):
        problem = f"holds {size} values, and a sample of {frames[0].where} has {n_values}"
        raise DataError(f"dataset.shape={shape} {problem}")
    is_image = bool(names) and arrays[0].dtype == np.uint8 and len(shape or train_shape) == 3
    pixels = None
    if is_image and scale == 255 and not options.standardises:
        n_channels = (shape or train_shape)[0]
        pixels = PixelScale((0.0,) * n_channels, (1.0,) * n_channels)
    elif options.pixels == "uint8":
        problem = f": dataset.pixels=uint8 is for images, {arrays[0].dtype} {list(train_shape)} are none"
        raise frames[0].column_error(first_name, problem)
    is_large = 4 * sum(x.size for x in arrays) > AUTO_UINT8_BYTES
    keeps_bytes = pixels is not None and (options.pixels == "uint8" or (options.pixels == "auto" and is_large))
    for i, (frame, x) in enumerate(zip(frames, arrays, strict=True)):
        if x.shape[1:] != train_shape:
            problem = f": a sample has the shape {list(x.shape[1:])}, and one of {frames[0].where} {list(train_shape)}"
            raise frame.column_error(first_name, problem)
        if not keeps_bytes:
            x = x.astype(np.float32, copy=False)  # reading has made an array that nothing else uses
            with np.errstate(all="ignore"):
                x /= (divisor := np.float32(scale))
            if np.isinf(divisor) or np.isinf(x).any() or (np.isnan(x).any() and not gaps):
                raise DataError(f"dataset.scale={scale} leaves nothing that float32 can hold of {frame.where}")
        elif x.dtype != np.uint8:
            problem = f": holds {x.dtype}, not bytes as the training part: set dataset.pixels=float32"
            raise frame.column_error(first_name, problem)
        arrays[i] = x.reshape(len(x), *shape) if shape else x
    return arrays, pixels


def _read_windows(frame: Frame, columns: Sequence[str], window: int, gaps: bool) -> np.ndarray:
    """Return columns of numbers, [N, columns], or windows of consecutive rows, [N, columns, window]."""
    x = frame.numbers(columns, gaps=gaps)
    return x if window == 1 else np.ascontiguousarray(x.reshape(-1, window, x.shape[1]).transpose(0, 2, 1))


def _read_lists(frame: Frame, list_columns: Sequence[str], gaps: bool) -> np.ndarray:
    """Return columns of lists or images as they are stored, [N, ...]; several columns as channels."""
    channels = []
    for name in list_columns:
        channels.append(frame.arrays(name, gaps=gaps))
        if channels[-1].shape != channels[0].shape:
            problem_text = f": {name!r} holds {channels[-1].shape[1:]} and {list_columns[0]!r} {channels[0].shape[1:]}"
            raise frame.column_error(name, f"{problem_text}: columns of lists need one length")
    return channels[0] if len(channels) == 1 else np.stack(channels, axis=1)


def fill_gaps(train: Frame, names: Sequence[str], x: Sequence[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Return the inputs with the means of the training rows where they are NaN, and a note on how many these are.

    Args:
        train: the training table.
        names: the columns of numbers, or of lists.
        x: the inputs of each of PARTS that there is.

    Raises:
        DataError: if a feature has no number in any training row.
    """
    is_gap = np.isnan(x[0])
    if (all_gaps := is_gap.all(0).reshape(-1)).any():
        position = int(all_gaps.argmax())
        name = names[position if len(names) == all_gaps.size else position * len(names) // all_gaps.size]
        raise train.column_error(name, f": column {name!r} has no number in any training row, so that it has no mean")
    mean = np.nanmean(x[0], axis=0, dtype=np.float64).astype(np.float32)
    counts = [int(np.isnan(part_x).sum()) for part_x in x]
    note = ""
    if any(counts):
        count_texts = [f"{n} {part_name}" for n, part_name in zip(counts, PART_NAMES, strict=False)]
        note = f"{', '.join(count_texts[:-1])} and {count_texts[-1]} cells filled with the means of the training rows"
    return [np.where(np.isnan(part_x), mean, part_x) for part_x in x], note


def standardise(x: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Standardise all parts in place, and return each feature's mean and deviation over the training rows.

    Statistics are those of the training rows, including those that the server takes for validation. The deviation of a
    feature that never varies is 1. x: the inputs of each of PARTS that there is.
    """
    train = x[0]
    std = np.where(train.max(0) > train.min(0), train.std(0, dtype=np.float64), 1.0).astype(np.float32)
    mean = train.mean(0, dtype=np.float64).astype(np.float32)
    for part_x in x:
        part_x -= mean
        part_x /= std
    return mean, std
