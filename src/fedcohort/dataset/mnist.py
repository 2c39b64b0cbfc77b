"""MNIST, 60,000 + 10,000 grey images of 28 x 28 of the digits 0 to 9 (LeCun, Bottou, Bengio & Haffner 1998).

    x = (pixel / 255 - 0.1307) / 0.3081      (mean and standard deviation of the training pixels)

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: `image`, encoded images or
lists; `label`. The loader was tested on the original data in a folder of lists. For encoded images, the hub's format,
it was tested on small synthetic files.

Departures from the paper: none.
"""

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.image_dataset import ImageTableSpec, SmallImages
from fedcohort.dataset.images import ImageFormat

TABLE_SPEC = ImageTableSpec(
    name="mnist",
    image_columns=("image",),
    label_columns=("label",),
    classes=tuple("0123456789"),
    image_format=ImageFormat((1, 28, 28)),
    pixel_scale=PixelScale((0.1307,), (0.3081,)),
    original_image_counts=(60_000, 10_000),
)


class Mnist(SmallImages):
    """MNIST, grey images of 28 x 28 of handwritten digits, from a folder or the Hugging Face hub."""

    table_spec = TABLE_SPEC
