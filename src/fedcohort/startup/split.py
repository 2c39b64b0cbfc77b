"""Who gets which samples. Everything that a seed of the data decides, and nothing else.

    training data -> server_val + partition;   client k's part, shuffled -> V_k (client_val of it, 2 at least) + T_k
    labels of T_k and V_k are flipped with the client's noise rate, and their inputs disturbed by its own level;
    E_k: a share of the test split as it is

server_val is cut before partitioning: a random share of each class, so that it has the classes of the
whole. Where the dataset has natural clients, three random rows of each owner are never taken for it. server_val and
server_test come from all owners, also where only some of them take part. Of a dataset that has a validation part of its
own (WaterBirds) that is server_val, and nothing is cut.

E_k of a natural client are its own test rows, otherwise its share of the test split (`partition.shards`). A client with
few samples may have an empty E_k, and everybody has where the test split is the server's alone (of other people).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from fedcohort.data.federation import Federation, Rows, Shard
from fedcohort.data.ragged import Ragged
from fedcohort.data.shards import Counts, deal, natural_owners, split_by_owner
from fedcohort.data.targets import Labels
from fedcohort.dataset.base import Raw
from fedcohort.dataset.checksum import checksum_of
from fedcohort.errors import DataError, FedcohortError, OptionError
from fedcohort.feature_noise.base import FeatureNoise, disturb_clients
from fedcohort.host import memory
from fedcohort.label_noise.base import LabelNoise
from fedcohort.partition.base import Partition, Stock
from fedcohort.rng import Draws, Rekeyed, generator
from fedcohort.startup.holdout import LEAST, past, server_rows, thin
from fedcohort.types import Ids, Values

SHARES = 20  # of a sample's numbers, put into order one after the other: what is copied at a time


def build(
    raw: Raw,
    partition: Partition,
    label_noise: LabelNoise,
    *,
    seed: int,
    clients: int | None,
    server_val: float,
    client_val: float,
    limit: int | None = None,
    feature_noise: FeatureNoise | None = None,
) -> Federation:
    """Split `raw`; `seed` is `data_seed`. Equal arguments give equal bits; raw's own inputs may be spent by it.

    The options are in their ranges: `startup/options.py` has checked them.

    Raises `OptionError` or `DataError` where the data don't suffice, naming what would be feasible.
    """
    checksum = checksum_of(raw)  # before its inputs are spent
    raw = thin(raw, limit, seed)
    held = server_rows(raw, server_val, generator(seed, "server_val"))
    memory.give_back()
    parts = _parts(raw, held, partition, clients, limit, seed)
    client_map = _hash_map(parts, held, len(raw.train_y))
    owners = None if raw.train_owner is None else natural_owners(raw.train_owner, parts)
    tested = None if raw.pooled_test or raw.test_owner is None else owners  # else tests are dealt by classes
    names = np.array(raw.owner_names)[owners] if raw.owner_names and owners is not None else None
    unused = len(raw.train_y) - len(held) - len(parts.rows)
    said = [*([raw.inputs] if raw.inputs else []), *_unused(raw, unused, tested)]
    raw = replace(raw, train_owner=None)  # of small samples an array of all of them is a tenth of the inputs
    memory.give_back()
    _shuffle(parts, seed)
    rates = label_noise.rates(Draws(seed, len(parts)))
    flipped = _flip_labels(label_noise, parts, raw.train_y, rates, raw.n_classes, seed)
    counts = parts.counts(raw.train_class[parts.rows], raw.n_strata)
    n_val = np.rint(client_val * parts.sizes).astype(np.int64)
    is_val, val, train = parts.cut(np.minimum(np.maximum(2, n_val), parts.sizes - 1))
    test = _test_rows(raw, tested, len(parts), counts, seed)
    del parts
    memory.give_back()
    train_x, val_x, server_x = _arrange(raw, raw.train_x, (train.rows, val.rows, held))
    train_y, val_y, server_y = _arrange(raw, raw.train_y, (train.rows, val.rows, held))
    memory.give_back()
    disturbed = disturb_clients(feature_noise, [(train_x, train), (val_x, val)], seed) if feature_noise else None
    seen_train, seen_val = (train_y, val_y) if flipped is None else (flipped[~is_val], flipped[is_val])
    return Federation(
        name=raw.name,
        n_classes=raw.n_classes,
        train=_shard(raw, train_x, train, seen_train, train_y),
        val=_shard(raw, val_x, val, seen_val, val_y),
        test=_shard(raw, raw.test_x[test.rows], test, raw.test_y[test.rows], raw.test_y[test.rows]),
        server_val=_rows(raw, *((server_x, server_y) if raw.valid is None else raw.valid)),
        server_test=_rows(raw, raw.test_x, raw.test_y),
        class_counts=counts,
        noise_rate=rates,
        inputs="; ".join(said),
        group_counts=_group_counts(raw, train, seen_train),
        server_test_attribute=raw.test_attribute,
        class_names=raw.class_names,
        columns=raw.columns,
        categories=raw.categories,
        standard=raw.standard,
        scale=raw.scale,
        converted=raw.converted,
        revision=raw.revision,
        checksum=checksum,
        feature_noise=None if disturbed is None else disturbed.levels,
        undisturbed=None if disturbed is None else disturbed.before,
        client_map=client_map,
        client_names=names,
    )


def _shuffle(parts: Ragged, seed: int) -> None:
    """Put each client's positions into a random order of its own, in place."""
    keyed, ends = Rekeyed(), parts.offsets.tolist()
    for k, (start, stop) in enumerate(pairwise(ends)):
        keyed.rekey(seed, "client_split", client=k).shuffle(parts.rows[start:stop])


