"""CelebA in LEAF's form: smiling or not, with a client per celebrity (Liu et al. 2015; LEAF, Caldas et al. 2018).

    x = pixel / 255, RGB images of 84 x 84;   y = 1 for a smiling face

Client k is the k-th celebrity by id among those with `least` = 5 images or more. The test part is divided as in
`dataset=femnist`. test=given keeps CelebA's parts, which have different celebrities.

The data are the parts train, valid and test on the Hugging Face hub, or in a folder, as `fedcohort prepare celeba`
writes them. Columns: `image`, encoded images of any size, which are resized to 84 x 84; `Smiling`; `celeb_id`. The
option `attribute` names another of the forty columns, say Male, as an attribute for the metrics by group
(`test/acc_worst_group`). The original has 202,599 images of 10,177 celebrities.

The hub's parts are those of its page; its columns and the layout of the raw files follow common descriptions. The
loader was tested on small synthetic files of both layouts, not on the original data.

Departures from LEAF: pixels are divided by 255. Images are resized by a bilinear filter over all pixels, where LEAF's
filter depends on its version of Pillow. The random draws differ.
"""

from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.image_dataset import ImageTableSpec
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.leaf import PersonImageDataset

TABLE_SPEC = ImageTableSpec(
    name="celeba",
    image_columns=("image",),
    label_columns=("Smiling",),
    classes=("serious", "smiling"),
    image_format=ImageFormat((3, 84, 84), resize=True),
    pixel_scale=PixelScale((0.0,) * 3, (1.0,) * 3),
    original_pool_counts=(202_599, 10_177),
)


@dataclass(frozen=True)
class Celeba(PersonImageDataset):
    """CelebA, images of faces in the classes serious and smiling, with a natural client per celebrity.

    Attributes:
        attribute: name of a column of booleans, such as Male, that becomes the attribute of samples; None for no
            attribute.
    """

    table_spec, client_columns, hub_splits = TABLE_SPEC, ("celeb_id", "client"), ("train", "valid", "test")

    attribute: str | None

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.text("attribute", self.attribute, allow_null=True)
