"""Load datasets of images of one size: their columns, the names of their classes, and pixels in memory.

Images are encoded (JPEG, PNG, WebP), lists of whole numbers from 0 to 255, or lists of such numbers divided by 255, as
LEAF writes them. Besides the pixels one row group of encoded images is in memory at a time. Labels are numbers from 0
on, or the names of classes. The start-up table states differences from the original's number of images.
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
NO_PIXELS = "not pixels, which are whole numbers from 0 to 255, or such numbers divided by 255"


@dataclass(frozen=True)
class Pictures:
    """A dataset of images.

    Attributes:
        name: the dataset's name, as in dataset=NAME.
        image: possible names of the column of images, of which the first that a table has is taken.
        label: possible names of the column of labels.
        classes: names of the classes, in the order of their numbers.
        fit: shape of an image, and how images of other sizes are changed.
        scale: normalisation of pixels.
        original: images for training and test of the original; None if options change them.
        pool: images and people of the original, where its parts are one pool; None if they are not known.
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
    path: str | None, hub: str | None, columns: Columns | None, pixels: str, *synonyms: Sequence[str]
) -> None:
    """Check the options that all datasets of images have. Raises `OptionError`.

    synonyms: the possible names of each column.
    """
    text("path", path, optional=True)
    text("hub", hub, optional=True)
    check_columns(columns, *synonyms)
    ranges.choice("pixels", pixels, "auto", "float32", "uint8")


def load(pictures: Pictures, frames: Sequence[Frame], pixels: str) -> Raw:
    """Return a training and a test table as a dataset. Raises `DataError`."""
    labels = [labels_of(frame, column_of(frame, *pictures.label), pictures.classes) for frame in frames]
    images = [images_of([frame], pictures.image, pictures.fit) for frame in frames]
    give_back()
    raw = raw_of(pictures, (images[0], labels[0]), (images[1], labels[1]), pixels)
    return replace(raw, revision=frames[0].revision)


def raw_of(
    pictures: Pictures, train: tuple[np.ndarray, Ids], test: tuple[np.ndarray, Ids], pixels: str, *remarks: str
) -> Raw:
    """Return images and labels of both parts as a dataset without clients and attributes.

    Args:
        pictures: the dataset.
        train: images, uint8, and labels of the training part.
        test: images and labels of the test part.
        pixels: "auto", "float32" or "uint8".
        remarks: notes for the start-up table.

    Raises:
        DataError: for images of one class.
    """
    (x, y), (test_x, test_y) = train, test
    keep = pixels == "uint8" or (pixels == "auto" and 4 * (x.nbytes + test_x.nbytes) > LARGE)
    shape = " x ".join(str(length) for length in pictures.fit.shape)
    notes = [f"{shape} pixels{', kept as bytes' if keep else ''}", *remarks, *missing(pictures, y, test_y)]
    if len(present := np.unique(y)) < 2:
        name = pictures.classes[int(present[0])]
        raise DataError(f"dataset={pictures.name}: all training images are of class {name}: there is nothing to learn")
    class_names = pictures.classes if any(word != str(c) for c, word in enumerate(pictures.classes)) else ()
    raw = Raw(
        pictures.name,
        x,
        y,
        test_x,
        test_y,
        len(pictures.classes),
        inputs="; ".join(notes),
        class_names=tuple(class_names),
        single_use=True,
    )
    if keep:
        return replace(raw, scale=pictures.scale)
    scale = pictures.scale
    return replace(raw, train_x=scale.convert(x), test_x=scale.convert(test_x), converted=scale)


def missing(pictures: Pictures, y: Ids, test_y: Ids) -> list[str]:
    """Return notes on the differences to the numbers of images of the original."""
    if pictures.original is None:
        return []
    n, n_test = pictures.original
    return [*difference("training images", len(y), n), *difference("test images", len(test_y), n_test)]


