"""Decide which columns of a user's table are inputs, how they are encoded, and what becomes of missing cells."""

from collections.abc import Iterator

import numpy as np

from fedcohort.dataset import cells
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.user_table import notices
from fedcohort.dataset.user_table.columns import MAX_AUTO_LEVELS
from fedcohort.dataset.user_table.look import MAX_NAMES, Look, OpenQuestion


def decide_inputs(look: Look) -> Iterator[OpenQuestion]:
    """Propose the columns that are inputs, how they are encoded, and whether they are standardised."""
    inputs = {name: kind for name, kind in look.kinds.items() if name not in look.roles}
    numbers = [name for name, kind in inputs.items() if kind in ("number", "truth value")]
    pictures = [name for name, kind in inputs.items() if kind == "images"]
    lists = [name for name, kind in inputs.items() if kind == "lists"]
    if pictures or (lists and not numbers):
        is_folder = bool(pictures) and look.train.names == ["image", "label"]
        features = pictures[:1] or lists
        options: dict[str, object] = {} if is_folder else {"dataset.features": features}
        if pictures:
            options |= {"dataset.scale": 255, "model": "cnn"}
        yield OpenQuestion("inputs", options, f"columns of {'images' if pictures else 'lists'}: {list_names(features)}")
        return
    categories = [name for name, kind in inputs.items() if kind == "text" and 2 <= look.levels[name] <= MAX_AUTO_LEVELS]
    if categories:
        named = ", ".join(f"{name} ({look.levels[name]} values)" for name in categories[:MAX_NAMES])
        yield OpenQuestion("categories", {"dataset.categories": categories}, f"{named}: one number for each value")
    if days := [name for name, kind in inputs.items() if kind == "date"]:
        yield OpenQuestion("dates", {"dataset.dates": days}, "as days since 1970")
    x = look.train.numbers(numbers, gaps=True)
    x = np.where(np.isnan(x), 0, x)
    scale = next(iter(notices.of_scale(x, numbers)), "") if numbers else ""
    if scale or days:
        reason = scale.partition(", which")[0] or "dates are far from unit scale"
        yield OpenQuestion("scale", {"dataset.standardise": True}, reason)


def decide_missing(look: Look) -> Iterator[OpenQuestion]:
    """Propose what becomes of missing cells."""
    keys = [name for name, role in look.roles.items() if role in ("label", "client")]
    counts: dict[str, int] = {}
    for frame in look.frames:
        for name in (name for name in frame.names if look.roles.get(name, "") in ("", "label", "client")):
            if name not in look.kinds or look.kinds[name] in ("row number", "other", "nothing", "lists", "images"):
                continue
            column = frame.column(name)
            is_number = look.kinds[name] == "number" and cells.may_be_numbers(column) and name not in keys
            gaps = np.isnan(cells.numbers(column)) if is_number else cells.empty(column)
            counts[name] = counts.get(name, 0) + int(gaps.sum())
    counts = {name: n for name, n in counts.items() if n and (look.kinds[name] != "text" or _is_used(look, name))}
    if not counts:
        return
    named = ", ".join(f"{name} ({n:,})" for name, n in list(counts.items())[:MAX_NAMES])
    if any(counts.get(name) for name in keys):
        yield OpenQuestion("missing", {"dataset.missing": "drop"}, f"cells hold no value: {named}; drops these rows")
    else:
        reason = f"cells hold no number or value: {named}; takes the mean (drop leaves the rows out)"
        yield OpenQuestion("missing", {"dataset.missing": "mean"}, reason)


def _is_used(look: Look, name: str) -> bool:
    return name in look.roles or 2 <= look.levels.get(name, 0) <= MAX_AUTO_LEVELS
