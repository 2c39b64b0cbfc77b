"""FEMNIST, handwritten digits and letters with a client per writer (LEAF, Caldas et al. 2018, from NIST's SD 19).

    x = pixel / 255, where 1 is white paper;   y = 0-9, A-Z from 10, a-z from 36;   client k = the k-th writer by id

The test part depends on the option `test` (see `dataset.leaf`):
- sample: a tenth of each writer's images.
- user: all images of a tenth of the writers.
- given: the parts of the files.

The data are a single part on the Hugging Face hub, or a folder with train.parquet and optionally test.parquet, as
`fedcohort prepare leaf` writes them. Columns: `image` or `x`, encoded images of 28 x 28 or lists of 784; `character`,
`label` or `y`; `writer_id` or `client`. Except for test=given a folder's parts are pooled before they are divided.

The pool is compared with the numbers in LEAF's paper, 805,263 images of 3,550 writers. The hub's page states about
814,000 images.

The hub's columns are those of its page, and LEAF's JSON is read as its code writes it. The loader was tested on small
synthetic files of both layouts, not on the original data.

Departures from LEAF: the random draws differ, and writers with fewer than three training images are left out.
"""

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.image_dataset import ImageTableSpec
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.leaf import PersonImageDataset

TABLE_SPEC = ImageTableSpec(
    name="femnist",
    image_columns=("image", "x"),
    label_columns=("character", "label", "y"),
    classes=tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
    image_format=ImageFormat((1, 28, 28)),
    pixel_scale=PixelScale((0.0,), (1.0,)),
    original_pool_counts=(805_263, 3_550),
)


class Femnist(PersonImageDataset):
    """FEMNIST, grey images of 28 x 28 of handwritten digits and letters, 62 classes, a natural client per writer."""

    table_spec, client_columns = TABLE_SPEC, ("writer_id", "client")
