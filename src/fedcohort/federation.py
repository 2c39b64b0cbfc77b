"""The federation: who holds which samples. Everything that a seed of the data decides, and nothing else.

    training data -> server_val + partition;   client k's part, shuffled -> V_k (client_val of it, 2 at least) + T_k
    labels of T_k and V_k are flipped with the client's noise rate;   E_k: a share of the test split, original labels

server_val (DESIGN 9.6) is cut before partitioning: a random share of each class, so that it has the classes of the
whole. Where the dataset has natural clients, three random rows of each owner are never taken for it. server_val and
server_test come from all owners, also where only some of them take part.

E_k of a natural client are its own test rows, otherwise its share of the test split (`partition.shards`). A client with
few samples may have an empty E_k.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from fedcohort import ranges, skew
from fedcohort.dataset.base import Raw
from fedcohort.errors import DataError, FedcohortError, OptionError
from fedcohort.label_noise.base import LabelNoise, flip
from fedcohort.partition.base import Partition
from fedcohort.partition.shards import Counts, dealt, natural_owners, owned
from fedcohort.rng import Draws, generator
from fedcohort.types import Ids

LEAST = 3  # samples of a client: one to train on, two in V_k


@dataclass(frozen=True)
class Rows:
    """Inputs [n, ...] and labels [n] that the server holds."""

    x: Tensor
    y: Int64[Tensor, "n"]

    def to(self, device: torch.device | str) -> "Rows":
        return Rows(self.x.to(device), self.y.to(device))


@dataclass(frozen=True)
class Shard:
    """All clients' samples in one tensor; client k has the rows offsets[k]:offsets[k + 1].

    x: [rows, ...]. y: labels that the client sees. true_y: labels before noise. offsets: int64 [K + 1].
    """

    x: Tensor
    y: Int64[Tensor, "rows"]
    true_y: Int64[Tensor, "rows"]
    offsets: Ids

    def of(self, client: int) -> tuple[Tensor, Tensor]:
        """Views of the client's inputs and labels."""
        rows = slice(int(self.offsets[client]), int(self.offsets[client + 1]))
        return self.x[rows], self.y[rows]

    def to(self, device: torch.device | str) -> "Shard":
        return Shard(self.x.to(device), self.y.to(device), self.true_y.to(device), self.offsets)