def labels_of(frame: Frame, name: str, classes: Sequence[str]) -> Ids:
    """Return the column's classes, int64 [rows]: numbers as they are, texts by `classes`.

    Raises `DataError` that names the row.
    """
    column = frame.require_full(name)
    if cells.is_text(column.type):
        numbers = {word: c for c, word in enumerate(classes)}
        words = column.to_pylist()
        unknown_row = next((row for row, word in enumerate(words) if word not in numbers), None)
        if unknown_row is not None:
            raise frame.blame(
                name,
                unknown_row,
                f"has label {words[unknown_row]!r}; labels are {list_names(classes)}, or their numbers",
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
    """Return the images of the tables one after the other.

    rows: sorted positions among the rows of all tables, of the images to decode; None for all. Raises `DataError`.
    """
    sizes = [frame.table.num_rows for frame in frames]
    rows = np.arange(sum(sizes)) if rows is None else rows
    what = f"{len(rows):,} images of {' x '.join(map(str, fit.shape))}"
    memory.require_memory(float(len(rows)) * np.prod(fit.shape), what, "use fewer images")
    out, start, done = np.empty((len(rows), *fit.shape), np.uint8), 0, 0
    for frame, size in zip(frames, sizes, strict=True):
        table_rows = rows[(rows >= start) & (rows < start + size)] - start
        if len(table_rows):
            _read(frame, column_of(frame, *names), fit, table_rows, out[done : done + len(table_rows)])
        start, done = start + size, done + len(table_rows)
    return out


def _read(frame: Frame, name: str, fit: Fit, rows: Ids, out: np.ndarray) -> None:
    """Write the images of the sorted `rows` of one table to `out`, row group by row group."""
    start, done, top = 0, 0, _top(frame, name)
    for chunk in frame.chunks(name):
        chunk_rows = rows[(rows >= start) & (rows < start + len(chunk))]
        place = out[done : done + len(chunk_rows)]
        if len(chunk_rows) and holds_images(chunk.type):
            encoded = chunk.field("bytes")
            for i, row in enumerate(chunk_rows.tolist()):
                try:
                    place[i] = fit.decode(row, encoded[row - start].as_py())
                except BadImage as error:
                    raise frame.blame(name, error.row, str(error)) from error
        elif len(chunk_rows):
            all_rows = np.arange(start, start + len(chunk))
            piece = replace(frame, table=pa.table({name: chunk}), rows=all_rows)
            place[:] = _listed(piece, name, fit, top)[chunk_rows - start]
        start, done = start + len(chunk), done + len(chunk_rows)


def _top(frame: Frame, name: str) -> int:
    """Return the value of white in a column of lists: 1 if no number of the column is larger, else 255."""
    for chunk in frame.chunks(name):
        while cells.is_list(chunk.type):
            chunk = chunk.flatten()
        if not cells.is_number(chunk.type) or pa.types.is_integer(chunk.type) or (pc.max(chunk).as_py() or 0) > 1:
            return 255
    return 1


def _listed(frame: Frame, name: str, fit: Fit, top: int) -> np.ndarray:
    """Return lists as images, uint8. top: the value of white."""
    values, (channels, height, width) = frame.arrays(name), fit.shape
    flat, shape = (channels * height * width,), values.shape[1:]
    channels_last = shape == (height, width, channels) and channels > 1
    if shape not in (flat, fit.shape) and not channels_last and not (channels == 1 and shape == (height, width)):
        kind = "grey" if channels == 1 else "RGB"
        what = f": column {name!r} must hold {kind} images of {height} x {width}, it holds {shape}"
        raise frame.error(name, what)
    values = values.transpose(0, 3, 1, 2) if channels_last else values.reshape(-1, *fit.shape)
    if values.dtype == np.uint8:
        return values
    pixels, wrong = pixels_of(values, top)
    if wrong.any():
        raise frame.blame(name, int(wrong.reshape(len(wrong), -1).any(1).argmax()), f"has numbers that are {NO_PIXELS}")
    return pixels


def pixels_of(values: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers as bytes, and which of them are no pixels, bool. top: the value of white, 1 or 255."""
    rounded = np.rint(values * (255 // top))
    wrong = (np.abs(values * (255 // top) - rounded) > NEAR) | (rounded < 0) | (rounded > 255)
    return np.where(wrong, 0, rounded).astype(np.uint8), wrong
