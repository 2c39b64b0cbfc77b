"""Evaluation of clients by forward passes of one model over their concatenated data, and queries about w_t."""

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.data.federation import Federation, Rows, Shard
from fedcohort.flat import FlatModel, has_batch_norm, keeps_statistics
from fedcohort.ranks import count_processes, positions_of_rank, rank_of_process, reduce_sum
from fedcohort.rng import new_generator
from fedcohort.training.chunks import count_at_once
from fedcohort.training.memory_layout import gather_rows
from fedcohort.types import ClientUpdate, Ids, Values

SampleFunction = Callable[[Tensor, Tensor], Tensor]
GRADIENT_BATCH = 256  # samples of a backward pass of `SignalMeasurer.gradient`


def sample_rows(offsets: Ids, clients: Ids) -> Ids:
    """Return the row numbers of the clients' samples, client by client."""
    return np.concatenate([np.arange(offsets[k], offsets[k + 1]) for k in clients] or [np.empty(0, np.int64)])


@torch.no_grad()
def mean_over_samples(
    network: nn.Module, shard: Shard, clients: Ids, functions: Sequence[SampleFunction]
) -> list[Float64[np.ndarray, "n"]]:
    """Return for each function its mean over each client's samples, [n]; NaN for a client without samples.

    Args:
        network: the model.
        shard: samples of all clients.
        clients: ids of the n clients.
        functions: functions (log_probs [B, C], labels [B]) -> [B] of single targets; if samples have several targets,
            their mean is taken first (`data.targets`).
    """
    was_training = network.training
    network.eval()
    all_clients = np.array_equal(clients, np.arange(len(shard.offsets) - 1))
    rows = None if all_clients else torch.from_numpy(sample_rows(shard.offsets, clients)).to(shard.y.device)
    sample_counts = np.diff(shard.offsets)[clients]
    values_by_function: list[list[Tensor]] = [[] for _ in functions]
    for start, stop in pairwise(_batch_bounds(network, shard, sample_counts)):
        x, y = _samples_between(shard, rows, start, stop)
        log_probs = F.log_softmax(network(x), -1)
        for function_values, function in zip(values_by_function, functions, strict=True):
            function_values.append(shard.targets.per_sample(function)(log_probs, y).double())
    network.train(was_training)
    client_of_sample = np.repeat(np.arange(len(clients)), sample_counts)
    return [_segment_mean(function_values, client_of_sample, sample_counts) for function_values in values_by_function]


def _batch_bounds(network: nn.Module, client_samples: Shard, sample_counts: Ids) -> Sequence[int]:
    """Return the bounds of forward passes over the rows of clients, which have `sample_counts` rows each.

    A network with batch norm without running statistics gets each client's rows in a separate pass, so that a
    client's result does not depend on other clients.
    """
    n_rows = int(sample_counts.sum())
    if has_batch_norm(network) and not keeps_statistics(network):
        return [0, *np.cumsum(sample_counts[sample_counts > 0]).tolist()]
    return [*range(0, n_rows, count_at_once(network, client_samples.x)), n_rows]


def _samples_between(client_samples: Shard, rows: Tensor | None, start: int, stop: int) -> tuple[Tensor, Tensor]:
    if rows is None:
        return client_samples.x[start:stop], client_samples.y[start:stop]
    return gather_rows(client_samples.x, rows[start:stop]), client_samples.y[rows[start:stop]]


