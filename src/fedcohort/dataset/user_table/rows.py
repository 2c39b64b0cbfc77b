"""Select rows of a user's tables: test part, windows, complete samples, and clients with enough samples."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedcohort.data.group_ranks import first_rows_by_group, rank_within_group
from fedcohort.dataset import arrow_columns
from fedcohort.dataset.clients import Owners
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.column_kinds import find_row_blocks
from fedcohort.dataset.user_table.input_columns import InputColumns
from fedcohort.errors import DataError
from fedcohort.types import Ids

MIN_TRAINING_ROWS = 4  # of every client: three for itself, one to spare for the server


def draw_test_rows(labels: Ids, owners: Ids | None, share: float, rng: np.random.Generator, min_rows: int = 0) -> Ids:
    """Draw the test part of a table that has none: `share` of each class of each client, rounded up or down.

    Fewer rows are drawn where clients can't spare as many, and no other client's rows replace them. The last row of
    each class, in a random order, stays in training, and so do the last rows of each client:
    `min_rows`, or MIN_TRAINING_ROWS if that is more.

    Args:
        labels: label of each row, int64 [N].
        owners: the client of each row, int64 [N]; None if rows have none.
        share: share of the rows that are cut, in (0, 0.5].
        rng: generator that draws the rows.
        min_rows: smallest number of training rows of a client.

    Returns:
        Sorted positions of the test rows, int64.

    Raises:
        DataError: no row can be cut for the test part.
    """
    stratum_of_row = (
        labels if owners is None else np.unique(np.stack([owners, labels]), axis=1, return_inverse=True)[1].ravel()
    )
    random_order, strata_sizes = rng.permutation(len(labels)), np.bincount(stratum_of_row)
    sort_key = (
        rank_within_group(stratum_of_row, random_order) + rng.random(len(strata_sizes))[stratum_of_row]
    ) / strata_sizes[stratum_of_row]
    sort_key[rank_within_group(labels, random_order[::-1]) == 0] = np.inf
    if owners is not None:
        sort_key[rank_within_group(owners, random_order[::-1]) < max(min_rows, MIN_TRAINING_ROWS)] = np.inf
    test_rows = np.argsort(sort_key, kind="stable")[: max(1, round(share * len(labels)))]
    test_rows = first_rows_by_group(test_rows, stratum_of_row, np.floor(share * strata_sizes).astype(np.int64) + 1)
    test_rows = np.sort(test_rows[np.isfinite(sort_key[test_rows])])
    if not len(test_rows):
        problem_text = f"there are too few rows of each class and client to cut any of {len(labels)}"
        pool_advice = "dataset.min_client_samples=10 dataset.pool_small=true pools small clients"
        raise DataError(f"dataset.test_share={share}: {problem_text}; {'add rows' if owners is None else pool_advice}")
    return test_rows


def drop_incomplete_rows(frame: Frame, columns: Sequence[str], inputs: InputColumns, window: int) -> tuple[Frame, str]:
    """Return the table without the samples in which a cell is missing, and a note on how many these are.

    Args:
        frame: table of samples.
        columns: columns of labels, clients, categories and dates; those that the table lacks are ignored.
        inputs: the columns of numbers, lists or images that are inputs.
        window: number of rows in a sample.

    Raises:
        DataError: no sample is complete.
    """
    is_incomplete = np.zeros(frame.table.num_rows, dtype=bool)
    for column_name in (*(column_name for column_name in columns if column_name in frame.names), *inputs.lists):
        is_incomplete |= arrow_columns.find_empty_cells(frame.column(column_name))
    if inputs.numbers:
        is_incomplete |= np.isnan(frame.read_matrix(inputs.numbers, allow_missing=True)).any(1)
    for column_name in inputs.lists if not is_incomplete.all() else ():
        complete_rows = np.flatnonzero(~is_incomplete)
        x = frame.select_rows_at(complete_rows).read_arrays(column_name, allow_missing=True)
        is_incomplete[complete_rows] |= np.isnan(x).reshape(len(x), -1).any(1)
    is_incomplete = np.repeat(is_incomplete.reshape(-1, window).any(1), window)
    if is_incomplete.all():
        raise DataError(f"dataset.missing=drop: {frame.origin} has no row without a missing cell: set missing=mean")
    if not is_incomplete.any():
        return frame, ""
    share_text = f"{is_incomplete.sum()} of {len(is_incomplete)} rows"
    dropped_rows_note = f"{share_text} of {Path(frame.origin).name} dropped, cells are missing"
    return frame.select_rows_at(np.flatnonzero(~is_incomplete)), dropped_rows_note


def cut_series(frame: Frame, window: int, constant_columns: Sequence[str]) -> tuple[Frame, str]:
    """Cut a long table, one row per time step, into windows: samples of `window` rows each.

    A window holds consecutive rows of one series with one label and one client. Windows don't overlap. Rows at the end
    of a series that fill no window are left out. Rows of a series are taken in the order of the file.

    Args:
        frame: table with one row per time step.
        window: number of rows in a sample.
        constant_columns: the columns of series, labels and clients, which don't change within a window.

    Returns:
        The rows of whole windows, one after the other, and a note on how many rows are left out.

    Raises:
        DataError: no series has enough rows.
    """
    block_of_row = find_row_blocks(frame, [column for column in constant_columns if column in frame.names])
    block_sizes = np.bincount(block_of_row)
    time_step_of_row = np.arange(len(block_of_row)) - np.repeat(np.cumsum(block_sizes) - block_sizes, block_sizes)
    window_rows = np.flatnonzero(time_step_of_row < (block_sizes - block_sizes % window)[block_of_row])
    if not len(window_rows):
        columns_text = ", ".join(constant_columns)
        raise DataError(
            f"dataset.window={window}: {frame.origin} has no {window} consecutive rows of one {columns_text}; the "
            f"longest such series has {block_sizes.max()} rows: lower dataset.window"
        )
    n_skipped_rows = len(block_of_row) - len(window_rows)
    window_note = f"{len(window_rows) // window:,} window{'s' * (len(window_rows) != window)} of {window} rows"
    window_note += f", {n_skipped_rows:,} row{'s' * (n_skipped_rows != 1)} left out" if n_skipped_rows else ""
    return frame.select_rows_at(window_rows), window_note


def drop_small_clients(owners: Owners, client_of_sample: Ids, min_samples: int) -> tuple[Ids, str]:
    """Return the positions of the training samples of clients with enough of them, and a note on the others.

    Args:
        owners: the clients, whose names give their number.
        client_of_sample: the client of each training sample, int64 [N].
        min_samples: smallest number of samples of a client that is kept.

    Raises:
        DataError: no client has enough samples.
    """
    client_sizes = np.bincount(client_of_sample, minlength=len(owners.client_names))
    is_small_client = (client_sizes > 0) & (client_sizes < min_samples)
    kept_rows = np.flatnonzero(~is_small_client[client_of_sample])
    if not len(kept_rows):
        raise DataError(
            f"dataset.min_client_samples: no client has {min_samples} samples, the largest has {client_sizes.max()}; "
            "dataset.pool_small=true pools small clients"
        )
    n_small_clients = int(is_small_client.sum())
    return (
        kept_rows,
        f"{n_small_clients:,} client{'s' * (n_small_clients != 1)} with fewer than {min_samples} samples left out"
        if n_small_clients
        else "",
    )


def pool_small_clients(owners: Owners, client_of_sample: Ids, min_samples: int) -> tuple[Owners, str]:
    """Pool clients with few training samples, in the order of their names, until each pool has enough samples.

    Clients that are left over join the last pool. Test rows stay with their client. The result is the clients after
    pooling, and a note.

    Args:
        owners: clients of the training and test rows.
        client_of_sample: the client of each training sample, int64 [N], as in `owners`.
        min_samples: smallest number of samples of a client or pool afterwards.

    Raises:
        DataError: all small clients together have too few samples.
    """
    client_sizes = np.bincount(client_of_sample, minlength=len(owners.client_names))
    small_clients = np.flatnonzero((client_sizes > 0) & (client_sizes < min_samples))
    if not len(small_clients):
        return owners, ""
    if client_sizes[small_clients].sum() < min_samples:
        raise DataError(
            f"dataset.pool_small=true: the {len(small_clients)} clients with fewer than {min_samples} training samples "
            f"have {client_sizes[small_clients].sum()} together: choose a lower dataset.min_client_samples, or "
            "dataset.pool_small=false"
        )
    client_pools: list[list[int]] = [[]]
    for k in small_clients.tolist():
        if client_sizes[client_pools[-1]].sum() >= min_samples:
            client_pools.append([])
        client_pools[-1].append(k)
    if client_sizes[client_pools[-1]].sum() < min_samples:
        client_pools[-2:] = [client_pools[-2] + client_pools[-1]]
    new_client_numbers, client_names = np.arange(len(owners.client_names)), list(owners.client_names)
    for members_of_pool in client_pools:
        new_client_numbers[members_of_pool] = members_of_pool[0]
        client_names[members_of_pool[0]] += f" + {len(members_of_pool) - 1} more" if len(members_of_pool) > 1 else ""
    pool_note = (
        f"{len(small_clients):,} client{'s' * (len(small_clients) != 1)} with fewer than {min_samples} samples pooled "
        f"to {len(client_pools):,}"
    )
    test_clients = None if owners.test_clients is None else new_client_numbers[owners.test_clients]
    return renumber_clients(Owners(new_client_numbers[client_of_sample], test_clients, tuple(client_names))), pool_note


def renumber_clients(owners: Owners) -> Owners:
    """Return `owners` without the clients that own no row; the others are numbered from 0 in the same order."""
    part_clients = [client_ids for client_ids in (owners.train_clients, owners.test_clients) if client_ids is not None]
    present_clients, new_client_ids = np.unique(np.concatenate(part_clients), return_inverse=True)
    train_clients, test_clients = np.split(new_client_ids.astype(np.int64), [len(part_clients[0])])
    client_names = tuple(owners.client_names[k] for k in present_clients)
    return Owners(train_clients, test_clients if owners.test_clients is not None else None, client_names)
