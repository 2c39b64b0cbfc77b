"""WaterBirds: land birds and water birds, mostly on matching backgrounds (Sagawa, Koh, Hashimoto & Liang 2020).

    y = 0 land bird, 1 water bird;   a = 0 land, 1 water;   x = (pixel / 255 - mean) / sd with ImageNet's moments

    (y, a)            (0, 0)   (0, 1)   (1, 0)   (1, 1)
    training images    3,498      184       56    1,057
    test images        2,255    2,255      642      642

The data are train.parquet and test.parquet in a folder, as `fedcohort prepare waterbirds` writes them, or data on the
Hugging Face hub. Columns: `image`, encoded images of any size; `label` or `y`; `place`. Images are resized to a square
that is a seventh larger than `size`, then cropped to `size`, as in group DRO's code (256 and 224).

A validation part, valid.parquet or `validation` on the hub, is the server's validation data; clients then get the whole
training part. The original has 1,199 validation images, with as many on land as on water for each class. Without it the
server takes its validation data from the training part (`split.server_val`), whose groups are unbalanced.

The loader was tested on small synthetic files of this layout, not on the original data. The hub's columns are those of
its descriptions.

Departures from the paper: none; images aren't augmented.
"""

from dataclasses import dataclass, replace
from typing import Any

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.images import Fit
from fedcohort.dataset.pictures import Pictures, check_source, images_of, labels_of, load
from fedcohort.dataset.source import Columns, column_of, frames_of
from fedcohort.dataset.table import Frame

PLACE, PLACES = ("place",), ("land", "water")
PICTURES = Pictures(
    name="waterbirds",
    image=("image",),
    label=("label", "y"),
    classes=("landbird", "waterbird"),
    fit=Fit((3, 224, 224), resize=True, margin=16),
    scale=PixelScale((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    original=(4_795, 5_794),
)


@dataclass(frozen=True)
class Waterbirds(Dataset):
    """The dataset with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub.
        columns: the tables' names of columns, by the names above; None if they are the same.
        size: width and height of the images in pixels.
        pixels: their type in memory: "float32", "uint8" (converted batch by batch), or "auto", which is uint8 where
            float32 would take more than 2 GB.
    """

    path: str | None
    hub: str
    columns: Columns | None
    size: int
    pixels: str

    def __post_init__(self) -> None:
        check_source(self.path, self.hub, self.columns, self.pixels, PICTURES.image, PICTURES.label, PLACE)
        ranges.integer("size", self.size, "[8, 1024]")

    def load(self, seed: int) -> Raw:
        """Return images [N, 3, size, size], 2 classes, 2 attributes, no natural clients; nothing is drawn.

        Raises `DataError`.
        """
        fit = Fit((3, self.size, self.size), resize=True, margin=round(self.size / 14))
        pictures = replace(PICTURES, fit=fit)
        frames = frames_of(PICTURES.name, self.path, self.hub, self.columns, perhaps=("valid", "validation"))
        places = [labels_of(frame, column_of(frame, *PLACE), PLACES) for frame in frames]
        raw = load(pictures, frames[:2], self.pixels)
        raw = replace(raw, train_attribute=places[0], test_attribute=places[1])
        return raw if len(frames) == 2 else replace(raw, **_validation(pictures, frames[2], raw))


def _validation(pictures: Pictures, frame: Frame, raw: Raw) -> dict[str, Any]:
    """Return the fields of `Raw` with the validation part; its pixels have the type of those of `raw`."""
    x = images_of([frame], pictures.image, pictures.fit)
    y = labels_of(frame, column_of(frame, *pictures.label), pictures.classes)
    valid = (pictures.scale.convert(x) if raw.scale is None else x, y)
    return {"valid": valid, "inputs": f"{raw.inputs}; {len(y):,} validation images are the server's"}
