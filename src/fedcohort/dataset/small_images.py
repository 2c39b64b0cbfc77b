"""Load datasets of small images from train.parquet and test.parquet or from the Hugging Face hub, without clients."""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.pictures import Pictures, check_source, load
from fedcohort.dataset.source import Columns, frames_of


@dataclass(frozen=True)
class SmallImages(Dataset):
    """A dataset that `pictures` describes, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub.
        columns: other names of the tables' columns by the names in `pictures`, or None.
        pixels: their type in memory: "float32", "uint8" (converted batch by batch), or "auto", which is uint8 where
            float32 would take more than 2 GB.
    """

    pictures: ClassVar[Pictures]

    path: str | None
    hub: str
    columns: Columns | None
    pixels: str

    def __post_init__(self) -> None:
        check_source(self.path, self.hub, self.columns, self.pixels, self.pictures.image, self.pictures.label)

    def load(self, seed: int) -> Raw:
        """Return images [N, channels, height, width] and classes; nothing is drawn. Raises `DataError`."""
        return load(self.pictures, frames_of(self.pictures.name, self.path, self.hub, self.columns), self.pixels)
