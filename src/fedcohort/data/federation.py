"""The federation: all samples, and the client or server that holds each (`startup/split.py` makes it)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int64, UInt64
from torch import Tensor

from fedcohort.data import skew
from fedcohort.data.pixels import PixelScale
from fedcohort.data.ragged import RaggedPositions
from fedcohort.data.shards import ClassCounts
from fedcohort.data.targets import ONE_CLASS, Targets
from fedcohort.rng import NO_ROUND, Draws
from fedcohort.types import Ids, ReadOnly, read_only

MAX_NAMED_ABSENT_CLASSES = 12  # class names in a message


@dataclass(frozen=True)
class ServerSamples:
    """Samples that the server holds.

    Attributes:
        x: inputs, [n, ...].
        y: labels, int64 [n], or [n, positions] for sequences.
        targets: whether a label is one class or one class per position.
    """

    x: Tensor
    y: Int64[Tensor, "n *places"]
    targets: Targets = ONE_CLASS

    def to(self, device: torch.device | str) -> "ServerSamples":
        return ServerSamples(self.x.to(device), self.y.to(device), self.targets)


@dataclass(frozen=True)
class Shard:
    """The samples of all clients in one tensor; client k has the rows offsets[k]:offsets[k + 1].

    Attributes:
        x: inputs, [rows, ...].
        y: labels that clients see, with label noise, int64 [rows] or [rows, positions].
        true_y: labels before label noise, with the shape of `y`.
        offsets: first row of each client, and the number of rows, int64 [K + 1].
        targets: whether a label is one class or one class per position.
    """

    x: Tensor
    y: Int64[Tensor, "rows *places"]
    true_y: Int64[Tensor, "rows *places"]
    offsets: Ids
    targets: Targets = ONE_CLASS

    def client_samples(self, client: int) -> tuple[Tensor, Tensor]:
        """Return views of the inputs [n_k, ...] and the labels [n_k, ...] of the client with the id `client`."""
        client_slice = slice(int(self.offsets[client]), int(self.offsets[client + 1]))
        return self.x[client_slice], self.y[client_slice]

    def to(self, device: torch.device | str) -> "Shard":
        return Shard(self.x.to(device), self.y.to(device), self.true_y.to(device), self.offsets, self.targets)


@dataclass(frozen=True)
class Federation(ReadOnly):
    """All data of a run.

    Attributes:
        name: name of the dataset.
        n_classes: number of classes of each target.
        train: training samples of all clients.
        val: validation samples of all clients.
        test: the clients' shares of the test split.
        server_val: validation samples of the server.
        server_test: the whole test split.
        class_counts: training and validation samples of each client by true class, int64 [K, C]; the numbers of
            samples, [K, 1], if a sample has more than one class.
        noise_rate: probability that a label of each client is wrong, [K].
        inputs: description of the inputs for people; may be empty.
        train_attribute: attribute of each training sample, int64 [rows of `train`]; None without attributes.
        n_attributes: number of different values A of the attribute; 0 without attributes.
        server_test_attribute: attribute of each sample of server_test, int64; None without attributes.
        proxy: unlabelled inputs that the server holds (`proxy/`), [n, ...], or None.
        class_names, columns, categories, feature_moments, scale, converted_scale, revision: see `dataset.base.Raw`.
        checksum: hash of the data as loaded (`dataset.checksum`).
        feature_noise: level of feature noise of each client, [K]; None if no client has any.
        clean_row_hashes: hashes (`data.row_hashes`) before feature noise of the inputs that have it, or None.
        client_names: the dataset's names of the clients, text [K]; None without natural clients.
        client_map: hash of the assignment of training samples to clients, 16 hexadecimal digits; may be empty.
    """

    name: str
    n_classes: int
    train: Shard
    val: Shard
    test: Shard
    server_val: ServerSamples
    server_test: ServerSamples
    class_counts: ClassCounts
    noise_rate: Float64[np.ndarray, "clients"]
    inputs: str = ""
    train_attribute: Ids | None = None
    n_attributes: int = 0
    server_test_attribute: Ids | None = None
    proxy: Tensor | None = None
    class_names: Sequence[str] = ()
    columns: Sequence[str] = ()
    categories: str = ""
    feature_moments: tuple[np.ndarray, np.ndarray] | None = None
    scale: PixelScale | None = None
    revision: str = ""
    checksum: str = ""
    feature_noise: Float64[np.ndarray, "clients"] | None = None
    client_map: str = ""
    client_names: np.ndarray | None = None
    converted_scale: PixelScale | None = None
    clean_row_hashes: UInt64[np.ndarray, "rows"] | None = None

    @property
    def n_clients(self) -> int:
        return len(self.noise_rate)

    @property
    def targets(self) -> Targets:
        """Whether a label is one class or one class per position."""
        return self.train.targets

    @property
    def is_symbolic(self) -> bool:
        """Whether inputs are tokens, integers from 0 that a network looks up in an embedding."""
        return not self.server_test.x.is_floating_point() and self.scale is None

    @property
    def has_images(self) -> bool:
        """Whether samples are images, [channels, height, width]."""
        return self.server_test.x.dim() == 4

    @cached_property
    def n_train(self) -> Ids:
        """Number of training samples of each client, int64 [K]."""
        return read_only(np.diff(self.train.offsets))

    @cached_property
    def label_counts(self) -> ClassCounts:
        """Training samples of each client by observed (possibly noisy) label, int64 [K, C]; [K, 1] for sequences."""
        return self._count_by_stratum(*self.targets.strata(self.train.y.cpu().numpy(), self.n_classes))

    @cached_property
    def group_counts(self) -> ClassCounts | None:
        """Training samples of each client by observed label y and attribute a, in column A * y + a of int64 [K, C * A].

        None without attributes.
        """
        if self.train_attribute is None:
            return None
        group_of_sample = self.n_attributes * self.train.y.cpu().numpy() + self.train_attribute
        return self._count_by_stratum(group_of_sample, self.n_attributes * self.n_classes)

    def _count_by_stratum(self, stratum_of_sample: Ids, n_strata: int) -> ClassCounts:
        """Return the training samples of each client by stratum, such as the class, int64 [K, n_strata].

        `stratum_of_sample` has the stratum of each row of `train`.
        """
        client_samples = RaggedPositions.from_sizes(np.arange(len(stratum_of_sample)), self.n_train)
        return read_only(client_samples.count_by_stratum(stratum_of_sample, n_strata))

    @cached_property
    def main_classes(self) -> Ids | None:
        """Most frequent true class of each client, int64 [K]; None if a sample has more than one class."""
        return read_only(self.class_counts.argmax(axis=1)) if self.targets.single else None

    def draws(self, seed: int, round: int = NO_ROUND) -> Draws:
        """Return the random numbers of all clients in a round; without `round`, those that are drawn once per run."""
        return Draws(seed, self.n_clients, round, self.main_classes, self.n_classes)

    @cached_property
    def skew(self) -> dict[str, float]:
        """FedDiverse's six skew metrics (`skew.py`) of the clients' training sets, by name, on the labels they see.

        Without attributes, only the two metrics of class imbalance; {} if a sample has more than one class.
        """
        if not self.targets.single:
            return {}
        if self.group_counts is not None:
            return skew.skew_metrics(self.group_counts.reshape(self.n_clients, self.n_classes, -1))
        metrics_by_name = skew.skew_metrics(self.label_counts[:, :, None])
        return {
            metric_name: metric_value
            for metric_name, metric_value in metrics_by_name.items()
            if metric_name.endswith("_ci")
        }

    def notices(self) -> list[str]:
        """Return the notices about the federation's data that a run prints at its start."""
        absent_classes = np.flatnonzero(self.class_counts.sum(0) == 0)
        if not len(absent_classes):
            return []
        class_names_text = ", ".join(
            self.class_names[c] if self.class_names[c:] else str(c) for c in absent_classes[:MAX_NAMED_ABSENT_CLASSES]
        )
        class_names_text += (
            f" and {len(absent_classes) - MAX_NAMED_ABSENT_CLASSES} more"
            if len(absent_classes) > MAX_NAMED_ABSENT_CLASSES
            else ""
        )
        message_start = (
            f"no client has samples of {len(absent_classes)} of the {self.n_classes} classes ({class_names_text})"
        )
        return [f"dataset={self.name}: {message_start}, so that no model can learn these classes"]

    def to(self, device: torch.device | str) -> "Federation":
        """Return the same federation with all tensors on `device`."""
        part_names = ("train", "val", "test", "server_val", "server_test")
        samples_by_part = {part_name: getattr(self, part_name).to(device) for part_name in part_names}
        return replace(self, proxy=None if self.proxy is None else self.proxy.to(device), **samples_by_part)