def _flip_labels(
    noise: LabelNoise, parts: Ragged, true_y: Labels, rates: Values, n_classes: int, seed: int
) -> Labels | None:
    """Return the labels that clients see, aligned with `parts.rows`; None where all of them are right.

    Nothing is drawn for a client whose labels are. true_y: of all training rows.
    """
    noisy = np.flatnonzero(rates > 0).tolist()
    if not noisy:
        return None
    labels: Labels = true_y[parts.rows]
    keyed = Rekeyed()
    for k in noisy:
        own = slice(parts.offsets[k], parts.offsets[k + 1])
        labels[own] = noise.flip(labels[own], rates[k], n_classes, keyed.rekey(seed, "label_flip", client=k))
    return labels


def _hash_map(parts: Ragged, held: Ids, n: int) -> str:
    """Hash whose each training sample is: a client's number, -1 for nobody's, -2 for the server's."""
    owner = np.full(n, -1, dtype="<i8")
    owner[held] = -2
    for k, (start, stop) in enumerate(pairwise(parts.offsets.tolist())):
        owner[parts.rows[start:stop]] = k
    return hashlib.blake2b(owner.data, digest_size=8).hexdigest()


def _unused(raw: Raw, count: int, owners: Ids | None) -> Iterator[str]:
    """Say how many training samples no client has, and whose test samples nobody has as nobody trains for them."""
    if count:
        yield f"{count:,} training samples are no client's"
    if owners is None or raw.test_owner is None or raw.train_owner is None:
        return
    strangers = ~np.isin(raw.test_owner, raw.train_owner)
    if strangers.any():
        people = len(np.unique(raw.test_owner[strangers]))
        yield f"{strangers.sum():,} test samples of {people:,} without training samples are the server's alone"


def _group_counts(raw: Raw, train: Ragged, labels: Labels) -> Counts | None:
    """Count each T_k's samples by the label that the client sees and the attribute.

    labels: aligned with `train.rows`.
    """
    if raw.train_attribute is None:
        return None
    A = raw.n_attributes
    return train.counts(A * labels + raw.train_attribute[train.rows], A * raw.n_classes)


