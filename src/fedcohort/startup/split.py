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
from fedcohort.data.ragged import Ragged
from fedcohort.data.shards import ClassCounts, split_by_class, split_by_owner
from fedcohort.data.targets import Labels
from fedcohort.dataset.base import Raw
from fedcohort.dataset.checksum import compute_checksum
from fedcohort.errors import DataError
from fedcohort.feature_noise.base import disturb_clients
from fedcohort.host import memory
from fedcohort.rng import new_generator
from fedcohort.startup.assign import SplitOptions, assign_samples, thin_samples
from fedcohort.types import Ids

N_BLOCKS = 20  # of the columns of the inputs; one block is copied at a time when samples are reordered in place
COPIED_FIELDS = (  # fields of `Raw`
    *("name", "n_classes", "class_names", "columns", "categories", "revision"),
    *("feature_moments", "scale", "converted_scale"),
)


def build_federation(raw: Raw, options: SplitOptions) -> Federation:
    """Split a dataset into a federation. Equal arguments give equal bits.

    Args:
        raw: the dataset, whose inputs may be overwritten.
        options: options of the split.

    Raises:
        OptionError: the data do not suffice for the options; the message says what would be feasible.
        DataError: the data do not suffice for clients.
    """
    checksum = compute_checksum(raw)  # before the inputs are overwritten
    seed = options.seed
    raw = thin_samples(raw, options.limit, seed)
    assignment = assign_samples(raw, options)
    server, train, val = assignment.server, assignment.train, assignment.val
    test_owners = None if raw.pooled_test or raw.test_owner is None else assignment.owners  # None: dealt by class
    has_names = raw.owner_names and assignment.owners is not None
    input_notes = [*([raw.inputs] if raw.inputs else []), *_describe_unused(raw, assignment.n_unused, test_owners)]
    raw = replace(raw, train_owner=None)  # for small samples this array is a tenth of the inputs
    memory.return_free_memory()
    test = _assign_test_rows(raw, test_owners, len(train), assignment.class_counts, seed)
    train_x, val_x, server_x = _arrange_rows(raw, raw.train_x, (train.rows, val.rows, server))
    train_y, val_y, server_y = _arrange_rows(raw, raw.train_y, (train.rows, val.rows, server))
    memory.return_free_memory()
    noise = options.feature_noise
    disturbance = disturb_clients(noise, [(train_x, train), (val_x, val)], seed) if noise else None
    seen_train = train_y if assignment.train_y is None else assignment.train_y
    seen_val = val_y if assignment.val_y is None else assignment.val_y
    return Federation(
        **{name: getattr(raw, name) for name in COPIED_FIELDS},
        train=_make_shard(raw, train_x, train, seen_train, train_y),
        val=_make_shard(raw, val_x, val, seen_val, val_y),
        test=_make_shard(raw, raw.test_x[test.rows], test, raw.test_y[test.rows], raw.test_y[test.rows]),
        server_val=_make_rows(raw, *((server_x, server_y) if raw.valid is None else raw.valid)),
        server_test=_make_rows(raw, raw.test_x, raw.test_y),
        class_counts=assignment.class_counts,
        noise_rate=assignment.noise_rate,
        inputs="; ".join(input_notes),
        group_counts=_count_groups(raw, train, seen_train),
        server_test_attribute=raw.test_attribute,
        checksum=checksum,
        feature_noise=None if disturbance is None else disturbance.noise_levels,
        clean_row_hashes=None if disturbance is None else disturbance.clean_row_hashes,
        client_map=assignment.holder_hash,
        client_names=np.array(raw.owner_names)[assignment.owners] if has_names else None,
    )


def _describe_unused(raw: Raw, n_unused: int, test_owners: Ids | None) -> Iterator[str]:
    """Yield a text on training samples that no client holds, and one on test samples that only the server holds.

    Args:
        raw: the dataset.
        n_unused: number of unused training samples.
        test_owners: natural client of each client; None if test samples are not distributed by owner.
    """
    if n_unused:
        yield f"{n_unused:,} training samples are not assigned to any client"
    if test_owners is None or raw.test_owner is None or raw.train_owner is None:
        return
    without_training = ~np.isin(raw.test_owner, raw.train_owner)
    if without_training.any():
        n_owners = len(np.unique(raw.test_owner[without_training]))
        n_without = without_training.sum()
        yield f"{n_without:,} test samples of {n_owners:,} owners without training samples are held by the server only"