@dataclass(frozen=True)
class Federation:
    """train, val, test: T, V, E of all clients. server_val, server_test: the server's; server_test is the whole split.

    n_train: sizes of T, int64 [K]. class_counts: true labels over T and V, int64 [K, C]. noise_rate: [K].
    inputs: what a sample's numbers are, for people; may be empty.
    group_counts: samples of each T_k by class, as the client sees it, and attribute, int64 [K, C * A], class by class.
    server_test_attribute: int64. Both None where the dataset's attributes are not known.
    proxy: unlabelled inputs that the server holds (`proxy/`), [n, ...], or None.
    """

    name: str
    n_classes: int
    train: Shard
    val: Shard
    test: Shard
    server_val: Rows
    server_test: Rows
    class_counts: Counts
    noise_rate: Float64[np.ndarray, "clients"]
    inputs: str = ""
    group_counts: Counts | None = None
    server_test_attribute: Ids | None = None
    proxy: Tensor | None = None

    @property
    def n_clients(self) -> int:
        return len(self.noise_rate)

    @cached_property
    def n_train(self) -> Ids:
        return np.diff(self.train.offsets)

    @cached_property
    def label_counts(self) -> Counts:
        """Labels of each T_k as the client sees them, int64 [K, C]."""
        owner = np.repeat(np.arange(self.n_clients), self.n_train)
        flat = np.bincount(
            owner * self.n_classes + self.train.y.cpu().numpy(), minlength=self.n_clients * self.n_classes
        )
        return flat.reshape(self.n_clients, self.n_classes)

    @cached_property
    def skew(self) -> dict[str, float]:
        """FedDiverse's six metrics of all T_k (`skew.py`), labels as the clients see them; the two of the classes where
        the dataset's attributes are not known.
        """
        if self.group_counts is not None:
            return skew.metrics(self.group_counts.reshape(self.n_clients, self.n_classes, -1))
        found = skew.metrics(self.label_counts[:, :, None])
        return {name: value for name, value in found.items() if name.endswith("_ci")}

    def to(self, device: torch.device | str) -> "Federation":
        """The same federation with all tensors on `device`."""
        return Federation(
            name=self.name,
            n_classes=self.n_classes,
            train=self.train.to(device),
            val=self.val.to(device),
            test=self.test.to(device),
            server_val=self.server_val.to(device),
            server_test=self.server_test.to(device),
            class_counts=self.class_counts,
            noise_rate=self.noise_rate,
            inputs=self.inputs,
            group_counts=self.group_counts,
            server_test_attribute=self.server_test_attribute,
            proxy=None if self.proxy is None else self.proxy.to(device),
        )


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
) -> Federation:
    """Split `raw`; `seed` is `data_seed`. Equal arguments give equal bits.

    Raises `OptionError` or `DataError` where the data don't suffice, naming what would be feasible.
    """
    ranges.number("split.server_val", server_val, "(0, 0.5]")
    ranges.number("split.client_val", client_val, "[0, 0.5]")
    ranges.integer("clients", clients, "[1, inf)", optional=True)
    ranges.integer("split.limit", limit, "[1, inf)", optional=True)
    raw = thinned(raw, limit, seed)
    held = _server_rows(raw, server_val, generator(seed, "server_val"))
    parts = _parts(raw, np.setdiff1d(np.arange(len(raw.train_y)), held), partition, clients, seed)
    parts = [generator(seed, "client_split", client=k).permutation(part) for k, part in enumerate(parts)]
    rates = label_noise.rates(Draws(seed, len(parts)))
    seen = [
        flip(raw.train_y[part], rates[k], raw.n_classes, generator(seed, "label_flip", client=k))
        for k, part in enumerate(parts)
    ]
    n_val = [min(max(2, round(client_val * len(part))), len(part) - 1) for part in parts]
    cut = list(zip(parts, seen, n_val, strict=True))
    counts = np.stack([np.bincount(raw.train_y[part], minlength=raw.n_classes) for part in parts])
    test = _test_rows(raw, parts, counts, seed)
    return Federation(
        name=raw.name,
        n_classes=raw.n_classes,
        train=_shard(raw.train_x, raw.train_y, [(rows[n:], y[n:]) for rows, y, n in cut]),
        val=_shard(raw.train_x, raw.train_y, [(rows[:n], y[:n]) for rows, y, n in cut]),
        test=_shard(raw.test_x, raw.test_y, [(rows, raw.test_y[rows]) for rows in test]),
        server_val=_rows(raw.train_x[held], raw.train_y[held]),
        server_test=_rows(raw.test_x, raw.test_y),
        class_counts=counts,
        noise_rate=rates,
        inputs=raw.inputs,
        group_counts=_group_counts(raw, [(rows[n:], y[n:]) for rows, y, n in cut]),
        server_test_attribute=raw.test_attribute,
    )


def thinned(raw: Raw, limit: int | None, seed: int) -> Raw:
    """About `limit` training rows: a random share of each class, or of each owner and then at least LEAST of its rows.

    The test split stays whole.
    """
    if limit is None or limit >= len(raw.train_y):
        return raw
    groups = raw.train_y if raw.train_owner is None else raw.train_owner
    sizes = np.bincount(groups)
    quota = np.maximum(np.floor(sizes * (limit / len(groups)) + 0.5), LEAST)
    rows = np.flatnonzero(_rank(groups, generator(seed, "limit")) < quota[groups])
    return replace(
        raw,
        train_x=raw.train_x[rows],
        train_y=raw.train_y[rows],
        train_owner=None if raw.train_owner is None else raw.train_owner[rows],
        train_attribute=None if raw.train_attribute is None else raw.train_attribute[rows],
    )


