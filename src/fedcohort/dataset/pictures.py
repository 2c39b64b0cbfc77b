"""Data sets of images of one size: where their columns are, what their classes are called, how pixels stand in memory.

Images are encoded (JPEG, PNG, WebP; a row group at a time is held beside the pixels), or lists of whole numbers from 0
to 255, or of such numbers divided by 255, as LEAF writes them. Labels are numbers from 0 on, or the classes' names.
What an original has more or less of than what was found is said in the start-up table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import UInt8

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset import cells
from fedcohort.dataset.base import Raw
from fedcohort.dataset.files import give_back
from fedcohort.dataset.images import BadImage, Fit, holds_images
from fedcohort.dataset.naming import difference, list_names
from fedcohort.dataset.numbering import renumber
from fedcohort.dataset.source import Columns, check_columns, column_of
from fedcohort.dataset.table import Frame, text
from fedcohort.errors import DataError
from fedcohort.host import memory
from fedcohort.types import Ids

LARGE = 2_000_000_000  # bytes of float32 above which pixels=auto keeps bytes
NEAR = 0.01  # how far 255 times a number may be from a whole one
NO_PIXELS = "no pixels: whole numbers from 0 to 255, or such divided by 255, are meant"


@dataclass(frozen=True)
class Pictures:
    """What a data set of images is.

    Attributes:
        name: its word.
        image, label: columns that may hold them; the first one that is there does.
        classes: what they are called, in the order of their numbers.
        fit: shape of an image, and what is done to get it.
        scale: what pixels become.
        original: images for training and for the test that the original has; None where that depends on options.
        pool: images and people that it has, where its parts are one pool; None where nobody knows.
    """

    name: str
    image: Sequence[str]
    label: Sequence[str]
    classes: Sequence[str]
    fit: Fit
    scale: PixelScale
    original: tuple[int, int] | None = None
    pool: tuple[int, int] | None = None


def check_source(
    path: str | None, hub: str | None, columns: Columns | None, pixels: str, *known: Sequence[str]
) -> None:
    """Check the options that all of them have. Raises `OptionError`.

    known: the names that each of the data set's columns goes by.
    """
    text("path", path, optional=True)
    text("hub", hub, optional=True)
    check_columns(columns, *known)
    ranges.choice("pixels", pixels, "auto", "float32", "uint8")


def load(pictures: Pictures, frames: Sequence[Frame], pixels: str) -> Raw:
    """A training and a test table as they are. Raises `DataError`."""
    labels = [labels_of(frame, column_of(frame, *pictures.label), pictures.classes) for frame in frames]
    images = [images_of([frame], pictures.image, pictures.fit) for frame in frames]
    give_back()
    raw = raw_of(pictures, (images[0], labels[0]), (images[1], labels[1]), pixels)
    return replace(raw, revision=frames[0].revision)


def raw_of(
    pictures: Pictures, train: tuple[np.ndarray, Ids], test: tuple[np.ndarray, Ids], pixels: str, *remarks: str
) -> Raw:
    """The images, uint8, and labels of both parts as a data set without owners and attributes.

    pixels: "auto", "float32" or "uint8". remarks: what people are told. Raises `DataError` for images of one class.
    """
    (x, y), (test_x, test_y) = train, test
    keep = pixels == "uint8" or (pixels == "auto" and 4 * (x.nbytes + test_x.nbytes) > LARGE)
    shape = " x ".join(str(length) for length in pictures.fit.shape)
    said = [f"{shape} pixels{', kept as bytes' if keep else ''}", *remarks, *missing(pictures, y, test_y)]
    if len(seen := np.unique(y)) < 2:
        only = pictures.classes[int(seen[0])]
        raise DataError(f"dataset={pictures.name}: all training images are of class {only}: there is nothing to learn")
    named = pictures.classes if any(word != str(c) for c, word in enumerate(pictures.classes)) else ()
    raw = Raw(
        pictures.name,
        x,
        y,
        test_x,
        test_y,
        len(pictures.classes),
        inputs="; ".join(said),
        class_names=tuple(named),
        single_use=True,
    )
    if keep:
        return replace(raw, scale=pictures.scale)
    scale = pictures.scale
    return replace(raw, train_x=scale.convert(x), test_x=scale.convert(test_x), converted=scale)


def missing(pictures: Pictures, y: Ids, test_y: Ids) -> list[str]:
    """Say what the original has that isn't here, and the other way round."""
    if pictures.original is None:
        return []
    n, n_test = pictures.original
    return [*difference("training images", len(y), n), *difference("test images", len(test_y), n_test)]


