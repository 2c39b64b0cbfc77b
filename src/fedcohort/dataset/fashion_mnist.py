"""Fashion-MNIST, 60,000 + 10,000 grey images of 28 x 28 in 10 classes (Xiao, Rasul & Vollgraf 2017).

    x = (pixel / 255 - 0.2860) / 0.3530      (mean and standard deviation of the training pixels)

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: `image`, lists of 784 uint8
in row-major order or encoded images; `label`.

Departures from the paper: none.
"""

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.image_dataset import ImageTableSpec, SmallImages
from fedcohort.dataset.images import ImageFormat

CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
TABLE_SPEC = ImageTableSpec(
    name="fashion_mnist",
    image_columns=("image",),
    label_columns=("label",),
    classes=CLASSES,
    image_format=ImageFormat((1, 28, 28)),
    pixel_scale=PixelScale((0.2860,), (0.3530,)),
    original_image_counts=(60_000, 10_000),
)


class FashionMnist(SmallImages):
    """Fashion-MNIST, grey images of 28 x 28 of clothes in 10 classes, from a folder or the Hugging Face hub."""

    table_spec = TABLE_SPEC
