"""Which class a number means in a file that says what its numbers are called, as files of the Hugging Face hub do."""

import logging
from collections.abc import Sequence

import numpy as np

from fedcohort.dataset import cells
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

log = logging.getLogger("fedcohort")


def renumber(frame: Frame, name: str, values: Ids, classes: Sequence[str]) -> Ids:
    """The column's numbers by `classes`, where the file calls them the same in another order.

    Names that none of `classes` has say nothing, as long as the others stand in their places; where no name is one of
    ours a warning names both lists, as the numbers may mean something else. Raises `DataError`.

    Args:
        frame: the table.
        name: of the column.
        values: its numbers, int64 [rows], at least 0 and below `len(classes)`.
        classes: what they are called here, in the order of their numbers.
    """
    called = cells.class_names(frame.table.schema.metadata, name)
    spell = _spell if len({_spell(word) for word in classes}) == len(classes) else str
    known = {spell(word): c for c, word in enumerate(classes)}
    places = [known.get(spell(word)) for word in called]
    if called and not any(place is not None for place in places):
        log.warning(
            "%s: column %r calls its classes %s, and here they are %s: labels are taken by their numbers",
            *(frame.where, name, list_names(called), list_names(classes)),
        )
    moved = [c for c, place in enumerate(places) if place not in (None, c)]
    if not moved:
        return values
    if None in places or len(set(places)) < len(places):
        c = moved[0]
        raise frame.error(
            name,
            f": column {name!r} calls its class {c} {called[c]!r}, which is class {places[c]} here; labels may be the "
            "classes' names",
        )
    numbers: Ids = np.array(places, dtype=np.int64)[values]
    return numbers


def _spell(word: str) -> str:
    """`T - shirt / top` and `T-shirt/top` are the same name."""
    return "".join(letter for letter in word if letter.isalnum()).casefold()