def labels_of(frame: Frame, name: str, classes: Sequence[str]) -> Ids:
    """The column's classes, int64 [rows]: numbers as they are, texts by `classes`. Raises `DataError` by row."""
    column = frame.require_full(name)
    if cells.is_text(column.type):
        numbers = {word: c for c, word in enumerate(classes)}
        words = column.to_pylist()
        odd = next((row for row, word in enumerate(words) if word not in numbers), None)
        if odd is not None:
            raise frame.blame(
                name, odd, f"has label {words[odd]!r}; labels are {list_names(classes)}, or their numbers"
            )
        return np.array([numbers[word] for word in words], dtype=np.int64)
    if cells.is_number(column.type):
        values = cells.numbers(column)
        wrong = ~np.isfinite(values) | (values != np.floor(values)) | (values < 0) | (values >= len(classes))
        if wrong.any():
            row = int(wrong.argmax())
            what = f"has label {column[row].as_py()}; labels must be whole, at least 0 and at most {len(classes) - 1}"
            raise frame.blame(name, row, what)
        return renumber(frame, name, values.astype(np.int64), classes)
    raise frame.error(name, f": column {name!r} must hold labels, numbers or texts, it holds {column.type}")


def images_of(
    frames: Sequence[Frame], names: Sequence[str], fit: Fit, rows: Ids | None = None
) -> UInt8[np.ndarray, "n c h w"]:
    """The images of the tables one after the other.

    rows: positions among all of them, sorted, which alone are decoded; None for all. Raises `DataError`.
    """
    sizes = [frame.table.num_rows for frame in frames]
    rows = np.arange(sum(sizes)) if rows is None else rows
    what = f"{len(rows):,} images of {' x '.join(map(str, fit.shape))}"
    memory.require(float(len(rows)) * np.prod(fit.shape), what, "use fewer images")
    out, start, done = np.empty((len(rows), *fit.shape), np.uint8), 0, 0
    for frame, size in zip(frames, sizes, strict=True):
        own = rows[(rows >= start) & (rows < start + size)] - start
        if len(own):
            _read(frame, column_of(frame, *names), fit, own, out[done : done + len(own)])
        start, done = start + size, done + len(own)
    return out


def _read(frame: Frame, name: str, fit: Fit, rows: Ids, out: np.ndarray) -> None:
    """Put the images of the sorted `rows` of one table into `out`, row group by row group."""
    start, done, top = 0, 0, _top(frame, name)
    for chunk in frame.chunks(name):
        own = rows[(rows >= start) & (rows < start + len(chunk))]
        place = out[done : done + len(own)]
        if len(own) and holds_images(chunk.type):
            encoded = chunk.field("bytes")
            for i, row in enumerate(own.tolist()):
                try:
                    place[i] = fit.decode(row, encoded[row - start].as_py())
                except BadImage as error:
                    raise frame.blame(name, error.row, str(error)) from error
        elif len(own):
            here = np.arange(start, start + len(chunk))
            place[:] = _listed(replace(frame, table=pa.table({name: chunk}), rows=here), name, fit, top)[own - start]
        start, done = start + len(chunk), done + len(own)


def _top(frame: Frame, name: str) -> int:
    """The white of a column of lists: 1 where all of it are shares of 255, else 255; dark rows alone don't tell."""
    for chunk in frame.chunks(name):
        while cells.is_list(chunk.type):
            chunk = chunk.flatten()
        if not cells.is_number(chunk.type) or pa.types.is_integer(chunk.type) or (pc.max(chunk).as_py() or 0) > 1:
            return 255
    return 1


def _listed(frame: Frame, name: str, fit: Fit, top: int) -> np.ndarray:
    """Lists as images, uint8. top: what white is in them."""
    values, (channels, height, width) = frame.arrays(name), fit.shape
    flat, found = (channels * height * width,), values.shape[1:]
    last = found == (height, width, channels) and channels > 1
    if found not in (flat, fit.shape) and not last and not (channels == 1 and found == (height, width)):
        kind = "grey" if channels == 1 else "RGB"
        what = f": column {name!r} must hold {kind} images of {height} x {width}, it holds {found}"
        raise frame.error(name, what)
    values = values.transpose(0, 3, 1, 2) if last else values.reshape(-1, *fit.shape)
    if values.dtype == np.uint8:
        return values
    pixels, wrong = pixels_of(values, top)
    if wrong.any():
        raise frame.blame(name, int(wrong.reshape(len(wrong), -1).any(1).argmax()), f"has numbers that are {NO_PIXELS}")
    return pixels


def pixels_of(values: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers as bytes, and which of them are no pixels, bool. top: what white is, 1 or 255."""
    whole = np.rint(values * (255 // top))
    wrong = (np.abs(values * (255 // top) - whole) > NEAR) | (whole < 0) | (whole > 255)
    return np.where(wrong, 0, whole).astype(np.uint8), wrong
