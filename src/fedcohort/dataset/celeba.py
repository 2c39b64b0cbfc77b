"""CelebA as LEAF has it: who smiles, on photographs of celebrities (Liu et al. 2015; LEAF, Caldas et al. 2018).

    x = pixel / 255, RGB images of 84 x 84;   y = 1 for who smiles;   client k = the k-th celebrity by id, of those with
    `least` = 5 images or more;   test: as in `dataset=femnist`;   given: CelebA's own parts, of other celebrities each

From the Hugging Face hub (parts train, valid, test) or a folder with those, as `fedcohort prepare celeba` writes them.
Columns: `image`, encoded images of any size, which are made 84 x 84; `Smiling`, `celeb_id`; `attribute` names another
of the forty, say Male, whose groups are told apart then (`test/acc_worst_group`). The original has 202,599 images of
10,177 celebrities.

The hub's parts are those that its page shows; its columns, and the layout of the raw files, are as commonly described:
small files were made of both, the data were not at hand.

Departures from LEAF: pixels are divided by 255; images are made smaller by a bilinear filter over all pixels (LEAF's
depends on its Pillow); the draws are ours.
"""

from dataclasses import dataclass

from fedcohort.data.pixels import PixelScale
from fedcohort.dataset import leaf, people
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.images import Fit
from fedcohort.dataset.pictures import Pictures, check_source
from fedcohort.dataset.source import Columns
from fedcohort.dataset.table import text

CLIENT, PARTS = ("celeb_id", "client"), ("train", "valid", "test")
PICTURES = Pictures(
    name="celeba",
    image=("image",),
    label=("Smiling",),
    classes=("serious", "smiling"),
    fit=Fit((3, 84, 84), resize=True),
    scale=PixelScale((0.0,) * 3, (1.0,) * 3),
    pool=(202_599, 10_177),
)


@dataclass(frozen=True)
class Celeba(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there.
        columns: what the tables call columns otherwise than here, by the names above, or None.
        test, users, least: LEAF's rules (`dataset.leaf`).
        attribute: a column of truth values beside the label, or None.
        pixels: how they stand in memory, "float32", "uint8" (converted batch by batch), or "auto": uint8 where float32
            would take more than 2 GB.
    """

    path: str | None
    hub: str
    columns: Columns | None
    test: str
    users: float
    least: int
    attribute: str | None
    pixels: str

    def __post_init__(self) -> None:
        check_source(self.path, self.hub, self.columns, self.pixels, PICTURES.image, PICTURES.label, CLIENT)
        leaf.Rules(self.test, self.users, self.least)
        text("attribute", self.attribute, optional=True)

    def load(self, seed: int) -> Raw:
        """Images [N, 3, 84, 84], 2 classes, natural clients; the division is drawn. Raises `DataError`."""
        rules = leaf.Rules(self.test, self.users, self.least)
        source = people.Source(self.path, self.hub, self.columns, PARTS)
        return people.load(PICTURES, CLIENT, source, rules, self.pixels, seed, self.attribute)
