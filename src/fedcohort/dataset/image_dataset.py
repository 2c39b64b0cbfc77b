"""Datasets of images of one size: their columns, their classes, and pixels in memory.

Images are encoded (JPEG, PNG, WebP), lists of whole numbers from 0 to 255, or lists of such numbers divided by 255, as
LEAF writes them. Besides the pixels one row group of encoded images is in memory at a time. Labels are numbers from 0
on, or the names of classes. The start-up table states differences from the original's number of images.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import UInt8

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset import arrow_columns
from fedcohort.dataset.base import Raw
from fedcohort.dataset.files import release_unused_memory
from fedcohort.dataset.images import ImageFormat, decode_image_cells, is_image_type
from fedcohort.dataset.labels import read_class_column
from fedcohort.dataset.messages import note_count_difference
from fedcohort.dataset.source import TableDataset, find_column
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.host import memory
from fedcohort.types import Ids

MAX_AUTO_BYTES = 2_000_000_000  # bytes of float32 above which pixels=auto keeps bytes
PIXEL_TOLERANCE = 0.01  # how far 255 times a number may be from a whole one
NOT_PIXELS_TEXT = "not pixels, which are whole numbers from 0 to 255, or such numbers divided by 255"


@dataclass(frozen=True)
class ImageTableSpec:
    """Columns, classes and images of a dataset.

    Attributes:
        name: name of the dataset, as in dataset=NAME.
        image_columns: possible names of the column of images; the first one that a table has is read.
        label_columns: possible names of the column of labels.
        classes: names of the classes, in the order of their numbers.
        image_format: shape of an image, and conversion of images of other sizes.
        pixel_scale: normalisation of pixels.
        original_image_counts: numbers of training and test images of the original dataset; None if options change them.
        original_pool_counts: numbers of images and people of the original, if its parts are pooled and divided again.
    """

    name: str
    image_columns: Sequence[str]
    label_columns: Sequence[str]
    classes: Sequence[str]
    image_format: ImageFormat
    pixel_scale: PixelScale
    original_image_counts: tuple[int, int] | None = None
    original_pool_counts: tuple[int, int] = (0, 0)

    def read_labels(self, frame: Frame) -> Ids:
        """Return the class of each row of the table `frame`, int64 [rows].

        Raises `DataError` if the column of labels is missing, or a label is no class.
        """
        return read_class_column(frame, find_column(frame, *self.label_columns), self.classes)

    def read_images(self, frames: Sequence[Frame], row_ids: Ids | None = None) -> UInt8[np.ndarray, "n c h w"]:
        """Return the images in the tables `frames`, one table after the other, as uint8 [n, channels, height, width].

        If `row_ids` is set, only the images at these sorted positions among the rows of all tables are read. Raises
        `DataError` if a cell is no image, and `OptionError` if the images need more memory than is available.
        """
        return read_images(frames, self.image_columns, self.image_format, row_ids)

    def load(self, frames: Sequence[Frame], pixels: str) -> Raw:
        """Return the training table and the test table in `frames` as a dataset without clients and attributes.

        `pixels` is the type of pixels in memory, as in `make_raw_data`. Raises `DataError` for a bad image or label.
        """
        labels_by_part = [self.read_labels(frame) for frame in frames]
        images_by_part = [self.read_images([frame]) for frame in frames]
        release_unused_memory()
        raw_data = self.make_raw_data(
            (images_by_part[0], labels_by_part[0]), (images_by_part[1], labels_by_part[1]), pixels
        )
        return replace(raw_data, revision=frames[0].revision)

    def make_raw_data(
        self, train_part: tuple[np.ndarray, Ids], test_part: tuple[np.ndarray, Ids], pixels: str, *extra_notes: str
    ) -> Raw:
        """Return images and labels of both parts as a dataset without clients and attributes.

        Args:
            train_part: images, uint8 [n, channels, height, width], and labels, int64 [n], of the training part.
            test_part: images and labels of the test part, as in `train_part`.
            pixels: type of pixels in memory: "float32", "uint8", or "auto", uint8 if float32 takes more than 2 GB.
            extra_notes: further notes for the start-up table.

        Raises:
            DataError: all training images are of one class.
        """
        (x, y), (test_x, test_y) = train_part, test_part
        keeps_uint8_pixels = pixels == "uint8" or (pixels == "auto" and 4 * (x.nbytes + test_x.nbytes) > MAX_AUTO_BYTES)
        image_shape_text = " x ".join(str(axis_size) for axis_size in self.image_format.shape)
        image_notes = [f"{image_shape_text} pixels{', kept as bytes' if keeps_uint8_pixels else ''}", *extra_notes]
        if self.original_image_counts is not None:
            image_notes += note_count_difference("training images", len(y), self.original_image_counts[0])
            image_notes += note_count_difference("test images", len(test_y), self.original_image_counts[1])
        if len(present_classes := np.unique(y)) < 2:
            problem_text = f"all training images are of class {self.classes[int(present_classes[0])]}"
            raise DataError(f"dataset={self.name}: {problem_text}: there is nothing to learn, check the data")
        has_class_names = any(class_name != str(c) for c, class_name in enumerate(self.classes))
        return Raw(
            self.name,
            *(x if keeps_uint8_pixels else self.pixel_scale.convert(x), y),
            *(test_x if keeps_uint8_pixels else self.pixel_scale.convert(test_x), test_y),
            n_classes=len(self.classes),
            inputs="; ".join(image_notes),
            class_names=tuple(self.classes) if has_class_names else (),
            scale=self.pixel_scale if keeps_uint8_pixels else None,
            converted_scale=None if keeps_uint8_pixels else self.pixel_scale,
            single_use=True,
        )


@dataclass(frozen=True)
class ImageTables(TableDataset):
    """A dataset of images with the options that all such datasets have.

    Attributes:
        pixels: type of pixels in memory: "float32", "uint8" (converted batch by batch), or "auto", which is uint8 if
            float32 would take more than 2 GB.
    """

    pixels: str

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("pixels", self.pixels, "auto", "float32", "uint8")


class SmallImages(ImageTables):
    """A dataset of images with a training and a test table and without clients, which `table_spec` describes."""

    table_spec: ClassVar[ImageTableSpec]

    def __init_subclass__(cls) -> None:
        table_spec = cls.table_spec
        cls.name, cls.column_names = table_spec.name, (table_spec.image_columns, table_spec.label_columns)

    def load(self, seed: int) -> Raw:
        """Return images [N, channels, height, width] and their classes [N]; `seed` has no effect.

        Raises `DataError` if a table is missing, damaged or invalid.
        """
        return self.table_spec.load(self.read_frames(), self.pixels)


def read_images(
    frames: Sequence[Frame], column_names: Sequence[str], image_format: ImageFormat, row_ids: Ids | None = None
) -> UInt8[np.ndarray, "n c h w"]:
    """Return the images in a column of tables, one table after the other, as uint8 [n, channels, height, width].

    Args:
        frames: the tables.
        column_names: possible names of the column of images.
        image_format: the format of the result.
        row_ids: sorted positions of the images to read, among the rows of all tables; None for all rows.

    Raises:
        DataError: a cell is no image; the message names the row.
        OptionError: the images need more memory than is available.
    """
    row_counts = [frame.table.num_rows for frame in frames]
    row_ids = np.arange(sum(row_counts)) if row_ids is None else row_ids
    images_description = f"{len(row_ids):,} images of {' x '.join(map(str, image_format.shape))}"
    memory.require_memory(float(len(row_ids)) * np.prod(image_format.shape), images_description, "use fewer images")
    pixels = np.empty((len(row_ids), *image_format.shape), np.uint8)
    frame_start = 0
    for frame, n_rows in zip(frames, row_counts, strict=True):
        name = find_column(frame, *column_names)
        white_pixel = _find_white_value(frame, name)
        for chunk_start, chunk in frame.read_chunks(name):
            image_start, image_stop = np.searchsorted(row_ids, frame_start + chunk_start + np.array([0, len(chunk)]))
            chunk_rows = row_ids[image_start:image_stop] - frame_start - chunk_start
            if len(chunk_rows) and is_image_type(chunk.type):
                decoded_images = decode_image_cells(frame, name, chunk, chunk_start, chunk_rows.tolist(), image_format)
                for i, image in enumerate(decoded_images, image_start):
                    pixels[i] = image
            elif len(chunk_rows):
                chunk_row_ids = np.arange(chunk_start, chunk_start + len(chunk))
                chunk_frame = replace(frame, table=pa.table({name: chunk}), row_ids=chunk_row_ids)
                pixels[image_start:image_stop] = _read_pixels(chunk_frame, name, image_format, white_pixel)[chunk_rows]
        frame_start += n_rows
    return pixels


def _find_white_value(frame: Frame, name: str) -> int:
    """Return the number that stands for white in the column `name`: 1 if its lists hold fractions up to 1, else 255."""
    for _, chunk in frame.read_chunks(name):
        chunk = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        while arrow_columns.is_list_type(chunk.type):
            chunk = chunk.flatten()
        lists_hold_fractions = arrow_columns.is_number_type(chunk.type) and not pa.types.is_integer(chunk.type)
        if not lists_hold_fractions or (pc.max(chunk).as_py() or 0) > 1:
            return 255
    return 1


def _read_pixels(frame: Frame, name: str, image_format: ImageFormat, white_pixel: int) -> np.ndarray:
    """Return a column of lists of numbers as images, uint8 [rows, channels, height, width].

    Args:
        frame: table that has the column.
        name: name of the column.
        image_format: shape of an image.
        white_pixel: number that stands for white, 1 or 255; other numbers raise `DataError`, as do other shapes.
    """
    image_lists, (channels, height, width) = frame.read_arrays(name), image_format.shape
    list_shape, allowed_list_shapes = image_lists.shape[1:], [(channels * height * width,), image_format.shape]
    if channels == 1:
        allowed_list_shapes.append((height, width))
    if channels > 1 and list_shape == (height, width, channels):
        image_lists = image_lists.transpose(0, 3, 1, 2)
    elif list_shape not in allowed_list_shapes:
        problem_text = f": column {name!r} must hold {'grey' if channels == 1 else 'RGB'} images of {height} x {width}"
        raise frame.column_error(name, f"{problem_text}, but holds {list_shape}")
    image_lists = image_lists.reshape(-1, *image_format.shape)
    if image_lists.dtype == np.uint8:
        return image_lists
    pixels, is_invalid_pixel = convert_to_pixels(image_lists, white_pixel)
    is_invalid_row = np.asarray(is_invalid_pixel.reshape(len(is_invalid_pixel), -1).any(1))
    frame.check_cells(name, is_invalid_row, lambda row: f"has numbers that are {NOT_PIXELS_TEXT}")
    return pixels


def convert_to_pixels(pixel_values: np.ndarray, white_pixel: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers as uint8 pixels, and whether each number is invalid, bool, both with the shape of `pixel_values`.

    `white_pixel`, 1 or 255, stands for white, and 0 for black. A number is invalid, and becomes 0, unless it is a whole
    number from 0 to 255 times `white_pixel` / 255.
    """
    rounded_pixels = np.rint(pixel_values * (255 // white_pixel))
    is_invalid_pixel = (
        (np.abs(pixel_values * (255 // white_pixel) - rounded_pixels) > PIXEL_TOLERANCE)
        | (rounded_pixels < 0)
        | (rounded_pixels > 255)
    )
    return np.where(is_invalid_pixel, 0, rounded_pixels).astype(np.uint8), is_invalid_pixel
