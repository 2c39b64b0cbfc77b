"""Spawrious: dogs of four breeds at six places, drawn by a diffusion model (Lynch, Dovonon, Kaddour & Silva 2023).

    y = the breed, a = the place, in the order of the options;   x = (pixel / 255 - mean) / sd with ImageNet's moments

The test part has the same number of random images of each pair (y, a): `test_share` of the smallest pair. The original
has 6,336 images of 224 x 224 of each pair. FedDiverse (Nemeth et al., Sec. V-A) uses the places beach and snow with the
breeds labrador and dachshund, or with all four, and a tenth for the test.

The data are train.parquet in a folder, as `fedcohort prepare spawrious` writes it, or a copy on the Hugging Face hub,
where the authors publish only an archive. Columns: `image`, encoded images of any size, which are
resized to `size` x `size` pixels; `label` and `place`, texts or their numbers in alphabetical order. Images of other
breeds and places than the chosen ones are not decoded.

The loader was tested on small synthetic files in the layout that the authors' code reads, not on the original data.

Departures from the paper: its splits (one background per breed, one-to-one and many-to-many) are not available, since
the partition assigns pairs to clients. Images aren't augmented.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort import ranges
from fedcohort.data.pixels import PixelScale
from fedcohort.data.places import rank_within_group, shuffled_positions
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
IMAGES_PER_PAIR = 6_336  # of the original
SCALE = PixelScale((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True)
class Spawrious(Dataset):
    """The dataset with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub, or None if there is a folder.
        columns: the tables' names of columns, by the names above; None if they are the same.
        breeds, places: the breeds and places that are used, in the order of their numbers.
        size: width and height of the images in pixels.
        test_share: share of the smallest pair of breed and place that is test data, taken of each pair.
        pixels: their type in memory: "float32", "uint8" (converted batch by batch), or "auto", which is uint8 where
            float32 would take more than 2 GB.
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
        for option, chosen, names in (("breeds", self.breeds, BREEDS), ("places", self.places, PLACES)):
            ranges.texts(option, chosen)
            least = 2 if option == "breeds" else 1
            if set(chosen) - set(names) or len(set(chosen)) < max(least, len(chosen)):
                raise ranges.refuse(option, f"a list of {least} or more of {', '.join(names)}, each once", list(chosen))
        ranges.integer("size", self.size, "[8, 1024]")
        ranges.number("test_share", self.test_share, "(0, 0.5]")

    def load(self, seed: int) -> Raw:
        """Return images [N, 3, size, size] with classes and attributes, without natural clients; the test is drawn.

        Raises `DataError`.
        """
        frames = frames_of("spawrious", self.path, self.hub, self.columns, ("train",))
        y = _number_by_position(frames[0], LABEL, BREEDS, self.breeds)
        a = _number_by_position(frames[0], PLACE, PLACES, self.places)
        chosen_rows = np.flatnonzero((y >= 0) & (a >= 0))
        pair = (y * len(self.places) + a)[chosen_rows]
        sizes = np.bincount(pair, minlength=len(self.breeds) * len(self.places))
        if not int(self.test_share * sizes.min()):
            smallest = self.pair_name(int(sizes.argmin()))
            raise DataError(
                f"dataset=spawrious: {frames[0].where} has {sizes.min()} images of {smallest}: too few for a test part "
                f"of test_share={self.test_share:g} of them"
            )
        quota = np.full(len(sizes), int(self.test_share * sizes.min()))
        order = shuffled_positions(len(chosen_rows), generator(seed, "spawrious"))
        is_test = rank_within_group(pair, order) < quota[pair]
        rows = (chosen_rows[~is_test], chosen_rows[is_test])
        fit = Fit((3, self.size, self.size), resize=True)
        pictures = Pictures("spawrious", IMAGE, LABEL, tuple(self.breeds), fit, SCALE)
        x, test_x = (images_of(frames, pictures.image, fit, part_rows) for part_rows in rows)
        place_numbers = ", ".join(f"{number} {name}" for number, name in enumerate(self.places))
        notes = [f"places {place_numbers}", *self.compare_sizes(sizes)]
        raw = raw_of(pictures, (x, y[rows[0]]), (test_x, y[rows[1]]), self.pixels, *notes)
        return replace(raw, train_attribute=a[rows[0]], test_attribute=a[rows[1]], revision=frames[0].revision)

    def pair_name(self, pair: int) -> str:
        """Return `labrador at the beach`."""
        breed, place = divmod(pair, len(self.places))
        return f"{self.breeds[breed]} at the {self.places[place]}"

    def compare_sizes(self, sizes: Ids) -> list[str]:
        """Return a note on the pair whose number of images differs most from the original's, none without differences.

        sizes: number of images of each pair of breed and place, int64 [pairs].
        """
        worst = int(np.abs(sizes - IMAGES_PER_PAIR).argmax())
        n_other_pairs = int((sizes != IMAGES_PER_PAIR).sum()) - 1
        end = f" (and {n_other_pairs} other pairs differ)" if n_other_pairs > 0 else ""
        notes = difference(f"images of {self.pair_name(worst)}", int(sizes[worst]), IMAGES_PER_PAIR)
        return [note + end for note in notes]


def _number_by_position(frame: Frame, column_names: Sequence[str], names: Sequence[str], chosen: Sequence[str]) -> Ids:
    """Return the position in `chosen` of each cell of a column of `names`, int64 [rows]; -1 for names not chosen."""
    ids = labels_of(frame, column_of(frame, *column_names), names)
    positions = np.array([chosen.index(name) if name in chosen else -1 for name in names], dtype=np.int64)
    numbers: Ids = positions[ids]
    return numbers
