"""FEMNIST, handwritten digits and letters by the people who wrote them (LEAF, Caldas et al. 2018; of NIST's SD 19).

    x = pixel / 255: 1 is white paper;   y: 0-9, A-Z from 10, a-z from 36;   client k = the k-th writer by id
    test   sample: a tenth of each writer's images;  user: all images of a tenth of the writers (see `dataset.leaf`)

From the Hugging Face hub, which has one part, or from a folder with train.parquet and perhaps test.parquet, as
`fedcohort prepare leaf` writes them. Columns: `image` or `x`, encoded images of 28 x 28 or lists of 784; `character`,
`label` or `y`; `writer_id` or `client`. A folder's parts are one pool that is divided anew, but for test=given.

LEAF's paper counts 805,263 images of 3,550 writers, with which the pool is compared; the hub's page shows some 814,000.

The hub's columns are those that its card shows, and LEAF's JSON is as its code writes it; of both small files were
made: the data were not at hand.

Departures from LEAF: the draws are ours, and who is left with fewer than three training images is no client.
"""

from dataclasses import dataclass

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset import leaf, people
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.images import Fit
from fedcohort.dataset.pictures import Pictures, check_source
from fedcohort.dataset.source import Columns

CLIENT, PARTS = ("writer_id", "client"), ("train",)
PICTURES = Pictures(
    name="femnist",
    image=("image", "x"),
    label=("character", "label", "y"),
    classes=tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
    fit=Fit((1, 28, 28)),
    scale=PixelScale((0.0,), (1.0,)),
    pool=(805_263, 3_550),
)


@dataclass(frozen=True)
class Femnist(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there.
        columns: what the tables call columns otherwise than here, by the names above, or None.
        test, users, least: LEAF's rules (`dataset.leaf`).
        pixels: how they stand in memory, "float32", "uint8" (converted batch by batch), or "auto": uint8 where float32
            would take more than 2 GB.
    """

    path: str | None
    hub: str
    columns: Columns | None
    test: str
    users: float
    least: int
    pixels: str

    def __post_init__(self) -> None:
        check_source(self.path, self.hub, self.columns, self.pixels, PICTURES.image, PICTURES.label, CLIENT)
        leaf.Rules(self.test, self.users, self.least)

    def load(self, seed: int) -> Raw:
        """Images [N, 1, 28, 28], 62 classes, natural clients; the division is drawn. Raises `DataError`."""
        rules = leaf.Rules(self.test, self.users, self.least)
        source = people.Source(self.path, self.hub, self.columns, PARTS)
        return people.load(PICTURES, CLIENT, source, rules, self.pixels, seed)
