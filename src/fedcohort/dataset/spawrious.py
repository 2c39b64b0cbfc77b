"""Spawrious: dogs of four breeds at six places, made by a diffusion model (Lynch, Dovonon, Kaddour & Silva 2023).

    y = the breed, a = the place, in the order of the options;   x = (pixel / 255 - mean) / sd with ImageNet's moments
    test: of each pair (y, a) as many images at random, `test_share` of the pair that has fewest

The original has 6,336 images of 224 x 224 of each pair. FedDiverse (Nemeth et al., Sec. V-A) takes the places beach and
snow with the breeds labrador and dachshund, or with all four, and a tenth for the test.

From a folder with train.parquet, as `fedcohort prepare spawrious` writes it, or the name of such data on the Hugging
Face hub, where the authors have an archive alone. Columns: `image`, encoded images of any size, which are made `size`
pixels wide and high; `label` and `place`, texts or their numbers in alphabetical order. Only images of the breeds and
places that are asked for are decoded.

Small files of this layout were made, of the folders that the authors' code reads; the data were not at hand.

Departures from the paper: its own splits (one background a breed, one-to-one and many-to-many) are not made; which
client gets which pairs is the partition's affair. Images aren't augmented.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.data.places import rank, shuffled
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.breeds import BREEDS, PLACES
from fedcohort.dataset.images import Fit
from fedcohort.dataset.naming import difference
from fedcohort.dataset.pictures import Pictures, check_source, images_of, labels_of, raw_of
from fedcohort.dataset.source import Columns, column_of, frames_of
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.rng import generator
from fedcohort.types import Ids

IMAGE, LABEL, PLACE = ("image",), ("label", "breed"), ("place",)
EACH = 6_336  # images of a pair
SCALE = PixelScale((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True)
class Spawrious(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there, or None where there is a folder.
        columns: what the tables call columns otherwise than here, by the names above, or None.
        breeds, places: which of them are used, in the order of their numbers.
        size: of the images, in pixels.
        test_share: of each pair of breed and place.
        pixels: how they stand in memory, "float32", "uint8" (converted batch by batch), or "auto": uint8 where float32
            would take more than 2 GB.
    """

    path: str | None
    hub: str | None
    columns: Columns | None
    breeds: Sequence[str]
    places: Sequence[str]
    size: int
    test_share: float
    pixels: str

    def __post_init__(self) -> None:
        check_source(self.path, self.hub, self.columns, self.pixels, IMAGE, LABEL, PLACE)
        for option, chosen, known in (("breeds", self.breeds, BREEDS), ("places", self.places, PLACES)):
            ranges.texts(option, chosen)
            least = 2 if option == "breeds" else 1
            if set(chosen) - set(known) or len(set(chosen)) < max(least, len(chosen)):
                raise ranges.refuse(option, f"a list of {least} or more of {', '.join(known)}, each once", list(chosen))
        ranges.integer("size", self.size, "[8, 1024]")
        ranges.number("test_share", self.test_share, "(0, 0.5]")

    def load(self, seed: int) -> Raw:
        """Images [N, 3, size, size], classes, attributes, no natural clients; the test part is drawn.

        Raises `DataError`.
        """
        frames = frames_of("spawrious", self.path, self.hub, self.columns, ("train",))
        breed, place = _column(frames[0], LABEL, BREEDS), _column(frames[0], PLACE, PLACES)
        y, a = _renumber(breed, BREEDS, self.breeds), _renumber(place, PLACES, self.places)
        wanted = np.flatnonzero((y >= 0) & (a >= 0))
        pair = y * len(self.places) + a
        sizes = np.bincount(pair[wanted], minlength=len(self.breeds) * len(self.places))
        if not int(self.test_share * sizes.min()):
            at = int(sizes.argmin())
            which = f"{self.breeds[at // len(self.places)]} at the {self.places[at % len(self.places)]}"
            raise DataError(
                f"dataset=spawrious: {frames[0].where} has {sizes.min()} images of {which}: too few for a test part of "
                f"test_share={self.test_share:g} of them"
            )
        quota = np.full(len(sizes), int(self.test_share * sizes.min()))
        order = shuffled(len(wanted), generator(seed, "spawrious"))
        test = rank(pair[wanted], order) < quota[pair[wanted]]
        rows = (wanted[~test], wanted[test])
        fit = Fit((3, self.size, self.size), resize=True)
        pictures = Pictures("spawrious", IMAGE, LABEL, tuple(self.breeds), fit, SCALE)
        x, test_x = (images_of(frames, pictures.image, fit, each) for each in rows)
        said = [f"places {', '.join(f'{c} {word}' for c, word in enumerate(self.places))}", *_compare(sizes, self)]
        raw = raw_of(pictures, (x, y[rows[0]]), (test_x, y[rows[1]]), self.pixels, *said)
        return replace(raw, train_attribute=a[rows[0]], test_attribute=a[rows[1]], revision=frames[0].revision)


def _compare(sizes: Ids, chosen: Spawrious) -> list[str]:
    """Say which pair of breed and place is farthest from the original's number; sizes: of each pair that is used."""
    at = int(np.abs(sizes - EACH).argmax())
    breed, place = chosen.breeds[at // len(chosen.places)], chosen.places[at % len(chosen.places)]
    others = int((sizes != EACH).sum()) - 1
    more = f" (and {others} other pairs differ)" if others > 0 else ""
    return [line + more for line in difference(f"images of {breed} at the {place}", int(sizes[at]), EACH)]


def _column(frame: Frame, names: Sequence[str], words: Sequence[str]) -> Ids:
    return labels_of(frame, column_of(frame, *names), words)


def _renumber(ids: Ids, known: Sequence[str], chosen: Sequence[str]) -> Ids:
    """The numbers of the chosen words, -1 for the others."""
    new = np.array([chosen.index(word) if word in chosen else -1 for word in known], dtype=np.int64)
    numbers: Ids = new[ids]
    return numbers
