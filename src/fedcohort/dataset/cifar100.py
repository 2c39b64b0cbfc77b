"""CIFAR-100, 50,000 + 10,000 RGB images of 32 x 32 in 100 classes, 500 + 100 of each (Krizhevsky 2009).

    x = (pixel / 255 - mean) / sd, channel by channel;   mean .5071 .4865 .4409, sd .2673 .2564 .2762

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: `img` or `image`, encoded
images or lists; `fine_label` or `label`, numbers in the alphabetical order of the classes, or their names.

The layout is that of the hub's page. The loader was tested on small synthetic files of it, not on the original data.
Mean and deviation are those in common use; they were not checked.

Departures from the paper: none; the twenty coarse classes aren't read.
"""

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.image_dataset import ImageTableSpec, SmallImages
from fedcohort.dataset.images import ImageFormat

CLASS_NAMES_TEXT = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CLASSES = tuple(CLASS_NAMES_TEXT.split())
TABLE_SPEC = ImageTableSpec(
    name="cifar100",
    image_columns=("img", "image"),
    label_columns=("fine_label", "label"),
    classes=CLASSES,
    image_format=ImageFormat((3, 32, 32)),
    pixel_scale=PixelScale((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    original_image_counts=(50_000, 10_000),
)


class Cifar100(SmallImages):
    """CIFAR-100, RGB images of 32 x 32 in 100 classes, from a folder or the Hugging Face hub."""

    table_spec = TABLE_SPEC
