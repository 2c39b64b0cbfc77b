"""CIFAR-10, 50,000 + 10,000 RGB images of 32 x 32 in 10 classes (Krizhevsky 2009).

    x = (pixel / 255 - mean) / sd, channel by channel;   mean .4914 .4822 .4465, sd .2470 .2435 .2616 (training pixels)

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: `img` or `image`, encoded
images or lists; `label`. The loader was tested on the original data in a folder of losslessly stored images. For the
hub's layout, whose column is called `img`, it was tested on small synthetic files.

Departures from the paper: none; images aren't augmented.
"""

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.image_dataset import ImageTableSpec, SmallImages
from fedcohort.dataset.images import ImageFormat

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TABLE_SPEC = ImageTableSpec(
    name="cifar10",
    image_columns=("img", "image"),
    label_columns=("label",),
    classes=CLASSES,
    image_format=ImageFormat((3, 32, 32)),
    pixel_scale=PixelScale((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    original_image_counts=(50_000, 10_000),
)


class Cifar10(SmallImages):
    """CIFAR-10, RGB images of 32 x 32 in 10 classes, from a folder or the Hugging Face hub."""

    table_spec = TABLE_SPEC
