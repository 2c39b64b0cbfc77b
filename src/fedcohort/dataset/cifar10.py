"""CIFAR-10, 50,000 + 10,000 RGB images of 32 x 32 in 10 classes (Krizhevsky 2009).

    x = (pixel / 255 - mean) / sd, channel by channel;   mean .4914 .4822 .4465, sd .2470 .2435 .2616 (training pixels)

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: `img` or `image`, encoded
images or lists; `label`. Read for real from a folder of losslessly stored images; of the hub's layout, whose column is
called `img`, small files were made.

Departures from the paper: none; images aren't augmented.
"""

from dataclasses import dataclass

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.images import Fit
from fedcohort.dataset.pictures import Pictures, check_source, load
from fedcohort.dataset.source import Columns, frames_of

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PICTURES = Pictures(
    name="cifar10",
    image=("img", "image"),
    label=("label",),
    classes=CLASSES,
    fit=Fit((3, 32, 32)),
    scale=PixelScale((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    original=(50_000, 10_000),
)


@dataclass(frozen=True)
class Cifar10(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there.
        columns: what the tables call columns otherwise than here, by the names above, or None.
        pixels: how they stand in memory, "float32", "uint8" (converted batch by batch), or "auto": uint8 where float32
            would take more than 2 GB.
    """

    path: str | None
    hub: str
    columns: Columns | None
    pixels: str

    def __post_init__(self) -> None:
        check_source(self.path, self.hub, self.columns, self.pixels, PICTURES.image, PICTURES.label)

    def load(self, seed: int) -> Raw:
        """Images [N, 3, 32, 32], 10 classes, no natural clients; nothing is drawn. Raises `DataError`."""
        return load(PICTURES, frames_of(PICTURES.name, self.path, self.hub, self.columns), self.pixels)
