"""Assign the training samples of a dataset to the server and the clients, and draw the labels that clients see.

First `thin_samples` keeps the samples that a run uses. `draw_server_rows` then draws the server's validation samples,
and the partition distributes the other samples among clients. The samples of each client are shuffled and divided into
validation and training samples. Only `thin_samples` copies inputs.
"""

import hashlib
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fedcohort.data.group_ranks import rank_within_group
from fedcohort.data.ragged import Ragged
from fedcohort.data.shards import ClassCounts, natural_owners
from fedcohort.data.targets import Labels
from fedcohort.dataset.base import Raw
from fedcohort.errors import DataError, FedcohortError, OptionError
from fedcohort.feature_noise.base import FeatureNoise
from fedcohort.host import memory
from fedcohort.label_noise.base import LabelNoise
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.rng import Draws, RekeyedGenerator, new_generator
from fedcohort.startup.server_rows import MIN_SAMPLES, draw_server_rows
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
        client_val: share of each client's samples that is held for validation, in [0, 0.5]; at least 2 samples are.
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
class Assignment:
    """Assignment of the training samples to the server and the clients, before inputs are copied.

    Attributes:
        server: positions of the server's validation samples, sorted.
        train: positions of each client's training samples.
        val: positions of each client's validation samples.
        train_y: labels that clients see on their training samples, aligned with `train`; None if none is flipped.
        val_y: labels that clients see on their validation samples, aligned with `val`; None if none is flipped.
        class_counts: samples of each client and true class, training and validation together, int64 [clients, classes].
        noise_rate: rate of wrong labels of each client, float64 [clients].
        owners: id of the natural client behind each client, [clients]; None if the partition makes the clients.
        n_unused: number of training samples that neither a client nor the server holds.
        holder_hash: hash of the holder of each training sample.
    """

    server: Ids
    train: Ragged
    val: Ragged
    train_y: Labels | None
    val_y: Labels | None
    class_counts: ClassCounts
    noise_rate: Values
    owners: Ids | None
    n_unused: int
    holder_hash: str


def assign_samples(raw: Raw, options: SplitOptions) -> Assignment:
    """Assign training samples to the server and to clients, and draw the labels that clients see.

    Args:
        raw: the dataset.
        options: options of the split.

    Raises:
        OptionError: the data do not suffice for the number of clients.
        DataError: a client or the server would get too few samples.
    """
    seed = options.seed
    server = draw_server_rows(raw, options.server_val, new_generator(seed, "server_val"))
    memory.return_free_memory()
    clients = _distribute_rows(raw, server, options)
    owner_hash = _hash_holders(clients, server, len(raw.train_y))
    owners = None if raw.train_owner is None else natural_owners(raw.train_owner, clients)
    _shuffle_rows(clients, seed)
    noise_rates = options.label_noise.rates(Draws(seed, len(clients)))
    labels = _flip_labels(options.label_noise, clients, raw.train_y, noise_rates, raw.n_classes, seed)
    class_counts = clients.count_by_stratum(raw.train_class[clients.rows], raw.n_strata)
    n_val = np.rint(options.client_val * clients.sizes).astype(np.int64)
    is_val, val, train = clients.split_each_client(np.minimum(np.maximum(2, n_val), clients.sizes - 1))
    train_y, val_y = (None, None) if labels is None else (labels[~is_val], labels[is_val])
    n_unused = len(raw.train_y) - len(server) - len(clients.rows)
    return Assignment(server, train, val, train_y, val_y, class_counts, noise_rates, owners, n_unused, owner_hash)


def thin_samples(raw: Raw, limit: int | None, seed: int) -> Raw:
    """Return the dataset with about `limit` training rows: the same random share of each class, or of each owner.

    Owners are the natural clients, if the data have them. At least MIN_SAMPLES rows of each class or owner are kept.
    The test split is unchanged.

    Args:
        raw: the dataset.
        limit: number of rows; None for all.
        seed: the data seed.
    """
    if limit is None or limit >= len(raw.train_y):
        return raw
    group_by_row = raw.train_class if raw.train_owner is None else raw.train_owner
    group_sizes = np.bincount(group_by_row)
    rows_to_keep = np.maximum(np.floor(group_sizes * (limit / len(group_by_row)) + 0.5), MIN_SAMPLES)
    random_order = new_generator(seed, "limit").permutation(len(group_by_row))
    rows = np.flatnonzero(rank_within_group(group_by_row, random_order) < rows_to_keep[group_by_row])
    arrays_by_name = {name: getattr(raw, f"train_{name}") for name in ("x", "y", "owner", "attribute")}
    return replace(raw, **{f"train_{name}": array[rows] for name, array in arrays_by_name.items() if array is not None})


