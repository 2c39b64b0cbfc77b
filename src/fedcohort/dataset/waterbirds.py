"""WaterBirds: land birds and water birds, mostly on matching backgrounds (Sagawa, Koh, Hashimoto & Liang 2020).

    y = 0 land bird, 1 water bird;   a = 0 land, 1 water;   x = (pixel / 255 - mean) / sd with ImageNet's moments

    (y, a)            (0, 0)   (0, 1)   (1, 0)   (1, 1)
    training images    3,498      184       56    1,057
    test images        2,255    2,255      642      642

The data are train.parquet and test.parquet in a folder, as `fedcohort prepare waterbirds` writes them, or data on the
Hugging Face hub. Columns: `image`, encoded images of any size; `label` or `y`; `place`. Images are resized to a square
that is a seventh larger than `size`, then cropped to `size`, as in group DRO's code (256 and 224).

A validation part, valid.parquet or `validation` on the hub, is the server's validation data; clients then get the whole
training part. The original has 1,199 validation images, of each class about half on land and half on water. Without it
the server takes its validation data from the training part (`split.server_val`), whose groups are unbalanced.

The loader was tested on small synthetic files of this layout, not on the original data. The hub's columns are those of
its descriptions.

Departures from the paper: none; images aren't augmented.
"""

from dataclasses import dataclass, replace

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Raw
from fedcohort.dataset.image_dataset import ImageTables, ImageTableSpec
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.labels import read_class_column
from fedcohort.dataset.source import find_column

PLACE_COLUMNS, PLACES = ("place",), ("land", "water")
TABLE_SPEC = ImageTableSpec(
    name="waterbirds",
    image_columns=("image",),
    label_columns=("label", "y"),
    classes=("landbird", "waterbird"),
    image_format=ImageFormat((3, 224, 224), resize=True, crop_margin=16),
    pixel_scale=PixelScale((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    original_image_counts=(4_795, 5_794),
)


@dataclass(frozen=True)
class Waterbirds(ImageTables):
    """WaterBirds, images of birds with their background.

    Attributes:
        size: width and height of the images in pixels.
    """

    name, column_names = TABLE_SPEC.name, (TABLE_SPEC.image_columns, TABLE_SPEC.label_columns, PLACE_COLUMNS)

    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("size", self.size, "[8, 1024]")

    def load(self, seed: int) -> Raw:
        """Return images [N, 3, size, size] with 2 classes and the background as attribute, without natural clients.

        Args:
            seed: has no effect, as nothing is drawn.

        Raises:
            DataError: a table is missing or damaged, or has other columns, images or labels.
        """
        image_format = ImageFormat((3, self.size, self.size), resize=True, crop_margin=round(self.size / 14))
        table_spec = replace(TABLE_SPEC, image_format=image_format)
        frames = self.read_frames(optional_parts=("valid", "validation"))
        place_of_row = [read_class_column(frame, find_column(frame, *PLACE_COLUMNS), PLACES) for frame in frames]
        raw_data = table_spec.load(frames[:2], self.pixels)
        raw_data = replace(raw_data, train_attribute=place_of_row[0], test_attribute=place_of_row[1])
        if len(frames) == 2:
            return raw_data
        validation_x, validation_y = table_spec.read_images([frames[2]]), table_spec.read_labels(frames[2])
        validation_part = (
            table_spec.pixel_scale.convert(validation_x) if raw_data.scale is None else validation_x,
            validation_y,
        )
        inputs_text = f"{raw_data.inputs}; {len(validation_y):,} validation images are the server's"
        return replace(raw_data, valid=validation_part, inputs=inputs_text)