def _count_groups(raw: Raw, train: Ragged, labels: Labels) -> ClassCounts | None:
    """Return the samples of each client by observed label y and attribute a, in column A * y + a of [clients, C * A].

    Args:
        raw: the dataset, with C classes and A attributes; the result is None if it has no attribute.
        train: positions of each client's training samples.
        labels: labels that clients see, aligned with `train`.
    """
    if raw.train_attribute is None:
        return None
    A = raw.n_attributes
    return train.count_by_stratum(A * labels + raw.train_attribute[train.rows], A * raw.n_classes)


def _assign_test_rows(raw: Raw, owners: Ids | None, n_clients: int, counts: ClassCounts, seed: int) -> Ragged:
    """Return the positions of each client's rows in the test split; empty if the test split is the server's only.

    Args:
        raw: the dataset.
        owners: natural client of each client; None to distribute test rows by class.
        n_clients: number of clients.
        counts: samples of each client and class, [clients, classes].
        seed: the data seed.

    Raises:
        DataError: test rows are distributed by owner, and no client has any.
    """
    if raw.pooled_test:
        return Ragged.from_sizes(np.empty(0, dtype=np.int64), np.zeros(n_clients, dtype=np.int64))
    if owners is None or raw.test_owner is None:
        return split_by_class(raw.test_class, counts, new_generator(seed, "test_shards"))
    test = split_by_owner(raw.test_owner, owners)
    if not len(test.rows):
        raise DataError(
            f"dataset={raw.name}: no client of the training data has test rows; choose dataset.test=server to use the "
            "test rows at the server only. Otherwise split the data within clients, or remove the client column from "
            "the test file to distribute test rows by class"
        )
    return test


def _arrange_rows(raw: Raw, x: np.ndarray, row_sets: Sequence[Ids]) -> list[np.ndarray]:
    """Return the training inputs, or labels, at each of several disjoint sets of rows.

    Where `raw` is used once and the sets cover all rows, x is reordered in place and the results are views of it. The
    data of a large population are then held in memory once.

    Args:
        raw: the dataset.
        x: inputs or labels of all training rows.
        row_sets: positions of each set.
    """
    sizes = [len(positions) for positions in row_sets]
    is_reusable = raw.single_use and x.flags.c_contiguous and x.flags.writeable
    is_reusable = is_reusable and not any(np.may_share_memory(x, test_array) for test_array in (raw.test_x, raw.test_y))
    if not is_reusable or sum(sizes) < len(x):
        return [x[positions] for positions in row_sets]
    stops, flat_x = np.cumsum(sizes), x.reshape(len(x), -1)
    block_width = -(-flat_x.shape[1] // N_BLOCKS)
    for start in range(0, flat_x.shape[1], block_width):
        column_block = np.ascontiguousarray(flat_x[:, start : start + block_width])
        reordered = np.empty_like(column_block)
        for positions, part_block in zip(row_sets, np.split(reordered, stops[:-1]), strict=True):
            column_block.take(positions, axis=0, out=part_block, mode="clip")  # other modes use a buffer
        flat_x[:, start : start + block_width] = reordered
    return np.split(x, stops[:-1])


def _make_shard(raw: Raw, x: np.ndarray, clients: Ragged, y: Labels, true_y: Labels) -> Shard:
    """Return the shard of all clients.

    Args:
        raw: the dataset.
        x: inputs, aligned with the rows of `clients`.
        clients: positions of each client's samples.
        y: labels that clients see, aligned likewise.
        true_y: true labels, aligned likewise.
    """
    return Shard(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(true_y), clients.offsets, raw.targets)


def _make_rows(raw: Raw, x: np.ndarray, y: Labels) -> ServerSamples:
    return ServerSamples(torch.from_numpy(x), torch.from_numpy(y), raw.targets)