def _segment_mean(batch_values: list[Tensor], segment: Ids, counts: Ids) -> Values:
    value = torch.cat(batch_values).cpu().numpy() if batch_values else np.empty(0)
    total = np.bincount(segment, weights=value, minlength=len(counts))
    mean: Values = np.divide(total, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return mean


def over_ranks(network: nn.Module, clients: Ids, *evaluations: tuple[Shard, SampleFunction]) -> list[Values]:
    """Return `mean_over_samples` of each pair (shard, function), where each rank evaluates its share of the clients.

    All ranks get all results, by one exchange.
    """
    value_table = torch.zeros((len(evaluations), len(clients)), dtype=torch.float64)
    for row, (shard, function) in zip(value_table, evaluations, strict=True):
        rank_positions = positions_of_rank(
            rank_of_process(), count_processes(), clients, np.diff(shard.offsets)[clients].astype(np.float64)
        )
        client_rows = np.sort(np.array(rank_positions, dtype=np.int64))
        (values,) = mean_over_samples(network, shard, clients[client_rows], [function])
        row[torch.from_numpy(client_rows)] = torch.from_numpy(values)
    return list(reduce_sum(value_table).numpy())


class SignalMeasurer:
    """Measures signals with the global model on the data of clients and of the server (`signal.base.Lab`).

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
        return over_ranks(self.server.network, clients, (shard, per_sample))[0]

    @torch.no_grad()
    def per_sample_losses(self, client: int) -> Values:
        x, y = self.samples(client)
        self.server.network.eval()
        losses: Values = self.targets.losses(self.server.network(x), y).double().cpu().numpy()
        return losses

    def samples(self, client: int) -> tuple[Tensor, Tensor]:
        return self.federation.train.samples_of(client)

    def loss(self, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return self.targets.loss(network(x), y)

    def copy(self) -> nn.Module:
        """Return a copy of the global network whose tensors are not views into the flat model."""
        self.worker.load(self.server)
        network_copy = copy.deepcopy(self.worker.network)
        for parameter in network_copy.parameters():
            parameter.data, parameter.grad = parameter.data.clone(), None
        return network_copy

    def gradient(self, client: int) -> Tensor:
        """Return the gradient of the client's mean loss in eval mode, [P], accumulated over parts of its samples."""
        x, y = self.samples(client)
        self.worker.load(self.server)
        self.worker.network.eval()
        self.worker.g.zero_()
        for start in range(0, len(y), GRADIENT_BATCH):
            rows = slice(start, start + GRADIENT_BATCH)
            loss = self.targets.total(self.worker.network(x[rows]), y[rows]) / len(y)
            torch.autograd.backward(loss)
        return self.worker.g.clone()

    def losses_after(self, update: Tensor, clients: Ids) -> Values:
        return over_ranks(self._network_after(update), clients, (self.federation.train, cross_entropy))[0]

    @torch.no_grad()
    def server_loss(self) -> float:
        network, data = self.server.network, self.federation.server_val
        network.eval()
        rows = torch.arange(len(data.y)).split(count_at_once(network, data.x))
        losses = [self.targets.losses(network(data.x[positions]), data.y[positions]).double() for positions in rows]
        return float(torch.cat(losses).mean())

    @torch.no_grad()
    def server_loss_after(self, update: Tensor) -> float:
        network, data = self._network_after(update), self.federation.server_val
        network.eval()
        self.server_passes += len(data.y)
        return float(self.targets.loss(network(data.x), data.y))

    @torch.no_grad()
    def _network_after(self, model_update: Tensor) -> nn.Module:
        self.worker.load(self.server)
        self.worker.w += model_update.to(self.worker.w)
        return self.worker.network


@torch.no_grad()
def worst_group_accuracy(network: nn.Module, rows: Rows, attribute: Ids) -> float:
    """Return the smallest accuracy over the groups (class, attribute) of `rows` (FedDiverse, Sec. V-B)."""
    network.eval()
    samples_at_once = count_at_once(network, rows.x)
    is_correct = torch.cat([network(x).argmax(1) for x in torch.split(rows.x, samples_at_once)]) == rows.y
    group_of_sample = rows.y.cpu().numpy() * (int(attribute.max()) + 1) + attribute
    group_sizes = np.bincount(group_of_sample)
    correct_counts = np.bincount(group_of_sample, weights=is_correct.cpu().numpy(), minlength=len(group_sizes))
    return float((correct_counts[group_sizes > 0] / group_sizes[group_sizes > 0]).min())


def cross_entropy(logp: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy of single targets in nats, [B]; logp: log probabilities, [B, C]."""
    return -logp.gather(1, y[:, None])[:, 0]


def mean_of_extremes(values: Values, extreme_share: float = 0.05) -> tuple[float, float]:
    """Return the mean of the ceil(share K) smallest values, and the mean of as many largest values."""
    n_extreme = max(1, int(np.ceil(extreme_share * len(values) - 1e-9)))
    sorted_values = np.sort(values)
    return float(sorted_values[:n_extreme].mean()), float(sorted_values[-n_extreme:].mean())


def jain_index(losses: Values) -> float:
    """Return Jain's fairness index (UCB-CS Eq. 3): (sum F)^2 / (K sum F^2), which is 1 if all losses are equal.

    NaN if a loss is not finite, as for a diverged model.
    """
    if not np.isfinite(losses).all():
        return float("nan")
    sum_of_squares = float((losses**2).sum())
    return float(losses.sum() ** 2 / (len(losses) * sum_of_squares)) if sum_of_squares > 0 else 1.0


def choose_evaluated_clients(n_clients: int, n_evaluated: int | None, seed: int) -> Ids:
    """Return the sorted ids of the clients that are evaluated: all, or `n_evaluated` of them, drawn once per seed."""
    if n_evaluated is None or n_evaluated >= n_clients:
        return np.arange(n_clients)
    return np.sort(new_generator(seed, "scored_clients").choice(n_clients, n_evaluated, replace=False))


def client_metrics(
    network: nn.Module, federation: Federation, clients: Ids
) -> tuple[dict[str, float], dict[str, Values]]:
    """Return metrics over `clients` by name, and per-client columns [n_clients], NaN for other clients.

    Accuracy is on each client's test samples E_i (variance in %^2); the loss and Jain's index are on T_i.
    """
    evaluations = ((federation.test, federation.targets.hits), (federation.train, cross_entropy))
    accuracy, loss = over_ranks(network, clients, *evaluations)
    known_accuracy = accuracy[~np.isnan(accuracy)]
    metrics = {"clients/jain": jain_index(loss), "clients/loss_mean": float(loss.mean())}
    if len(known_accuracy):
        worst_mean, best_mean = mean_of_extremes(known_accuracy)
        metrics |= {
            "clients/acc_mean": float(known_accuracy.mean()),
            "clients/acc_var": float(np.var(100 * known_accuracy)),
            "clients/acc_worst5": worst_mean,
            "clients/acc_best5": best_mean,
        }
    return metrics, {
        "test_acc": _client_column(clients, accuracy, federation),
        "loss": _client_column(clients, loss, federation),
    }


def _client_column(clients: Ids, values: Values, federation: Federation) -> Values:
    column = np.full(federation.n_clients, np.nan)
    column[clients] = values
    return column
