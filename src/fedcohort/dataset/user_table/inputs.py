"""Read the inputs of a user's tables as arrays: numbers, windows of them, lists, or images."""

from collections.abc import Sequence

import numpy as np

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.messages import Problems
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.options import TableOptions
from fedcohort.errors import DataError

LARGE = 2_000_000_000  # bytes of float32 above which pixels=auto keeps bytes
PARTS = ("training", "test", "validation")


def read_inputs(
    options: TableOptions, frames: Sequence[Frame], columns: Sequence[str], lists: Sequence[str], scale: float
) -> tuple[list[np.ndarray], PixelScale | None]:
    """Return the inputs of each table, float32 [N, ...] or bytes, and the scale of pixels, None for other inputs.

    Args:
        options: window, shape, pixels, missing and standardise.
        frames: the tables, the training rows first.
        columns: columns of numbers; not used if `lists` are the inputs.
        lists: columns of lists or images; several become the channels of a sample.
        scale: divisor of the inputs.

    Raises:
        DataError: for cells that are no inputs; problems of several tables are raised together.
    """
    window, gaps, problems = options.window or 1, options.missing == "mean", Problems()
    n_samples = sum(frame.table.num_rows for frame in frames) // window
    arrays: list[np.ndarray] = []
    pixels, keeps_bytes = None, False
    for frame in frames:
        with problems.collect():
            x = _read_lists(frame, lists, gaps) if lists else _read_windows(frame, columns, window, gaps)
            if frame is frames[0]:
                pixels = _pixel_scale(options, x, frame, lists, scale)
                is_large = 4 * n_samples * x[0].size > LARGE
                keeps_bytes = pixels is not None and options.pixels in ("uint8", *(["auto"] if is_large else []))
            arrays.append(x if keeps_bytes and x.dtype == np.uint8 else _divide(x, frame, lists, scale, keeps_bytes))
    problems.raise_all()
    for frame, x in zip(frames, arrays, strict=True):
        if x.shape[1:] != arrays[0].shape[1:]:
            shape, first_shape = list(x.shape[1:]), list(arrays[0].shape[1:])
            what = f": a sample has the shape {shape}, and one of {frames[0].where} {first_shape}"
            raise frame.column_error([*lists, *columns][0], what)
        if np.isnan(x).any() and not gaps:
            raise _not_finite(frame, scale)
    if not options.shape:
        return arrays, pixels
    shape = [int(length) for length in options.shape]
    if (size := int(np.prod(shape, dtype=object))) != arrays[0][0].size:
        raise DataError(
            f"dataset.shape={shape} holds {size} values, and a sample of {frames[0].where} has {arrays[0][0].size}"
        )
    return [x.reshape(len(x), *shape) for x in arrays], pixels


def _read_windows(frame: Frame, columns: Sequence[str], window: int, gaps: bool) -> np.ndarray:
    """Return columns of numbers, [N, columns], or windows of consecutive rows, [N, columns, window]."""
    x = frame.numbers(columns, gaps=gaps)
    return x if window == 1 else np.ascontiguousarray(x.reshape(-1, window, x.shape[1]).transpose(0, 2, 1))


def _read_lists(frame: Frame, lists: Sequence[str], gaps: bool) -> np.ndarray:
    """Return columns of lists or images as they are stored, [N, ...]; several columns as channels."""
    channels = []
    for name in lists:
        channels.append(frame.arrays(name, gaps=gaps))
        if channels[-1].shape != channels[0].shape:
            what = f": {name!r} holds {channels[-1].shape[1:]} and {lists[0]!r} {channels[0].shape[1:]}"
            raise frame.column_error(name, f"{what}: columns of lists need one length")
    return channels[0] if len(channels) == 1 else np.stack(channels, axis=1)


def _pixel_scale(
    options: TableOptions, x: np.ndarray, train: Frame, lists: Sequence[str], scale: float
) -> PixelScale | None:
    """Return how pixels are scaled, None if the inputs are no images. Raises `DataError` for pixels=uint8 then."""
    shape = tuple(options.shape) or x.shape[1:]
    divides_bytes = bool(lists) and scale == 255 and not options.standardises
    if x.dtype == np.uint8 and len(shape) == 3 and divides_bytes:
        return PixelScale((0.0,) * int(shape[0]), (1.0,) * int(shape[0]))
    if options.pixels == "uint8":
        what = f": dataset.pixels=uint8 is for images, {x.dtype} {list(shape)} are none"
        raise train.column_error(lists[0], what)
    return None


def _divide(x: np.ndarray, frame: Frame, lists: Sequence[str], scale: float, keeps_bytes: bool) -> np.ndarray:
    """Return float32 inputs divided by `scale`. keeps_bytes: whether the inputs must be bytes, which these are not."""
    if keeps_bytes:
        what = f": holds {x.dtype}, not bytes as the training part: say dataset.pixels=float32"
        raise frame.column_error(lists[0], what)
    x = x.astype(np.float32, copy=False)  # reading has made an array that nothing else uses
    with np.errstate(all="ignore"):
        divisor = np.float32(scale)
        x /= divisor
    if np.isinf(divisor) or np.isinf(x).any():
        raise _not_finite(frame, scale)
    return x


def _not_finite(frame: Frame, scale: float) -> DataError:
    return DataError(f"dataset.scale={scale} leaves nothing that float32 can hold of {frame.where}")


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
        raise train.column_error(name, f": column {name!r} has no number in any training row to take the mean of")
    mean = np.nanmean(x[0], axis=0, dtype=np.float64).astype(np.float32)
    counts = [int(np.isnan(part_x).sum()) for part_x in x]
    note = ""
    if any(counts):
        count_texts = [f"{n} {part}" for n, part in zip(counts, PARTS, strict=False)]
        note = f"{', '.join(count_texts[:-1])} and {count_texts[-1]} cells filled with the means of the training rows"
    return [np.where(np.isnan(part_x), mean, part_x) for part_x in x], note


def standardise(x: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Standardise all parts in place, and return each feature's mean and deviation over the training rows.

    Statistics are those of the training rows, including those that the server takes for validation. The deviation of a
    feature that never varies is 1. x: the inputs of each of PARTS that there is.
    """
    train = x[0]
    sd = np.where(train.max(0) > train.min(0), train.std(0, dtype=np.float64), 1.0).astype(np.float32)
    mean = train.mean(0, dtype=np.float64).astype(np.float32)
    for part_x in x:
        part_x -= mean
        part_x /= sd
    return mean, sd