def _group_counts(raw: Raw, clients: Sequence[tuple[Ids, Ids]]) -> Counts | None:
    """From each client's (positions, labels that it sees)."""
    if raw.train_attribute is None:
        return None
    A = raw.n_attributes
    groups = [A * y + raw.train_attribute[rows] for rows, y in clients]
    return np.stack([np.bincount(group, minlength=A * raw.n_classes) for group in groups])


def _rank(groups: Ids, rng: np.random.Generator) -> Ids:
    """The place of each row in a random order of its own group, counted from 0."""
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups))])
    rank = np.empty(len(groups), dtype=np.int64)
    rank[order] = np.arange(len(groups)) - starts[groups[order]]
    return rank


def _server_rows(raw: Raw, share: float, rng: np.random.Generator) -> Ids:
    """Sorted positions of server_val: `share` of each class to within one row, fewer where owners can't spare them."""
    y, wanted = raw.train_y, max(1, round(share * len(raw.train_y)))
    in_class = (_rank(y, rng) + rng.random(raw.n_classes)[y]) / np.bincount(y, minlength=raw.n_classes)[y]
    if raw.train_owner is not None:
        in_class[_rank(raw.train_owner, rng) < LEAST] = np.inf
    rows = np.argsort(in_class, kind="stable")[:wanted]
    rows = np.sort(rows[np.isfinite(in_class[rows])])
    if len(rows) == 0:
        raise DataError(
            f"dataset={raw.name}: no owner has more than {LEAST} training samples, none is left for server_val"
        )
    return rows


def _parts(raw: Raw, rows: Ids, partition: Partition, clients: int | None, seed: int) -> list[Ids]:
    """Each client's positions in the training data, out of `rows`."""
    if clients is not None and LEAST * clients > len(rows):
        raise OptionError(
            f"clients={clients} needs {LEAST * clients} training samples, {LEAST} a client, and dataset={raw.name} has "
            f"{len(rows)} besides server_val; feasible: clients<={len(rows) // LEAST}"
        )
    owner = None if raw.train_owner is None else raw.train_owner[rows]
    try:
        split = partition.split(raw.train_y[rows], raw.n_classes, clients, owner, generator(seed, "partition"))
    except FedcohortError as error:
        raise type(error)(f"dataset={raw.name}: {error}") from error
    poor = [k for k, part in enumerate(split) if len(part) < LEAST]
    if poor:
        raise DataError(
            f"dataset={raw.name}: {len(poor)} clients have fewer than {LEAST} training samples (client {poor[0]} has "
            f"{len(split[poor[0]])}); take fewer clients, leave such clients out of the data, or set "
            f"partition.min_samples={LEAST} where the partition has it"
        )
    return [rows[part] for part in split]


def _test_rows(raw: Raw, parts: Sequence[Ids], counts: Counts, seed: int) -> list[Ids]:
    """Positions of each client's E_k in the test split."""
    owners = None if raw.train_owner is None else natural_owners(raw.train_owner, parts)
    if owners is None or raw.test_owner is None:
        return dealt(raw.test_y, counts, generator(seed, "test_shards"))
    rows = owned(raw.test_owner, owners)
    if not any(len(own) for own in rows):
        raise DataError(
            f"dataset={raw.name}: no client of the training data has test rows; split the data within clients, or "
            "leave the client column out of the test file, so that test rows are dealt by classes"
        )
    return rows


def _shard(x: np.ndarray, true_y: Ids, clients: Sequence[tuple[Ids, Ids]]) -> Shard:
    """Gather each client's (positions, labels that it sees); `x` is copied once."""
    rows, y = (np.concatenate(part) for part in zip(*clients, strict=True))
    offsets = np.concatenate([[0], np.cumsum([len(part) for part, _ in clients])])
    return Shard(torch.from_numpy(x[rows]), torch.from_numpy(y), torch.from_numpy(true_y[rows]), offsets)


def _rows(x: np.ndarray, y: Ids) -> Rows:
    return Rows(torch.from_numpy(x), torch.from_numpy(y))
