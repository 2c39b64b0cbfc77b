"""The types of client ids and of values per client, and records whose arrays can't be changed."""

from typing import TypeVar

import numpy as np
from jaxtyping import Float64, Int64

Ids = Int64[np.ndarray, "_n"]  # lengths differ between arguments: the underscore keeps them unbound
Values = Float64[np.ndarray, "_n"]
MAX_FLOAT32 = float(np.finfo(np.float32).max)
T = TypeVar("T")


def read_only(value: T) -> T:
    """Return a read-only view of `value` if it is a numpy array, and any other value unchanged."""
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    read_only_view = value.view()
    read_only_view.flags.writeable = False
    return read_only_view


class ReadOnly:
    """The base of records whose arrays can't be written to, because several components share them."""

    def __post_init__(self) -> None:
        for field_name, field_value in vars(self).items():
            if isinstance(field_value, np.ndarray) and field_value.flags.writeable:
                object.__setattr__(self, field_name, read_only(field_value))
