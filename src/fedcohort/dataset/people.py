"""Load datasets whose images belong to people: one pool, divided by LEAF's rules (`dataset.leaf`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort.dataset import leaf
from fedcohort.dataset.base import Raw
from fedcohort.dataset.files import file_of
from fedcohort.dataset.pictures import Pictures, images_of, labels_of, raw_of
from fedcohort.dataset.source import Columns, column_of, frames_of
from fedcohort.dataset.table import Frame
from fedcohort.rng import generator
from fedcohort.types import Ids


@dataclass(frozen=True)
class Source:
    """The place of the pool.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub.
        columns: the tables' names of columns, by the dataset's; None if they are the same.
        parts: parts that the hub has; a folder must have the first.
    """

    path: str | None
    hub: str | None
    columns: Columns | None
    parts: Sequence[str]

    def frames(self, name: str, only_split: bool) -> list[Frame]:
        """Return the tables; only_split: only the training and the test part. Raises `DataError`."""
        parts = ("train", "test") if only_split else tuple(self.parts)
        if self.path is not None and not only_split:
            parts = ("train", *(part for part in ("valid", "test") if file_of(self.path, part)))
        return frames_of(name, self.path, self.hub, self.columns, parts)


def load(
    pictures: Pictures,
    client: Sequence[str],
    source: Source,
    rules: leaf.Rules,
    pixels: str,
    seed: int,
    attribute: str | None = None,
) -> Raw:
    """Load and divide a pool of images; images of rows that are left out aren't decoded.

    Args:
        pictures: the dataset.
        client: names of the column of people, of which the first that the table has is taken.
        source: the place of the pool.
        rules: how it is divided.
        pixels: "auto", "float32" or "uint8".
        seed: seed of the draws.
        attribute: the tables' name of a column of numbers or truth values, None for none.

    Raises:
        DataError: for tables that can't be read, or too few samples.
    """
    frames = source.frames(pictures.name, rules.test == "given")
    labels = _labels(frames, [column_of(frame, *pictures.label) for frame in frames], pictures.classes)
    owner = leaf.people(frames, client)
    rng = generator(seed, "leaf")
    parts = leaf.divide(pictures.name, owner, rules, rng, frames[0].table.num_rows)
    x, test_x = (images_of(frames, pictures.image, pictures.fit, rows) for rows in (parts.train, parts.test))
    notes = [parts.remark, *_compare(pictures, owner, rules)]
    raw = raw_of(pictures, (x, labels[parts.train]), (test_x, labels[parts.test]), pixels, *notes)
    raw = replace(raw, train_owner=parts.owner, test_owner=parts.test_owner, pooled_test=parts.test_owner is None)
    raw = replace(raw, revision=frames[0].revision)
    if attribute is not None:
        a = _labels(frames, [attribute] * len(frames), ("0", "1"))
        raw = replace(raw, train_attribute=a[parts.train], test_attribute=a[parts.test])
    return raw


def _compare(pictures: Pictures, owner: Ids, rules: leaf.Rules) -> list[str]:
    """Return notes on the differences from the original's pool, where all of its parts were read."""
    if pictures.pool is None:
        return []
    images, people = pictures.pool
    return leaf.compare(rules, ("images", len(owner), images), ("people", len(np.unique(owner)), people))


def _labels(frames: Sequence[Frame], names: Sequence[str], classes: Sequence[str]) -> Ids:
    return np.concatenate([labels_of(frame, name, classes) for frame, name in zip(frames, names, strict=True)])
