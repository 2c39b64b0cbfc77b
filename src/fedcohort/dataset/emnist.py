"""EMNIST, NIST's handwritten digits and letters as grey images of 28 x 28 (Cohen, Afshar, Tapson & van Schaik 2017).

    x = pixel / 255

The option `kind` names the variant. Classes, training images and test images:
- byclass: 62 classes, 0-9, A-Z, a-z; 697,932 + 116,323 images.
- bymerge: 47 classes, 15 small letters are merged with their capitals; 697,932 + 116,323 images.
- balanced: the 47 classes of bymerge, with equal numbers of images; 112,800 + 18,800 images.
- letters: 26 classes, each a small letter and its capital; 124,800 + 20,800 images.
- digits: 10 classes; 240,000 + 40,000 images.
- mnist: 10 classes; 60,000 + 10,000 images.

The data are train.parquet and test.parquet in a folder, or data on the Hugging Face hub, which has several copies but
none of the authors'. Columns: `image`, encoded images or lists; `label`. EMNIST's own files number letters from 1;
labels of kind=letters without a 0 are read in this way. Images are used as stored. EMNIST's own files have rows and
columns exchanged.

The loader was tested on small synthetic files of this layout, not on the original data.

Departures from the paper: none.
"""

from dataclasses import dataclass, replace

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset import arrow_columns
from fedcohort.dataset.base import Raw
from fedcohort.dataset.image_dataset import ImageTables, ImageTableSpec
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.source import find_column
from fedcohort.dataset.table import Frame

IMAGE_COLUMNS, LABEL_COLUMNS = ("image",), ("label",)
DIGITS, CAPITAL_LETTERS, SMALL_LETTERS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
MERGED_CLASSES = DIGITS + CAPITAL_LETTERS + "abdefghnqrt"
CLASSES_AND_COUNTS_BY_KIND = {  # classes, and images for training and for the test
    "byclass": (DIGITS + CAPITAL_LETTERS + SMALL_LETTERS, (697_932, 116_323)),
    "bymerge": (MERGED_CLASSES, (697_932, 116_323)),
    "balanced": (MERGED_CLASSES, (112_800, 18_800)),
    "letters": (CAPITAL_LETTERS, (124_800, 20_800)),
    "digits": (DIGITS, (240_000, 40_000)),
    "mnist": (DIGITS, (60_000, 10_000)),
}


@dataclass(frozen=True)
class Emnist(ImageTables):
    """EMNIST, grey images of 28 x 28 of handwritten letters and digits.

    Attributes:
        kind: variant of EMNIST that the files hold, such as "balanced"; the module lists all with their classes.
    """

    name, column_names = "emnist", (IMAGE_COLUMNS, LABEL_COLUMNS)

    kind: str

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("kind", self.kind, *CLASSES_AND_COUNTS_BY_KIND)

    def load(self, seed: int) -> Raw:
        """Return images [N, 1, 28, 28] with the classes of the option `kind`, without natural clients.

        Args:
            seed: has no effect, as nothing is drawn.

        Raises:
            DataError: a table is missing, damaged, or has other columns, images or labels.
        """
        classes, original_image_counts = CLASSES_AND_COUNTS_BY_KIND[self.kind]
        frames = self.read_frames()
        labels_start_at_one = self.kind == "letters" and all(_labels_start_at_one(frame) for frame in frames)
        class_names = ("none", *classes) if labels_start_at_one else tuple(classes)
        image_format, pixel_scale = ImageFormat((1, 28, 28)), PixelScale((0.0,), (1.0,))
        raw_data = ImageTableSpec(
            "emnist", IMAGE_COLUMNS, LABEL_COLUMNS, class_names, image_format, pixel_scale, original_image_counts
        ).load(frames, self.pixels)
        if not labels_start_at_one:
            return raw_data
        y, test_y = raw_data.train_y - 1, raw_data.test_y - 1
        return replace(raw_data, train_y=y, test_y=test_y, n_classes=len(classes), class_names=tuple(classes))


def _labels_start_at_one(frame: Frame) -> bool:
    """Return whether the labels in the table `frame` are numbers and all at least 1, as EMNIST numbers letters."""
    cells = frame.read_filled_column(find_column(frame, *LABEL_COLUMNS))
    return arrow_columns.is_number_type(cells.type) and arrow_columns.as_float64(cells).min() >= 1
