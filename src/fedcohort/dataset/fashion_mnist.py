"""Fashion-MNIST, 60,000 + 10,000 grey images of 28 x 28 in 10 classes (Xiao, Rasul & Vollgraf 2017).

    x = (pixel / 255 - 0.2860) / 0.3530      (mean and standard deviation of the training pixels)

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: `image`, lists of 784 uint8
in row-major order or encoded images; `label`.

Departures from the paper: none.
"""

from dataclasses import dataclass

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.images import Fit
from fedcohort.dataset.pictures import Pictures, check_source, load
from fedcohort.dataset.source import Columns, frames_of

CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
PICTURES = Pictures(
    name="fashion_mnist",
    image=("image",),
    label=("label",),
    classes=CLASSES,
    fit=Fit((1, 28, 28)),
    scale=PixelScale((0.2860,), (0.3530,)),
    original=(60_000, 10_000),
)


@dataclass(frozen=True)
class FashionMnist(Dataset):
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
        """Images [N, 1, 28, 28], 10 classes, no natural clients; nothing is drawn. Raises `DataError`."""
        return load(PICTURES, frames_of(PICTURES.name, self.path, self.hub, self.columns), self.pixels)
