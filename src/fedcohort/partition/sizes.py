"""How many samples a client gets, where the partition deals equal parts, or parts in given proportions."""

import numpy as np

from fedcohort.errors import OptionError
from fedcohort.types import Ids, Values


def require(word: str, n_clients: int | None, n_samples: int) -> int:
    """`n_clients`, or `OptionError` where partition=`word` can't deal `n_samples` to so many."""
    if n_clients is None:
        raise OptionError(
            f"clients=null takes the clients that the data bring (partition=natural), and partition={word} makes them: "
            f"clients must be an integer in [1, {n_samples}], got null"
        )
    if n_clients > n_samples:
        raise OptionError(
            f"clients={n_clients} exceeds the {n_samples} training samples; feasible: clients<={n_samples}"
        )
    return n_clients


def even(n_samples: int, n_clients: int) -> Ids:
    """int64 [n_clients] that sums to `n_samples`: the quotient, and one more for the first ones."""
    return n_samples // n_clients + (np.arange(n_clients) < n_samples % n_clients)


def proportional(n_samples: int, weights: Values, least: int) -> Ids:
    """int64 [n_clients] that sums to `n_samples`: `least` for everybody, and the rest in proportion to `weights`.

    Each is within one of its exact share. n_samples >= least * len(weights).
    """
    up_to = np.cumsum(weights)
    ends = np.rint((n_samples - least * len(weights)) * (up_to / up_to[-1])).astype(np.int64)
    sizes: Ids = least + np.diff(ends, prepend=0)
    return sizes
