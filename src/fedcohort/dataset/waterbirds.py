"""WaterBirds: land birds and water birds, mostly before their own backgrounds (Sagawa, Koh, Hashimoto & Liang 2020).

    y = 0 land bird, 1 water bird;   a = 0 land, 1 water;   x = (pixel / 255 - mean) / sd with ImageNet's moments
    training images (y, a)   3,498 (0, 0)   184 (0, 1)   56 (1, 0)   1,057 (1, 1);    test   2,255   2,255   642   642

From a folder with train.parquet and test.parquet, as `fedcohort prepare waterbirds` writes them, or from the Hugging
Face hub. Columns: `image`, encoded images of any size; `label` or `y`; `place`. Images are made a seventh larger than
`size` and cut to its square, as group DRO's code does it (256 and 224).

A validation part (valid.parquet; `validation` on the hub; the original has 1,199 images, of which each class has as
many on land as on water) is the server's validation data, and clients get all of the training part. Where there is none
the server cuts its own from the training data (`split.server_val`), whose groups are as uneven as those.

Small files of this layout were made; the data were not at hand, and the hub's columns are as others describe them.

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
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there.
        columns: what the tables call columns otherwise than here, by the names above, or None.
        size: of the images, in pixels.
        pixels: how they stand in memory, "float32", "uint8" (converted batch by batch), or "auto": uint8 where float32
            would take more than 2 GB.
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
        """Images [N, 3, size, size], 2 classes, 2 attributes, no natural clients; nothing is drawn.

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
    """The validation part, with pixels as those of `raw`, and what is said of it."""
    x = images_of([frame], pictures.image, pictures.fit)
    y = labels_of(frame, column_of(frame, *pictures.label), pictures.classes)
    valid = (pictures.scale.convert(x) if raw.scale is None else x, y)
    return {"valid": valid, "inputs": f"{raw.inputs}; {len(y):,} validation images are the server's"}
