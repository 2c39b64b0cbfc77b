"""Fashion-MNIST, 60,000 + 10,000 grey images of 28 x 28 in 10 classes (Xiao, Rasul & Vollgraf 2017).

    x = (pixel / 255 - 0.2860) / 0.3530      (mean and standard deviation of the training pixels)

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: `image`, lists of 784 uint8
in row-major order or encoded images; `label`.

Departures from the paper: none.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from fedcohort.dataset.base import Dataset, Raw, check
from fedcohort.dataset.hub import hub
from fedcohort.dataset.table import Frame, local, text

MEAN, SD = 0.2860, 0.3530


@dataclass(frozen=True)
class FashionMnist(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there.
    """

    path: str | None
    hub: str

    def __post_init__(self) -> None:
        text("path", self.path, optional=True)
        text("hub", self.hub)

    def load(self, seed: int) -> Raw:
        """float32 [N, 1, 28, 28], 10 classes, no natural clients; nothing is drawn. Raises `DataError`."""
        train, test = hub(self.hub) if self.path is None else local(self.path)
        labels = [frame.labels("label", n_classes=10) for frame in (train, test)]
        return check(Raw("fashion_mnist", images(train), labels[0], images(test), labels[1], n_classes=10))


def images(frame: Frame) -> Float32[np.ndarray, "n 1 28 28"]:
    """The column `image`, normalised."""
    pixels = frame.arrays("image")
    if pixels[0].shape not in ((784,), (28, 28), (1, 28, 28)):
        raise frame.error("image", f": column 'image' must hold grey images of 28 x 28, it holds {pixels[0].shape}")
    x = pixels.reshape(-1, 1, 28, 28).astype(np.float32)
    x /= 255
    x -= np.float32(MEAN)
    x /= np.float32(SD)
    return x
