"""Assign the training samples of a dataset to the server and the clients, and draw the labels that clients see.

First `subsample_rows` keeps the samples that a run uses. `draw_server_rows` then draws the server's validation samples,
and the partition distributes the other samples among clients. The samples of each client are shuffled and divided into
validation and training samples. Only `subsample_rows` copies inputs.
"""

import hashlib
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fedcohort.data.group_ranks import rank_within_group
from fedcohort.data.ragged import RaggedPositions
from fedcohort.data.shards import ClassCounts, owners_of_clients
from fedcohort.data.targets import Labels
from fedcohort.dataset.base import Raw
from fedcohort.errors import DataError, FedcohortError, OptionError
from fedcohort.feature_noise.base import FeatureNoise
from fedcohort.host import memory
from fedcohort.label_noise.base import LabelNoise
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.rng import Draws, RekeyedGenerator, new_generator
from fedcohort.startup.server_rows import MIN_CLIENT_ROWS, draw_server_rows
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class SplitOptions:
    """Options of the split of data into clients; `startup/options.py` has checked their ranges.

    Attributes:
        partition: distributes training samples among clients.
        label_noise: flips labels.
        seed: the data seed.
        clients: number of clients, None for the number of natural clients.
        server_val: share of the training data that the server holds for validation, in (0, 0.5].
        client_val: share of each client's samples that is held for validation, in [0, 0.5]; at
            least 2 samples are held.
        limit: number of training samples to use, None for all.
        feature_noise: disturbs inputs; None for no noise.
    """

    partition: Partition
    label_noise: LabelNoise
    seed: int
    clients: int | None
    server_val: float
    client_val: float
    limit: int | None = None
    feature_noise: FeatureNoise | None = None


@dataclass(frozen=True)
class SampleAssignment:
    """Assignment of the training samples to the server and the clients, before inputs are copied.

    Attributes:
        server_rows: positions of the server's validation samples, sorted.
        train_rows: positions of each client's training samples.
        val_rows: positions of each client's validation samples.
        train_y: labels that clients see, aligned with `train_rows`; None if no label is flipped.
        val_y: labels that clients see, aligned with `val_rows`; None if no label is flipped.
        class_counts: samples of each client and true class, training and validation together, int64 [clients, classes].
        noise_rate: rate of wrong labels of each client, float64 [clients].
        owner_ids: id of the natural client behind each client, [clients]; None if the partition makes the clients.
        n_unused_samples: number of training samples that neither a client nor the server holds.
        holder_hash: one hash of the holders (a client, the server, or none) of all training samples.
    """

    server_rows: Ids
    train_rows: RaggedPositions
    val_rows: RaggedPositions
    train_y: Labels | None
    val_y: Labels | None
    class_counts: ClassCounts
    noise_rate: Values
    owner_ids: Ids | None
    n_unused_samples: int
    holder_hash: str


def assign_samples(raw: Raw, options: SplitOptions) -> SampleAssignment:
    """Assign training samples to the server and to clients, and draw the labels that clients see.

    Args:
        raw: the dataset.
        options: options of the split.

    Raises:
        OptionError: the data do not suffice for the number of clients.
        DataError: a client or the server would get too few samples.
    """
    seed = options.seed
    server_rows = draw_server_rows(raw, options.server_val, new_generator(seed, "server_val"))
    memory.return_memory_to_system()
    client_rows = _distribute_rows(raw, server_rows, options)
    holder_hash = _hash_sample_holders(client_rows, server_rows, len(raw.train_y))
    owner_ids = None if raw.train_owner is None else owners_of_clients(raw.train_owner, client_rows)
    _shuffle_client_rows(client_rows, seed)
    noise_rates = options.label_noise.rates(Draws(seed, len(client_rows)))
    seen_labels = _flip_labels(options.label_noise, client_rows, raw.train_y, noise_rates, raw.n_classes, seed)
    class_counts = client_rows.count_by_stratum(raw.train_class[client_rows.rows], raw.n_strata)
    n_val_rows = np.maximum(2, np.rint(options.client_val * client_rows.sizes).astype(np.int64))
    is_val_row, val_rows, train_rows = client_rows.split_each_client(np.minimum(n_val_rows, client_rows.sizes - 1))
    train_y, val_y = (None, None) if seen_labels is None else (seen_labels[~is_val_row], seen_labels[is_val_row])
    n_unused_samples = len(raw.train_y) - len(server_rows) - len(client_rows.rows)
    row_sets, flipped_labels = (server_rows, train_rows, val_rows), (train_y, val_y)
    return SampleAssignment(
        *row_sets, *flipped_labels, class_counts, noise_rates, owner_ids, n_unused_samples, holder_hash
    )


def subsample_rows(raw: Raw, max_rows: int | None, seed: int) -> Raw:
    """Return the dataset with about `max_rows` training rows: the same random share of each class, or of each owner.

    Owners are the natural clients, if the data have them. At least three rows of each class or owner are kept.
    The test split is unchanged.

    Args:
        raw: the dataset.
        max_rows: number of rows; None for all.
        seed: the data seed.
    """
    if max_rows is None or max_rows >= len(raw.train_y):
        return raw
    stratum_by_row = raw.train_class if raw.train_owner is None else raw.train_owner
    kept_share = max_rows / len(stratum_by_row)
    n_kept_rows = np.maximum(np.floor(np.bincount(stratum_by_row) * kept_share + 0.5), MIN_CLIENT_ROWS)
    random_order = new_generator(seed, "limit").permutation(len(stratum_by_row))
    kept_rows = np.flatnonzero(rank_within_group(stratum_by_row, random_order) < n_kept_rows[stratum_by_row])
    train_arrays = {array_name: getattr(raw, f"train_{array_name}") for array_name in ("x", "y", "owner", "attribute")}
    return replace(
        raw,
        **{
            f"train_{array_name}": train_array[kept_rows]
            for array_name, train_array in train_arrays.items()
            if train_array is not None
        },
    )


