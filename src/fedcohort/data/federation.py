"""The federation: who holds which samples (`split.py` deals them)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int64, UInt64
from torch import Tensor

from fedcohort.data import skew
from fedcohort.data.pixels import PixelScale
from fedcohort.data.shards import Counts
from fedcohort.data.targets import ONE_CLASS, Targets
from fedcohort.types import Ids, ReadOnly, read_only

SHOWN = 12  # classes that a line names


@dataclass(frozen=True)
class Rows:
    """Inputs [n, ...] and labels that the server holds; targets: what these are."""

    x: Tensor
    y: Int64[Tensor, "n *places"]
    targets: Targets = ONE_CLASS

    def to(self, device: torch.device | str) -> "Rows":
        return Rows(self.x.to(device), self.y.to(device), self.targets)


@dataclass(frozen=True)
class Shard:
    """All clients' samples in one tensor; client k has the rows offsets[k]:offsets[k + 1].

    Attributes:
        x: [rows, ...].
        y: labels that the client sees.
        true_y: labels before noise.
        offsets: int64 [K + 1].
        targets: what labels are.
    """

    x: Tensor
    y: Int64[Tensor, "rows *places"]
    true_y: Int64[Tensor, "rows *places"]
    offsets: Ids
    targets: Targets = ONE_CLASS

    def of(self, client: int) -> tuple[Tensor, Tensor]:
        """Views of the client's inputs and labels."""
        rows = slice(int(self.offsets[client]), int(self.offsets[client + 1]))
        return self.x[rows], self.y[rows]

    def to(self, device: torch.device | str) -> "Shard":
        return Shard(self.x.to(device), self.y.to(device), self.true_y.to(device), self.offsets, self.targets)


@dataclass(frozen=True)
class Federation(ReadOnly):
    """n_train: sizes of T, int64 [K].

    Attributes:
        train, val, test: T, V, E of all clients.
        server_val, server_test: the server's; server_test is the whole split.
        n_classes: what a network tells apart at each target.
        class_counts: true labels over T and V, int64 [K, C]; [K, 1], samples, where these have no class of their own.
        noise_rate: [K].
        inputs: what a sample's numbers are, for people; may be empty.
        group_counts: samples of each T_k by class, as the client sees it, and attribute, int64 [K, C * A], class by
            class.
        server_test_attribute: int64. Both None where the dataset's attributes are not known.
        proxy: unlabelled inputs that the server holds (`proxy/`), [n, ...], or None.
        class_names, columns, categories, standard, scale, converted, revision: see `dataset.base.Raw`.
        checksum: of the data as they were loaded (`dataset.checksum`).
        feature_noise: how much each client's inputs are disturbed, [K], or None where nobody's are.
        undisturbed: hashes of the rows of T and V that are disturbed, as they were before (`data.row_hashes`), or None.
        client_names: what the data call each client, text [K]; None where they don't, or clients are made.
        client_map: a hash of whose each training sample is, 16 hexadecimal digits; "" where nobody made one.
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
    class_names: Sequence[str] = ()
    columns: Sequence[str] = ()
    categories: str = ""
    standard: tuple[np.ndarray, np.ndarray] | None = None
    scale: PixelScale | None = None
    revision: str = ""
    checksum: str = ""
    feature_noise: Float64[np.ndarray, "clients"] | None = None
    client_map: str = ""
    client_names: np.ndarray | None = None
    converted: PixelScale | None = None
    undisturbed: UInt64[np.ndarray, "rows"] | None = None

    @property
    def n_clients(self) -> int:
        return len(self.noise_rate)

    @property
    def targets(self) -> Targets:
        """What labels are."""
        return self.train.targets

    @property
    def is_symbolic(self) -> bool:
        """Whether inputs are symbols, numbered from 0, which a network looks up; not numbers, and not pixels."""
        return not self.server_test.x.is_floating_point() and self.scale is None

    @property
    def has_images(self) -> bool:
        """Whether samples are images, [channels, height, width]."""
        return self.server_test.x.dim() == 4

    @cached_property
    def n_train(self) -> Ids:
        counts: Ids = read_only(np.diff(self.train.offsets))
        return counts

    @cached_property
    def label_counts(self) -> Counts:
        """Labels of each T_k as the client sees them, int64 [K, C]; [K, 1], samples, as in `class_counts`."""
        owner = np.repeat(np.arange(self.n_clients), self.n_train)
        labels, n = self.targets.strata(self.train.y.cpu().numpy(), self.n_classes)
        counts: Counts = read_only(np.bincount(owner * n + labels, minlength=self.n_clients * n))
        return counts.reshape(self.n_clients, n)

    @cached_property
    def skew(self) -> dict[str, float]:
        """FedDiverse's six metrics of all T_k (`skew.py`), with labels as the clients see them.

        They are the two of the classes alone where the dataset's attributes are not known, and none without classes.
        """
        if not self.targets.single:
            return {}
        if self.group_counts is not None:
            return skew.metrics(self.group_counts.reshape(self.n_clients, self.n_classes, -1))
        found = skew.metrics(self.label_counts[:, :, None])
        return {name: value for name, value in found.items() if name.endswith("_ci")}

    def remarks(self) -> list[str]:
        """What a user should know of the data before they are trained on."""
        lines = []
        if len(absent := np.flatnonzero(self.class_counts.sum(0) == 0)):
            called = ", ".join(self.class_names[c] if self.class_names[c:] else str(c) for c in absent[:SHOWN])
            more = f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else ""
            lines.append(
                f"dataset={self.name}: no client has a sample of {len(absent)} of the {self.n_classes} classes "
                f"({called}{more}): nobody learns them"
            )
        return lines

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
            class_names=self.class_names,
            columns=self.columns,
            categories=self.categories,
            standard=self.standard,
            scale=self.scale,
            revision=self.revision,
            checksum=self.checksum,
            feature_noise=self.feature_noise,
            client_map=self.client_map,
            client_names=self.client_names,
            converted=self.converted,
            undisturbed=self.undisturbed,
        )
