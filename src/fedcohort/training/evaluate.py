"""Evaluation of clients by forward passes of one model over their concatenated data, and queries about w_t."""

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.data.federation import Federation, Shard
from fedcohort.flat import FlatModel, has_batch_norm, has_batch_statistics
from fedcohort.process_ranks import count_processes, positions_of_rank, rank_of_process, reduce_sum
from fedcohort.training.forward_batches import find_batch_size
from fedcohort.training.memory_layout import gather_rows
from fedcohort.types import ClientUpdate, Ids, Values

SampleFunction = Callable[[Tensor, Tensor], Tensor]
GRADIENT_BATCH_SIZE = 256  # samples of a backward pass of `SignalMeasurer.gradient`


def list_sample_rows(client_offsets: Ids, clients: Ids) -> Ids:
    """Return the rows of the samples of `clients`, [n]; client k has those from `client_offsets[k]` on."""
    row_ranges = [np.arange(client_offsets[k], client_offsets[k + 1]) for k in clients]
    return np.concatenate([np.empty(0, np.int64), *row_ranges])


@torch.no_grad()
def mean_over_samples(
    network: nn.Module, shard: Shard, clients: Ids, sample_functions: Sequence[SampleFunction]
) -> list[Float64[np.ndarray, "n"]]:
    """Return for each function its mean over each client's samples, [n]; NaN for a client without samples.

    Args:
        network: the network, which is evaluated in eval mode.
        shard: samples of all clients.
        clients: ids of the n clients.
        sample_functions: functions (log_probs [B, C], labels [B]) -> [B] of single targets; if samples have several
            targets, the mean over a sample's targets is taken first (`data.targets`).
    """
    values_by_function: list[list[Tensor]] = [[] for _ in sample_functions]
    for log_probs, y in _yield_log_probs(network, shard, clients):
        for function_values, sample_function in zip(values_by_function, sample_functions, strict=True):
            function_values.append(shard.targets.per_sample(sample_function)(log_probs, y).double())
    sample_counts = np.diff(shard.offsets)[clients]
    client_of_sample = np.repeat(np.arange(len(clients)), sample_counts)
    return [_mean_by_client(function_values, client_of_sample, sample_counts) for function_values in values_by_function]


@torch.no_grad()
def sum_over_samples(
    network: nn.Module, shard: Shard, clients: Ids, sample_function: SampleFunction, n_values: int
) -> Float64[np.ndarray, "_n _width"]:
    """Return the sums of a function over each client's samples, [n, width].

    Args:
        network: the network, which is evaluated in eval mode.
        shard: samples of all clients.
        clients: ids of the n clients.
        sample_function: function (log_probs [B, C], labels [B]) -> [B, width].
        n_values: number of values of a sample, one column each.
    """
    client_sums = np.zeros((len(clients), n_values))
    client_of_remaining_samples = np.repeat(np.arange(len(clients)), np.diff(shard.offsets)[clients])
    for log_probs, y in _yield_log_probs(network, shard, clients):
        np.add.at(
            client_sums, client_of_remaining_samples[: len(y)], sample_function(log_probs, y).double().cpu().numpy()
        )
        client_of_remaining_samples = client_of_remaining_samples[len(y) :]
    return client_sums


