"""Datasets whose images belong to people: one pool of images, divided by LEAF's rules (`dataset.leaf`)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort.dataset.base import Raw
from fedcohort.dataset.image_dataset import ImageLayout, ImageTables
from fedcohort.dataset.labels import read_classes
from fedcohort.dataset.leaf import LeafDataset
from fedcohort.rng import new_generator


@dataclass(frozen=True)
class PeopleImages(ImageTables, LeafDataset):
    """A dataset of images with a natural client per person.

    Attributes:
        layout: the images; `layout.pool` has the original's numbers of images and people.
        attribute: in some datasets an option, the tables' name of a column of numbers or booleans that becomes the
            attribute; None for none.
    """

    layout: ClassVar[ImageLayout]

    def __init_subclass__(cls) -> None:
        cls.name, cls.column_names = cls.layout.name, (cls.layout.image, cls.layout.label, cls.client)

    def load(self, seed: int) -> Raw:
        """Return images, classes and natural clients; the division is drawn. Raises `DataError`.

        Images of rows that are left out aren't decoded.
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
        if (attribute := getattr(self, "attribute", None)) is not None:
            values = np.concatenate([read_classes(frame, attribute, ("0", "1")) for frame in frames])
            raw = replace(raw, train_attribute=values[parts.train], test_attribute=values[parts.test])
        return replace(raw, revision=frames[0].revision, **parts.clients)
