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
from fedcohort.dataset import cells
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.images import Fit
from fedcohort.dataset.pictures import Pictures, check_source, load
from fedcohort.dataset.source import Columns, column_of, frames_of
from fedcohort.dataset.table import Frame

IMAGE, LABEL = ("image",), ("label",)
DIGITS, CAPITALS, SMALL = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
MERGED = DIGITS + CAPITALS + "abdefghnqrt"
KINDS = {  # classes, and images for training and for the test
    "byclass": (DIGITS + CAPITALS + SMALL, (697_932, 116_323)),
    "bymerge": (MERGED, (697_932, 116_323)),
    "balanced": (MERGED, (112_800, 18_800)),
    "letters": (CAPITALS, (124_800, 20_800)),
    "digits": (DIGITS, (240_000, 40_000)),
    "mnist": (DIGITS, (60_000, 10_000)),
}


@dataclass(frozen=True)
class Emnist(Dataset):
    """The dataset with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub, or None if there is a folder.
        columns: the tables' names of columns, by the names above; None if they are the same.
        kind: the variant that the files hold, one of `KINDS`.
        pixels: their type in memory: "float32", "uint8" (converted batch by batch), or "auto", which is uint8 where
            float32 would take more than 2 GB.
    """

    path: str | None
    hub: str | None
    columns: Columns | None
    kind: str
    pixels: str

    def __post_init__(self) -> None:
        check_source(self.path, self.hub, self.columns, self.pixels, IMAGE, LABEL)
        ranges.choice("kind", self.kind, *KINDS)

    def load(self, seed: int) -> Raw:
        """Return images [N, 1, 28, 28], the classes of `kind`, no natural clients; nothing is drawn.

        Raises `DataError`.
        """
        classes, original = KINDS[self.kind]
        frames = frames_of("emnist", self.path, self.hub, self.columns)
        names = tuple(classes)
        if self.kind == "letters" and all(_starts_at_one(frame) for frame in frames):
            names = ("none", *names)
        pictures = Pictures("emnist", IMAGE, LABEL, names, Fit((1, 28, 28)), PixelScale((0.0,), (1.0,)), original)
        raw = load(pictures, frames, self.pixels)
        if len(names) == len(classes):
            return raw
        return replace(
            raw, train_y=raw.train_y - 1, test_y=raw.test_y - 1, n_classes=len(classes), class_names=tuple(classes)
        )


def _starts_at_one(frame: Frame) -> bool:
    """Return whether labels are numbers without a 0."""
    column = frame.require_full(column_of(frame, *LABEL))
    return cells.is_number(column.type) and cells.numbers(column).min() >= 1