def _yield_log_probs(network: nn.Module, shard: Shard, clients: Ids) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield log-probabilities [B, ..., C] and labels [B, ...] of the samples of `clients` in `shard`.

    `network` is in eval mode meanwhile.
    """
    was_in_training_mode = network.training
    network.eval()
    sample_rows = None
    if not np.array_equal(clients, np.arange(len(shard.offsets) - 1)):
        sample_rows = torch.from_numpy(list_sample_rows(shard.offsets, clients)).to(shard.y.device)
    for a, b in pairwise(_find_batch_bounds(network, shard, np.diff(shard.offsets)[clients])):
        x, y = (
            (shard.x[a:b], shard.y[a:b])
            if sample_rows is None
            else (gather_rows(shard.x, sample_rows[a:b]), shard.y[sample_rows[a:b]])
        )
        yield F.log_softmax(network(x), -1), y
    network.train(was_in_training_mode)


def _find_batch_bounds(network: nn.Module, client_samples: Shard, sample_counts: Ids) -> Sequence[int]:
    """Return the first row of each forward pass over the clients' samples, and the end of the last pass.

    A network with batch norm without running statistics gets each client's rows in a separate pass, so that a client's
    result does not depend on other clients.

    Args:
        network: the network.
        client_samples: samples, of which only the shape is used.
        sample_counts: number of rows of each client, [n].
    """
    n_rows = int(sample_counts.sum())
    if has_batch_norm(network) and not has_batch_statistics(network):
        return [0, *np.cumsum(sample_counts[sample_counts > 0]).tolist()]
    return [*range(0, n_rows, find_batch_size(network, client_samples.x)), n_rows]


def _mean_by_client(values_by_batch: list[Tensor], client_of_sample: Ids, sample_counts: Ids) -> Values:
    sample_values = torch.cat(values_by_batch).cpu().numpy() if values_by_batch else np.empty(0)
    client_means: Values = np.full(len(sample_counts), np.nan)
    client_sums = np.bincount(client_of_sample, weights=sample_values, minlength=len(sample_counts))
    np.divide(client_sums, sample_counts, out=client_means, where=sample_counts > 0)
    return client_means


def evaluate_clients(
    network: nn.Module, clients: Ids, *shards_and_functions: tuple[Shard, SampleFunction]
) -> list[Values]:
    """Return the means of functions over each client's samples, [n] for each pair in `shards_and_functions`.

    Each process (rank) evaluates its share of `clients` with `network`. All ranks get all results, by one exchange.
    """
    client_mean_table = torch.zeros((len(shards_and_functions), len(clients)), dtype=torch.float64)
    for client_mean_row, (shard, sample_function) in zip(client_mean_table, shards_and_functions, strict=True):
        rank_client_positions = _list_rank_clients(shard, clients)
        (client_means,) = mean_over_samples(network, shard, clients[rank_client_positions], [sample_function])
        client_mean_row[torch.from_numpy(rank_client_positions)] = torch.from_numpy(client_means)
    return list(reduce_sum(client_mean_table).numpy())


def _list_rank_clients(shard: Shard, clients: Ids) -> Ids:
    """Return the sorted positions in `clients` of those whose samples in `shard` this process evaluates, [m]."""
    sample_counts = np.diff(shard.offsets)[clients].astype(np.float64)
    rank_positions = positions_of_rank(rank_of_process(), count_processes(), clients, sample_counts)
    return np.sort(np.array(rank_positions, dtype=np.int64))


class SignalMeasurer:
    """The measurement of signals on the data of clients and of the server (`signal.access.SignalAccess`).

    Args:
        server: the global model.
        worker: a model whose weights may be overwritten before the round's training.
        federation: data of the run.
        train: function from round and client to the update that the client would send.
    """

    def __init__(
        self, server: FlatModel, worker: FlatModel, federation: Federation, train: Callable[[int, int], ClientUpdate]
    ) -> None:
        self.server, self.worker, self.federation, self.train = server, worker, federation, train
        self.targets, self.server_passes = federation.targets, 0

    def mean_over_samples(self, split: str, clients: Ids, per_sample: SampleFunction) -> Values:
        shard = self.federation.train if split == "train" else self.federation.val
        return evaluate_clients(self.server.network, clients, (shard, per_sample))[0]

    def sum_over_samples(
        self, clients: Ids, per_sample: SampleFunction, n_values: int
    ) -> Float64[np.ndarray, "_n _width"]:
        shard, rank_client_positions = self.federation.train, _list_rank_clients(self.federation.train, clients)
        client_sums = torch.zeros((len(clients), n_values), dtype=torch.float64)
        sums_on_rank = sum_over_samples(
            self.server.network, shard, clients[rank_client_positions], per_sample, n_values
        )
        client_sums[torch.from_numpy(rank_client_positions)] = torch.from_numpy(sums_on_rank)
        return reduce_sum(client_sums).numpy()

    @torch.no_grad()
    def per_sample_losses(self, client: int) -> Values:
        x, y = self.samples(client)
        self.server.network.eval()
        return np.asarray(self.targets.losses(self.server.network(x), y).double().cpu().numpy())

    def samples(self, client: int) -> tuple[Tensor, Tensor]:
        return self.federation.train.client_samples(client)

    def loss(self, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return self.targets.loss(network(x), y)

    def copy(self) -> nn.Module:
        """Return a copy of the global network whose parameters are independent tensors."""
        self.worker.copy_from(self.server)
        network_copy = copy.deepcopy(self.worker.network)
        for parameter in network_copy.parameters():
            parameter.data, parameter.grad = parameter.data.clone(), None
        return network_copy

    def gradient(self, client: int) -> Tensor:
        """Return the gradient of the mean loss of `client` in eval mode, [P], accumulated over parts of its samples."""
        x, y = self.samples(client)
        self.worker.copy_from(self.server)
        self.worker.network.eval()
        self.worker.g.zero_()
        for batch_start in range(0, len(y), GRADIENT_BATCH_SIZE):
            batch_rows = slice(batch_start, batch_start + GRADIENT_BATCH_SIZE)
            loss = self.targets.summed_sample_loss(self.worker.network(x[batch_rows]), y[batch_rows]) / len(y)
            torch.autograd.backward(loss)
        return self.worker.g.clone()

    def losses_after(self, update: Tensor, clients: Ids) -> Values:
        return evaluate_clients(self._load_updated_model(update), clients, (self.federation.train, cross_entropy))[0]

    @torch.no_grad()
    def server_loss(self) -> float:
        network, validation_data = self.server.network, self.federation.server_val
        network.eval()
        batches = torch.arange(len(validation_data.y)).split(find_batch_size(network, validation_data.x))
        losses = [self.targets.losses(network(validation_data.x[b]), validation_data.y[b]).double() for b in batches]
        return float(torch.cat(losses).mean())

    def server_loss_after(self, update: Tensor) -> float:
        return float(self.targets.loss(self._compute_logits_after_update(update), self.federation.server_val.y))

    def server_accuracy_after(self, update: Tensor) -> tuple[float, float]:
        logits, y = self._compute_logits_after_update(update), self.federation.server_val.y
        accuracy = self.targets.per_sample(self.targets.mark_correct)(logits, y).double().mean()
        return float(accuracy), float(self.targets.loss(logits, y))

    @torch.no_grad()
    def _compute_logits_after_update(self, update: Tensor) -> Tensor:
        network, validation_data = self._load_updated_model(update), self.federation.server_val
        network.eval()
        self.server_passes += len(validation_data.y)
        logits: Tensor = network(validation_data.x)
        return logits

    @torch.no_grad()
    def _load_updated_model(self, model_update: Tensor) -> nn.Module:
        self.worker.copy_from(self.server)
        self.worker.w += model_update.to(self.worker.w)
        return self.worker.network


def cross_entropy(log_probs: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy in nats of each of B samples that have one target each, [B].

    Args:
        log_probs: log-probabilities, [B, C].
        y: classes, [B].
    """
    return -log_probs.gather(1, y[:, None])[:, 0]
