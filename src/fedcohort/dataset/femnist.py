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
    """The dataset with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub.
        columns: the tables' names of columns, by the names above; None if they are the same.
        test, users, least: LEAF's rules (`dataset.leaf`).
        pixels: their type in memory: "float32", "uint8" (converted batch by batch), or "auto", which is uint8 where
            float32 would take more than 2 GB.
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
