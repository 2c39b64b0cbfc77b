"""Draw the samples of the training data that the server holds for validation."""

import numpy as np

from fedcohort.data.group_ranks import first_rows_by_group, rank_within_group
from fedcohort.dataset.base import Raw
from fedcohort.errors import DataError
from fedcohort.types import Ids

MIN_CLIENT_ROWS = 3  # of a client: one to train on, two in V_k
MAX_EXTRA_CLASS_ROWS = (
    2  # of a class, beyond its share rounded up, that may replace rows of classes whose owners have too few
)


def draw_server_rows(raw: Raw, server_share: float, rng: np.random.Generator) -> Ids:
    """Return the sorted positions, [n], of the server's validation samples: a share of each class, rounded up or down.

    Their total is `server_share` of all rows, so that a large class compensates the rounding of small ones. The total
    is lower if natural clients have too few samples: at most two rows of a class replace rows of other classes. No row
    is drawn if the dataset has a validation split.

    Args:
        raw: the dataset.
        server_share: share of the training rows that the server holds, in (0, 0.5].
        rng: random generator.

    Raises:
        DataError: no natural client has enough samples.
    """
    if raw.valid is not None:
        return np.empty(0, dtype=np.int64)
    y, n_classes, n_server_rows = raw.train_class, raw.n_strata, max(1, round(server_share * len(raw.train_y)))
    rank_in_class = rank_within_group(y, rng.permutation(len(y)))
    class_offsets, class_sizes = rng.random(n_classes), np.bincount(y, minlength=n_classes)
    relative_rank = (class_offsets[y] + rank_in_class) / class_sizes[y]
    if raw.train_owner is not None:
        relative_rank[rank_within_group(raw.train_owner, rng.permutation(len(y))) < MIN_CLIENT_ROWS] = np.inf
    # more than `n_server` where keys are equal
    server_rows = np.flatnonzero(relative_rank <= np.partition(relative_rank, n_server_rows - 1)[n_server_rows - 1])
    server_rows = server_rows[np.argsort(relative_rank[server_rows], kind="stable")[:n_server_rows]]
    if raw.train_owner is not None:
        server_rows = first_rows_by_group(
            server_rows, y, np.ceil(server_share * class_sizes).astype(np.int64) + MAX_EXTRA_CLASS_ROWS
        )
    server_rows = np.sort(server_rows[np.isfinite(relative_rank[server_rows])])
    if len(server_rows) == 0:
        small_client_advice = f"; {raw.small_client_remedy}" if raw.small_client_remedy else ""
        few_samples_text = (
            f"dataset={raw.name}: split.server_val only takes samples of clients with more than {MIN_CLIENT_ROWS} "
            "training samples"
        )
        raise DataError(f"{few_samples_text}, but no client has more{small_client_advice}")
    return server_rows
