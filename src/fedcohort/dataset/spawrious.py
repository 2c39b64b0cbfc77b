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
from fedcohort.data.group_ranks import rank_within_group
from fedcohort.data.pixels import PixelScale
from fedcohort.dataset.base import Raw
from fedcohort.dataset.breeds import BREEDS, PLACES
from fedcohort.dataset.image_dataset import ImageTables, ImageTableSpec
from fedcohort.dataset.images import ImageFormat
from fedcohort.dataset.labels import read_class_column
from fedcohort.dataset.messages import note_count_difference
from fedcohort.dataset.source import find_column
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.rng import new_generator
from fedcohort.types import Ids

IMAGE_COLUMNS, LABEL_COLUMNS, PLACE_COLUMNS = ("image",), ("label", "breed"), ("place",)
IMAGES_PER_PAIR = 6_336  # of the original
PIXEL_SCALE = PixelScale((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True)
class Spawrious(ImageTables):
    """Spawrious, images of dogs with breed and place.

    Attributes:
        breeds: breeds that are used, in the order of their numbers.
        places: places that are used, in the order of their numbers.
        size: width and height of the images in pixels.
        test_share: number of test images of each pair of breed and place, as a share of the smallest pair.
    """

    name, column_names = "spawrious", (IMAGE_COLUMNS, LABEL_COLUMNS, PLACE_COLUMNS)

    breeds: Sequence[str]
    places: Sequence[str]
    size: int
    test_share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        for option_name, chosen_names, allowed_values in (
            ("breeds", self.breeds, BREEDS),
            ("places", self.places, PLACES),
        ):
            ranges.texts(option_name, chosen_names)
            min_n_names = 2 if option_name == "breeds" else 1
            if set(chosen_names) - set(allowed_values) or len(set(chosen_names)) < max(min_n_names, len(chosen_names)):
                allowed_text = f"a list of {min_n_names} or more of {', '.join(allowed_values)}, without repetition"
                raise ranges.range_error(option_name, allowed_text, list(chosen_names))
        ranges.integer("size", self.size, "[8, 1024]")
        ranges.number("test_share", self.test_share, "(0, 0.5]")

    def load(self, seed: int) -> Raw:
        """Return images [N, 3, size, size] with breeds as classes and places as attributes, without natural clients.

        Args:
            seed: seed from which the test part is drawn.

        Raises:
            DataError: the table is missing or invalid, or a pair of breed and place has too few images.
        """
        frames = self.read_frames(("train",))
        breed_of_image = _match_names(frames[0], LABEL_COLUMNS, BREEDS, self.breeds)
        place_of_image = _match_names(frames[0], PLACE_COLUMNS, PLACES, self.places)
        chosen_rows = np.flatnonzero((breed_of_image >= 0) & (place_of_image >= 0))
        pair_of_image = (breed_of_image * len(self.places) + place_of_image)[chosen_rows]
        pair_sizes = np.bincount(pair_of_image, minlength=len(self.breeds) * len(self.places))
        if not int(self.test_share * pair_sizes.min()):
            smallest_pair = self.format_breed_and_place(int(pair_sizes.argmin()))
            raise DataError(
                f"dataset=spawrious: {frames[0].origin} has {pair_sizes.min()} images of {smallest_pair}: too few for "
                f"a test part of test_share={self.test_share:g} of them: add images"
            )
        n_test_of_pair = np.full(len(pair_sizes), int(self.test_share * pair_sizes.min()))
        image_order = new_generator(seed, "spawrious").permutation(len(chosen_rows))
        is_test_image = rank_within_group(pair_of_image, image_order) < n_test_of_pair[pair_of_image]
        train_rows, test_rows = chosen_rows[~is_test_image], chosen_rows[is_test_image]
        image_format = ImageFormat((3, self.size, self.size), resize=True)
        table_spec = ImageTableSpec(self.name, IMAGE_COLUMNS, LABEL_COLUMNS, self.breeds, image_format, PIXEL_SCALE)
        x, test_x = (table_spec.read_images(frames, rows_of_part) for rows_of_part in (train_rows, test_rows))
        place_numbers = ", ".join(f"{place_number} {place_name}" for place_number, place_name in enumerate(self.places))
        data_notes = [f"places {place_numbers}", *self.note_extreme_pair_size(pair_sizes)]
        raw_data = table_spec.make_raw_data(
            (x, breed_of_image[train_rows]), (test_x, breed_of_image[test_rows]), self.pixels, *data_notes
        )
        return replace(
            raw_data,
            train_attribute=place_of_image[train_rows],
            test_attribute=place_of_image[test_rows],
            revision=frames[0].revision,
        )

    def format_breed_and_place(self, pair_number: int) -> str:
        """Return the name of a pair of breed and place, such as `labrador at the beach`.

        Args:
            pair_number: breed times the number of places plus place, by their positions in the options.
        """
        breed_number, place_number = divmod(pair_number, len(self.places))
        return f"{self.breeds[breed_number]} at the {self.places[place_number]}"

    def note_extreme_pair_size(self, pair_sizes: Ids) -> list[str]:
        """Return a note on the pair whose number of images differs most from the original's; [] if none differs.

        Args:
            pair_sizes: number of images of each pair of breed and place, int64 [pairs].
        """
        outlier_pair = int(np.abs(pair_sizes - IMAGES_PER_PAIR).argmax())
        n_other_pairs = int((pair_sizes != IMAGES_PER_PAIR).sum()) - 1
        other_pairs_text = f" (and {n_other_pairs} other pairs differ)" if n_other_pairs > 0 else ""
        pair_text, pair_size = f"images of {self.format_breed_and_place(outlier_pair)}", int(pair_sizes[outlier_pair])
        return [
            count_note + other_pairs_text for count_note in note_count_difference(pair_text, pair_size, IMAGES_PER_PAIR)
        ]


def _match_names(frame: Frame, synonyms: Sequence[str], valid_names: Sequence[str], chosen_names: Sequence[str]) -> Ids:
    """Return the position in `chosen_names` of each cell of a column, int64 [rows]; -1 for names that are not chosen.

    Args:
        frame: table that has the column.
        synonyms: possible names of the column.
        valid_names: all valid names, in the order of their numbers in the table.
        chosen_names: the chosen names.
    """
    chosen_position = np.array(
        [chosen_names.index(known_name) if known_name in chosen_names else -1 for known_name in valid_names],
        dtype=np.int64,
    )
    return np.asarray(chosen_position[read_class_column(frame, find_column(frame, *synonyms), valid_names)])