def _parts(raw: Raw, held: Ids, partition: Partition, clients: int | None, limit: int | None, seed: int) -> Ragged:
    """Deal the training data that aren't held: each client's positions among all, in an array of their own."""
    stock = Stock(raw.train_class, raw.n_strata, raw.train_owner, raw.train_attribute, raw.n_attributes, held)
    if clients is not None and LEAST * clients > len(stock):
        larger = "" if limit is None else f", or a larger split.limit than {limit}"
        raise OptionError(
            f"clients={clients} needs {LEAST * clients} training samples, {LEAST} a client, and dataset={raw.name} has "
            f"{len(stock)} besides server_val; feasible: clients<={len(stock) // LEAST}{larger}"
        )
    owners = stock.all_owners
    K = 1 + int(owners.max()) if clients is None and owners is not None else clients or 1
    memory.require(
        16 * K * raw.n_strata,
        f"dataset={raw.name}: counting {raw.n_strata:,} classes at {K:,} clients",
        "reduce dataset.n_classes or clients",
    )
    try:
        split = partition.split(stock, clients, generator(seed, "partition"))
    except FedcohortError as error:
        raise type(error)(f"dataset={raw.name}: {error}") from error
    del stock
    parts = split if isinstance(split, Ragged) else Ragged.from_parts(split)
    if len(poor := np.flatnonzero(parts.sizes < LEAST)):
        cure = raw.small_client_remedy if raw.train_owner is not None else ""
        cure = cure or f"take fewer clients, or set partition.min_samples={LEAST} where the partition has it"
        raise DataError(
            f"dataset={raw.name}: {len(poor)} clients have fewer than {LEAST} training samples (client {poor[0]} has "
            f"{parts.sizes[poor[0]]}); {cure}"
        )
    return Ragged(past(held, parts.rows), parts.offsets)


def _test_rows(raw: Raw, owners: Ids | None, n_clients: int, counts: Counts, seed: int) -> Ragged:
    """Return the positions of each client's E_k in the test split; none where that is the server's alone."""
    if raw.pooled_test:
        return Ragged.from_sizes(np.empty(0, dtype=np.int64), np.zeros(n_clients, dtype=np.int64))
    if owners is None or raw.test_owner is None:
        return deal(raw.test_class, counts, generator(seed, "test_shards"))
    test = split_by_owner(raw.test_owner, owners)
    if not len(test.rows):
        raise DataError(
            f"dataset={raw.name}: no client of the training data has test rows; choose dataset.test=server, which "
            "leaves them all to the server, or split the data within clients, or leave the client column out of the "
            "test file, so that test rows are dealt by classes"
        )
    return test


def _arrange(raw: Raw, x: np.ndarray, rows: Sequence[Ids]) -> list[np.ndarray]:
    """Return the training inputs, or labels, of each of `rows`, which are disjoint. x: of all training rows.

    Where `raw` is nobody else's and all of it is named they are views of it, put into another order where it stands:
    a large population's data are held once.
    """
    sizes, others = [len(each) for each in rows], (raw.test_x, raw.test_y)
    mine = raw.single_use and x.flags.c_contiguous and x.flags.writeable
    mine = mine and not any(np.may_share_memory(x, other) for other in others)
    if not mine or sum(sizes) < len(x):
        return [x[each] for each in rows]
    stops, flat = np.cumsum(sizes), x.reshape(len(x), -1)
    step = -(-flat.shape[1] // SHARES)
    for start in range(0, flat.shape[1], step):
        columns = np.ascontiguousarray(flat[:, start : start + step])
        moved = np.empty_like(columns)
        for each, part in zip(rows, np.split(moved, stops[:-1]), strict=True):
            columns.take(each, axis=0, out=part, mode="clip")  # by other modes numpy takes into an array of its own
        flat[:, start : start + step] = moved
    return np.split(x, stops[:-1])


def _shard(raw: Raw, x: np.ndarray, clients: Ragged, y: Labels, true_y: Labels) -> Shard:
    """Make the shard of `clients`; x, y and true_y are aligned with its rows."""
    return Shard(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(true_y), clients.offsets, raw.targets)


def _rows(raw: Raw, x: np.ndarray, y: Labels) -> Rows:
    return Rows(torch.from_numpy(x), torch.from_numpy(y), raw.targets)
