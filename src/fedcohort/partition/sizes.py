"""Sizes of clients, equal or in given proportions, and checks of the options that bound them."""

import numpy as np

from fedcohort.errors import OptionError
from fedcohort.types import Ids, Values


def require_samples_for_clients(partition: str, n_clients: int | None, n_samples: int) -> int:
    """Return `n_clients`; raise `OptionError` if `partition` can't split `n_samples` among as many clients."""
    if n_clients is None:
        what = f"clients=null takes all natural clients (partition=natural), but partition={partition} makes them"
        raise OptionError(f"{what}: clients must be an integer in [1, {n_samples}], got null")
    if n_clients > n_samples:
        raise OptionError(
            f"clients={n_clients} exceeds the {n_samples} training samples; feasible: clients<={n_samples}"
        )
    return n_clients


def require_min_samples(min_samples: int, n_samples: int, n_clients: int) -> None:
    """Raise `OptionError` if `n_samples` are too few for `min_samples` per client."""
    if min_samples > n_samples // n_clients:
        raise OptionError(
            f"partition.min_samples={min_samples} is too large: {n_samples} training samples are fewer than that for "
            f"each of {n_clients} clients; feasible: partition.min_samples<={n_samples // n_clients}"
        )


def equal_sizes(n_samples: int, n_clients: int) -> Ids:
    """Return equal sizes that sum to `n_samples`, int64 [n_clients]; the first clients have one more if necessary."""
    return n_samples // n_clients + (np.arange(n_clients) < n_samples % n_clients)


def proportional_sizes(n_samples: int, weights: Values, min_size: int) -> Ids:
    """Return sizes that sum to `n_samples`, int64 [n_clients].

    Every client has `min_size` samples and a share of the remaining ones in proportion to its weight, rounded to one of
    the two nearest integers. `n_samples` must be at least least * len(weights).
    """
    weight_sums = np.cumsum(weights)
    stop_positions = np.rint((n_samples - min_size * len(weights)) * (weight_sums / weight_sums[-1])).astype(np.int64)
    return np.asarray(min_size + np.diff(stop_positions, prepend=0))
