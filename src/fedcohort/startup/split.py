"""Split a dataset into the federation of a run. Every draw is a function of the data seed.

    training data -> server_val + partition.
    samples of client k, shuffled -> V_k (a share client_val, at least 2) + T_k.
    labels of T_k and V_k -> flipped with the client's noise rate.
    inputs of T_k and V_k -> disturbed with the client's noise level.
    test data -> server_test, and a part E_k for each client.

server_val is cut before partitioning: a random share of each class, so that its class distribution is that of all data.
Where the dataset has natural clients, three random rows of each are never taken for it. server_val and server_test hold
samples of all owners, also where fewer clients take part. A dataset with its own validation split (WaterBirds) uses it
as server_val, and nothing is cut.

E_k of a natural client are its own test rows. For other partitions, E_k is a share of the test split
(`data.shards`). E_k may be empty for a client with few samples. It is empty for all clients where the test split
belongs to the server only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from fedcohort.data.federation import Federation, ServerSamples, Shard
from fedcohort.data.ragged import RaggedPositions
from fedcohort.data.shards import ClassCounts, split_by_class, split_test_rows_by_owner
from fedcohort.data.targets import Labels
from fedcohort.dataset.base import Raw
from fedcohort.dataset.checksum import compute_checksum
from fedcohort.errors import DataError
from fedcohort.feature_noise.base import disturb_clients
from fedcohort.host import memory
from fedcohort.rng import new_generator
from fedcohort.startup.assign import SplitOptions, assign_samples, subsample_rows
from fedcohort.types import Ids

N_COLUMN_BLOCKS = 5  # of the columns of the inputs; one block is copied at a time when samples are reordered in place
COPIED_RAW_FIELDS = (  # fields of `Raw`
    *("name", "n_classes", "n_attributes", "class_names", "columns", "categories", "revision"),
    *("feature_moments", "scale", "converted_scale"),
)


def build_federation(raw: Raw, split_options: SplitOptions) -> Federation:
    """Split a dataset into a federation. Equal arguments give results that are equal to the bit.

    Args:
        raw: the dataset, whose inputs may be overwritten.
        split_options: options of the split.

    Raises:
        OptionError: the data do not suffice for the options; the message says what would be feasible.
        DataError: the data do not suffice for clients.
    """
    checksum = compute_checksum(raw)  # before the inputs are overwritten
    seed = split_options.seed
    raw = subsample_rows(raw, split_options.limit, seed)
    assignment = assign_samples(raw, split_options)
    server_rows, train_rows, val_rows = assignment.server_rows, assignment.train_rows, assignment.val_rows
    test_owner_ids = None if raw.pooled_test or raw.test_owner is None else assignment.owner_ids  # None: dealt by class
    has_client_names = raw.owner_names and assignment.owner_ids is not None
    unused_samples_texts = [*_describe_unused_samples(raw, assignment.n_unused_samples, test_owner_ids)]
    raw = replace(raw, train_owner=None)  # for small samples this array is a tenth of the inputs
    memory.return_memory_to_system()
    test_rows = _assign_test_rows(raw, test_owner_ids, len(train_rows), assignment.class_counts, seed)
    test_y = raw.test_y[test_rows.rows]
    train_x, val_x, server_x = _take_row_sets(raw, raw.train_x, (train_rows.rows, val_rows.rows, server_rows))
    train_y, val_y, server_y = _take_row_sets(raw, raw.train_y, (train_rows.rows, val_rows.rows, server_rows))
    memory.return_memory_to_system()
    feature_noise = split_options.feature_noise
    client_inputs = [(train_x, train_rows), (val_x, val_rows)]
    input_disturbance = disturb_clients(feature_noise, client_inputs, seed) if feature_noise else None
    seen_train_y = train_y if assignment.train_y is None else assignment.train_y
    return Federation(
        **{field_name: getattr(raw, field_name) for field_name in COPIED_RAW_FIELDS},
        train=_make_client_shard(raw, train_x, train_rows, seen_train_y, train_y),
        val=_make_client_shard(raw, val_x, val_rows, val_y if assignment.val_y is None else assignment.val_y, val_y),
        test=_make_client_shard(raw, raw.test_x[test_rows.rows], test_rows, test_y, test_y),
        server_val=_make_server_samples(raw, *((server_x, server_y) if raw.valid is None else raw.valid)),
        server_test=_make_server_samples(raw, raw.test_x, raw.test_y),
        class_counts=assignment.class_counts,
        noise_rate=assignment.noise_rate,
        inputs="; ".join(filter(None, (raw.inputs, *unused_samples_texts))),
        train_attribute=None if raw.train_attribute is None else raw.train_attribute[train_rows.rows],
        server_test_attribute=raw.test_attribute,
        checksum=checksum,
        feature_noise=None if input_disturbance is None else input_disturbance.noise_levels,
        clean_row_hashes=None if input_disturbance is None else input_disturbance.clean_row_hashes,
        client_map=assignment.holder_hash,
        client_names=np.array(raw.owner_names)[assignment.owner_ids] if has_client_names else None,
    )


def _describe_unused_samples(raw: Raw, n_unused_samples: int, test_owner_ids: Ids | None) -> Iterator[str]:
    """Yield a text on training samples that no client holds, and one on test samples that only the server holds.

    Args:
        raw: the dataset.
        n_unused_samples: number of unused training samples.
        test_owner_ids: for each client of the run, the client of the dataset (such as a writer) whose test samples it
            has; None if test samples are not distributed in this way.
    """
    if n_unused_samples:
        yield f"{n_unused_samples:,} training samples are not assigned to any client"
    if test_owner_ids is None or raw.test_owner is None or raw.train_owner is None:
        return
    has_test_rows_only = ~np.isin(raw.test_owner, raw.train_owner)
    if has_test_rows_only.any():
        n_owners = len(np.unique(raw.test_owner[has_test_rows_only]))
        n_samples = has_test_rows_only.sum()
        yield f"{n_samples:,} test samples of {n_owners:,} owners without training samples are held by the server only"


def _assign_test_rows(
    raw: Raw, owner_ids: Ids | None, n_clients: int, class_counts: ClassCounts, seed: int
) -> RaggedPositions:
    """Return the positions of each client's rows in the test split; empty if the test split is the server's only.

    Args:
        raw: the dataset.
        owner_ids: natural client of each client; None to distribute test rows by class.
        n_clients: number of clients.
        class_counts: samples of each client and class, [clients, classes].
        seed: the data seed.

    Raises:
        DataError: test rows are distributed by owner, and no client has any.
    """
    if raw.pooled_test:
        return RaggedPositions.from_sizes(np.empty(0, dtype=np.int64), np.zeros(n_clients, dtype=np.int64))
    if owner_ids is None or raw.test_owner is None:
        return split_by_class(raw.test_class, class_counts, new_generator(seed, "test_shards"))
    test_rows = split_test_rows_by_owner(raw.test_owner, owner_ids)
    if not len(test_rows.rows):
        raise DataError(
            f"dataset={raw.name}: no client of the training data has test rows; choose dataset.test=server to use the "
            "test rows at the server only. Otherwise split the data within clients, or remove the client column from "
            "the test file to distribute test rows by class"
        )
    return test_rows


def _take_row_sets(raw: Raw, x: np.ndarray, row_sets: Sequence[Ids]) -> list[np.ndarray]:
    """Return the training inputs, or labels, at each of several disjoint sets of rows.

    If the sets cover all rows and `raw.single_use` allows changes, x is reordered in place. The results are then views
    of x, so that the data of a large population are in memory once.

    Args:
        raw: the dataset.
        x: inputs or labels of all training rows.
        row_sets: positions of each set.
    """
    row_set_sizes = [len(row_positions) for row_positions in row_sets]
    may_reorder_x = raw.single_use and x.flags.c_contiguous and x.flags.writeable
    may_reorder_x = may_reorder_x and not any(
        np.may_share_memory(x, test_array) for test_array in (raw.test_x, raw.test_y)
    )
    if not may_reorder_x or sum(row_set_sizes) < len(x):
        return [x[row_positions] for row_positions in row_sets]
    row_set_offsets, flat_x = np.cumsum(row_set_sizes), x.reshape(len(x), -1)
    column_block_width = -(-flat_x.shape[1] // N_COLUMN_BLOCKS)
    for first_column in range(0, flat_x.shape[1], column_block_width):
        column_block = np.ascontiguousarray(flat_x[:, first_column : first_column + column_block_width])
        reordered_block = np.empty_like(column_block)
        for row_positions, rows_of_set in zip(row_sets, np.split(reordered_block, row_set_offsets[:-1]), strict=True):
            column_block.take(row_positions, axis=0, out=rows_of_set, mode="clip")  # other modes use a buffer
        flat_x[:, first_column : first_column + column_block_width] = reordered_block
    return np.split(x, row_set_offsets[:-1])


def _make_client_shard(raw: Raw, x: np.ndarray, client_rows: RaggedPositions, y: Labels, true_y: Labels) -> Shard:
    """Return the shard of all clients.

    Args:
        raw: the dataset.
        x: inputs, aligned with the rows of `client_rows`.
        client_rows: positions of each client's samples.
        y: labels that clients see, aligned likewise.
        true_y: true labels, aligned likewise.
    """
    return Shard(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(true_y), client_rows.offsets, raw.targets)


def _make_server_samples(raw: Raw, x: np.ndarray, y: Labels) -> ServerSamples:
    return ServerSamples(torch.from_numpy(x), torch.from_numpy(y), raw.targets)
