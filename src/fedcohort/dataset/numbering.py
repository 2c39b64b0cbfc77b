"""Read class numbers of files that name their classes, as files of the Hugging Face hub do."""

import logging
from collections.abc import Sequence

import numpy as np

from fedcohort.dataset import cells
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

log = logging.getLogger("fedcohort")


def renumber(frame: Frame, name: str, values: Ids, classes: Sequence[str]) -> Ids:
    """Return the column's class numbers in the order of `classes`, where the file names the same classes in another.

    Names that `classes` doesn't have are ignored where the other names are in their places. Where no name is in
    `classes` a warning shows both lists, since the numbers may mean something else.

    Args:
        frame: the table.
        name: name of the column.
        values: its numbers, int64 [rows], at least 0 and below `len(classes)`.
        classes: names of the classes here, in the order of their numbers.

    Raises:
        DataError: if a name belongs to another number, and the numbers can't be mapped.
    """
    names = cells.class_names(frame.table.schema.metadata, name)
    spell = _spell if len({_spell(word) for word in classes}) == len(classes) else str
    number_of_class = {spell(word): c for c, word in enumerate(classes)}
    places = [number_of_class.get(spell(word)) for word in names]
    if names and not any(place is not None for place in places):
        log.warning(
            "%s: column %r names its classes %s, but the dataset names them %s: labels are matched by number",
            *(frame.where, name, list_names(names), list_names(classes)),
        )
    moved = [c for c, place in enumerate(places) if place not in (None, c)]
    if not moved:
        return values
    if None in places or len(set(places)) < len(places):
        c = moved[0]
        raise frame.error(
            name,
            f": column {name!r} names its class {c} {names[c]!r}, which is class {places[c]} here; labels may be the "
            "classes' names",
        )
    numbers: Ids = np.array(places, dtype=np.int64)[values]
    return numbers


def _spell(word: str) -> str:
    """Return the name without case, spaces and signs: `T - shirt / top` and `T-shirt/top` are equal."""
    return "".join(letter for letter in word if letter.isalnum()).casefold()
