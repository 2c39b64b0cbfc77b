"""Datasets whose images belong to people: one pool of images, divided by LEAF's rules (`dataset.leaf`)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.dataset import leaf
from fedcohort.dataset.base import Raw
from fedcohort.dataset.image_dataset import ImageLayout
from fedcohort.dataset.labels import read_classes
from fedcohort.rng import new_generator


@dataclass(frozen=True)
class PeopleImages(leaf.LeafDataset):
    """A dataset of images with a natural client per person.

    Attributes:
        pixels: their type in memory: "float32", "uint8" (converted batch by batch), or "auto", which is uint8 where
            float32 would take more than 2 GB.
        layout: the images; `layout.pool` has the original's numbers of images and people.
    """

    layout: ClassVar[ImageLayout]

    pixels: str

    def __init_subclass__(cls) -> None:
        cls.name, cls.column_names = cls.layout.name, (cls.layout.image, cls.layout.label, cls.client)

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("pixels", self.pixels, "auto", "float32", "uint8")

    def load(self, seed: int) -> Raw:
        """Return images, classes and natural clients; the division is drawn. Raises `DataError`."""
        return self.load_pool(seed)

    def load_pool(self, seed: int, attribute: str | None = None) -> Raw:
        """Load and divide the pool of images; images of rows that are left out aren't decoded.

        Args:
            seed: seed of the draws.
            attribute: the tables' name of a column of numbers or booleans that becomes the attribute, None for none.

        Raises:
            DataError: a table can't be read, or there are too few samples.
        """
        frames = self.pool_frames()
        labels = np.concatenate([self.layout.read_labels(frame) for frame in frames])
        people = self.read_people(frames)
        rng = new_generator(seed, "leaf")
        parts = self.divide(self.name, people, rng, frames[0].table.num_rows)
        x, test_x = (self.layout.read_images(frames, rows) for rows in (parts.train, parts.test))
        n_images, n_people = self.layout.pool
        counts = ("images", len(people), n_images), ("people", len(np.unique(people)), n_people)
        notes = [parts.note, *self.compare_with_original(*counts)]
        raw = self.layout.make_raw((x, labels[parts.train]), (test_x, labels[parts.test]), self.pixels, *notes)
        if attribute is not None:
            values = np.concatenate([read_classes(frame, attribute, ("0", "1")) for frame in frames])
            raw = replace(raw, train_attribute=values[parts.train], test_attribute=values[parts.test])
        return replace(raw, revision=frames[0].revision, **parts.clients)
