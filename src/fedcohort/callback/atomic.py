"""Files that are either old or new, never half: written beside, synced, then renamed."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, sync it to disk and rename it to `path`."""
    draft = path.with_name(f".{path.name}.draft")
    write(draft)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(draft, path)


def write_json(path: Path, value: object, *, indent: int | None = None) -> None:
    """`value` as JSON; what JSON doesn't know (a path in a config) is written as its text."""
    text = json.dumps(value, indent=indent, default=str) + "\n"
    replace(path, lambda draft: draft.write_text(text))


def without_nan(value: object) -> Any:
    """`value` with null for what is not finite, for readers stricter than Python's."""
    if isinstance(value, Mapping):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [without_nan(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