def find_dataset_positions(server_rows: Ids, pool_positions: Ids) -> Ids:
    """Convert positions in the pool, the samples that the server does not hold, into positions in the training data.

    Args:
        server_rows: sorted positions of the server's samples in the training data.
        pool_positions: the positions to convert, int64 [n].
    """
    dataset_positions: Ids = np.searchsorted(server_rows - np.arange(len(server_rows)), pool_positions, side="right")
    dataset_positions += pool_positions
    return dataset_positions


def _distribute_rows(raw: Raw, server_rows: Ids, options: SplitOptions) -> RaggedPositions:
    """Distribute the training rows that the server does not hold. Return the positions of each client's rows.

    Args:
        raw: the dataset.
        server_rows: sorted positions of the server's rows.
        options: options of the split.

    Raises:
        OptionError: there are too few rows for the number of clients.
        DataError: a client has too few rows.
    """
    n_clients, max_rows = options.clients, options.limit
    strata = (raw.train_class, raw.n_strata)
    sample_pool = SamplePool(*strata, raw.train_owner, raw.train_attribute, raw.n_attributes, server_rows)
    if n_clients is not None and MIN_CLIENT_ROWS * n_clients > len(sample_pool):
        sample_limit_advice = "" if max_rows is None else f", or a larger split.limit than {max_rows}"
        raise OptionError(
            f"clients={n_clients} needs {MIN_CLIENT_ROWS * n_clients} training samples, {MIN_CLIENT_ROWS} per client, "
            f"but dataset={raw.name} has {len(sample_pool)} besides server_val; feasible: "
            f"clients<={len(sample_pool) // MIN_CLIENT_ROWS}{sample_limit_advice}"
        )
    pool_owners = sample_pool.all_owners
    K = 1 + int(pool_owners.max()) if n_clients is None and pool_owners is not None else n_clients or 1
    message_start = f"dataset={raw.name}: counting {raw.n_strata:,} classes at {K:,} clients"
    memory.require_memory(16 * K * raw.n_strata, message_start, "reduce dataset.n_classes or clients")
    try:
        client_rows = options.partition.split(sample_pool, n_clients, new_generator(options.seed, "partition"))
    except FedcohortError as error:
        raise type(error)(f"dataset={raw.name}: {error}") from error
    del sample_pool
    ragged_rows = (
        client_rows if isinstance(client_rows, RaggedPositions) else RaggedPositions.from_client_rows(client_rows)
    )
    if len(small_client_ids := np.flatnonzero(ragged_rows.sizes < MIN_CLIENT_ROWS)):
        owner_advice = raw.small_client_remedy if raw.train_owner is not None else ""
        row_advice = f"take fewer clients, or set partition.min_samples={MIN_CLIENT_ROWS} where the partition has it"
        raise DataError(
            f"dataset={raw.name}: fewer than {MIN_CLIENT_ROWS} training samples at {len(small_client_ids)} "
            f"client{'s' * (len(small_client_ids) != 1)} (client {small_client_ids[0]} has "
            f"{ragged_rows.sizes[small_client_ids[0]]}); {owner_advice or row_advice}"
        )
    return RaggedPositions(find_dataset_positions(server_rows, ragged_rows.rows), ragged_rows.offsets)


def _shuffle_client_rows(client_rows: RaggedPositions, seed: int) -> None:
    """Shuffle the positions of each client in `client_rows` in place, with a generator per client from `seed`."""
    rekeyed_rng, client_offsets = RekeyedGenerator(), client_rows.offsets.tolist()
    for k, (first_row, end_row) in enumerate(pairwise(client_offsets)):
        rekeyed_rng.rekey(seed, "client_split", client=k).shuffle(client_rows.rows[first_row:end_row])


def _flip_labels(
    label_noise: LabelNoise,
    client_rows: RaggedPositions,
    true_y: Labels,
    noise_rates: Values,
    n_classes: int,
    seed: int,
) -> Labels | None:
    """Return the labels that clients see, aligned with `client_rows.rows`; None if no client has label noise.

    Args:
        label_noise: flips the labels of a client.
        client_rows: positions of each client's rows.
        true_y: labels of all training rows.
        noise_rates: noise rate of each client, [clients]. Nothing is drawn for a client whose rate is 0.
        n_classes: number of labels.
        seed: the data seed.
    """
    noisy_client_ids = np.flatnonzero(noise_rates > 0).tolist()
    if not noisy_client_ids:
        return None
    seen_labels: Labels = true_y[client_rows.rows]
    rekeyed_rng = RekeyedGenerator()
    for k in noisy_client_ids:
        client_slice = slice(client_rows.offsets[k], client_rows.offsets[k + 1])
        rng = rekeyed_rng.rekey(seed, "label_flip", client=k)
        seen_labels[client_slice] = label_noise.flip(seen_labels[client_slice], noise_rates[k], n_classes, rng)
    return seen_labels


def _hash_sample_holders(client_rows: RaggedPositions, server_rows: Ids, n: int) -> str:
    """Return a hash of the holder of each training sample: a client's id, -2 for the server, -1 for no holder.

    Args:
        client_rows: positions of each client's samples.
        server_rows: positions of the server's samples.
        n: number of training samples.
    """
    holder_of_sample = np.full(n, -1, dtype="<i8")
    holder_of_sample[server_rows] = -2
    holder_of_sample[client_rows.rows] = np.repeat(np.arange(len(client_rows)), client_rows.sizes)
    return hashlib.blake2b(holder_of_sample.data, digest_size=8).hexdigest()