def convert_positions(server: Ids, rows: Ids) -> Ids:
    """Return positions among all samples of `rows`, positions among the samples that the server does not hold.

    Args:
        server: sorted positions of the server's samples.
        rows: positions without these samples, int64 [n].
    """
    positions: Ids = np.searchsorted(server - np.arange(len(server)), rows, side="right")
    positions += rows
    return positions


def _distribute_rows(raw: Raw, server: Ids, options: SplitOptions) -> Ragged:
    """Return the positions of each client's training rows, out of those that the server does not hold, in a new array.

    Args:
        raw: the dataset.
        server: sorted positions of the server's rows.
        options: options of the split.

    Raises:
        OptionError: there are too few rows for the number of clients.
        DataError: a client has too few rows.
    """
    clients, limit = options.clients, options.limit
    pool = SamplePool(raw.train_class, raw.n_strata, raw.train_owner, raw.train_attribute, raw.n_attributes, server)
    if clients is not None and MIN_SAMPLES * clients > len(pool):
        limit_text = "" if limit is None else f", or a larger split.limit than {limit}"
        raise OptionError(
            f"clients={clients} needs {MIN_SAMPLES * clients} training samples, {MIN_SAMPLES} per client, but "
            f"dataset={raw.name} has {len(pool)} besides server_val; feasible: "
            f"clients<={len(pool) // MIN_SAMPLES}{limit_text}"
        )
    owners = pool.all_owners
    K = 1 + int(owners.max()) if clients is None and owners is not None else clients or 1
    message_start = f"dataset={raw.name}: counting {raw.n_strata:,} classes at {K:,} clients"
    memory.require_memory(16 * K * raw.n_strata, message_start, "reduce dataset.n_classes or clients")
    try:
        client_rows = options.partition.split(pool, clients, new_generator(options.seed, "partition"))
    except FedcohortError as error:
        raise type(error)(f"dataset={raw.name}: {error}") from error
    del pool
    rows = client_rows if isinstance(client_rows, Ragged) else Ragged.from_client_rows(client_rows)
    if len(small_clients := np.flatnonzero(rows.sizes < MIN_SAMPLES)):
        advice = raw.small_client_remedy if raw.train_owner is not None else ""
        advice = advice or f"take fewer clients, or set partition.min_samples={MIN_SAMPLES} where the partition has it"
        raise DataError(
            f"dataset={raw.name}: {len(small_clients)} clients have fewer than {MIN_SAMPLES} training samples (client "
            f"{small_clients[0]} has {rows.sizes[small_clients[0]]}); {advice}"
        )
    return Ragged(convert_positions(server, rows.rows), rows.offsets)


def _shuffle_rows(clients: Ragged, seed: int) -> None:
    """Shuffle the positions of each client in `clients` in place, with a generator per client from `seed`."""
    generators, offsets = RekeyedGenerator(), clients.offsets.tolist()
    for k, (start, stop) in enumerate(pairwise(offsets)):
        generators.rekey(seed, "client_split", client=k).shuffle(clients.rows[start:stop])


def _flip_labels(
    label_noise: LabelNoise, clients: Ragged, true_y: Labels, rates: Values, n_classes: int, seed: int
) -> Labels | None:
    """Return the labels that clients see, aligned with `clients.rows`; None if no client has label noise.

    Args:
        label_noise: flips the labels of a client.
        clients: positions of each client's rows.
        true_y: labels of all training rows.
        rates: noise rate of each client, [clients]. Nothing is drawn for a client whose rate is 0.
        n_classes: number of labels.
        seed: the data seed.
    """
    noisy_clients = np.flatnonzero(rates > 0).tolist()
    if not noisy_clients:
        return None
    labels: Labels = true_y[clients.rows]
    generators = RekeyedGenerator()
    for k in noisy_clients:
        rows = slice(clients.offsets[k], clients.offsets[k + 1])
        rng = generators.rekey(seed, "label_flip", client=k)
        labels[rows] = label_noise.flip(labels[rows], rates[k], n_classes, rng)
    return labels


def _hash_holders(clients: Ragged, server: Ids, n: int) -> str:
    """Return a hash of the holder of each training sample: a client's id, -2 for the server, -1 for no holder.

    Args:
        clients: positions of each client's samples.
        server: positions of the server's samples.
        n: number of training samples.
    """
    holder_of_sample = np.full(n, -1, dtype="<i8")
    holder_of_sample[server] = -2
    holder_of_sample[clients.rows] = np.repeat(np.arange(len(clients)), clients.sizes)
    return hashlib.blake2b(holder_of_sample.data, digest_size=8).hexdigest()
