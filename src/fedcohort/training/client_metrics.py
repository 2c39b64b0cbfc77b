"""Metrics over clients and over groups of samples: fairness, the worst and the best clients, the worst group."""

import numpy as np
import torch
from torch import nn

from fedcohort.data.federation import Federation, ServerSamples
from fedcohort.rng import new_generator
from fedcohort.training.evaluate import cross_entropy, evaluate_clients
from fedcohort.training.forward_batches import find_batch_size
from fedcohort.types import Ids, Values


@torch.no_grad()
def worst_group_accuracy(network: nn.Module, samples: ServerSamples, sample_attributes: Ids) -> float:
    """Return the smallest accuracy, in [0, 1], over the groups (class, attribute) (FedDiverse, Sec. V-B).

    Args:
        network: the network, which is set to eval mode.
        samples: the n samples.
        sample_attributes: attribute of each sample, integers from 0, [n].
    """
    network.eval()
    samples_at_once = find_batch_size(network, samples.x)
    is_correct = torch.cat([network(x).argmax(1) for x in torch.split(samples.x, samples_at_once)]) == samples.y
    group_of_sample = samples.y.cpu().numpy() * (int(sample_attributes.max()) + 1) + sample_attributes
    group_sizes = np.bincount(group_of_sample)
    correct_counts = np.bincount(group_of_sample, weights=is_correct.cpu().numpy(), minlength=len(group_sizes))
    return float((correct_counts[group_sizes > 0] / group_sizes[group_sizes > 0]).min())


def mean_worst_and_best(client_values: Values) -> tuple[float, float]:
    """Return the means of the smallest and of the largest 5 % of the K `client_values`, each of ceil(K / 20) values."""
    n_averaged_clients = max(1, int(np.ceil(0.05 * len(client_values) - 1e-9)))
    sorted_values = np.sort(client_values)
    return float(sorted_values[:n_averaged_clients].mean()), float(sorted_values[-n_averaged_clients:].mean())


def compute_jain_index(losses: Values) -> float:
    """Return Jain's fairness index (UCB-CS Eq. 3): (sum F)^2 / (K sum F^2), which is 1 if all losses are equal.

    `losses` are the clients' losses F, [K]. NaN if a loss is not finite, as for a diverged model.
    """
    if not np.isfinite(losses).all():
        return float("nan")
    sum_of_squared_losses = float((losses**2).sum())
    return float(losses.sum() ** 2 / (len(losses) * sum_of_squared_losses)) if sum_of_squared_losses > 0 else 1.0


def choose_evaluated_clients(n_clients: int, n_evaluated_clients: int | None, seed: int) -> Ids:
    """Return the sorted ids of the evaluated clients: `n_evaluated_clients` drawn once per seed, or all `n_clients`."""
    if n_evaluated_clients is None or n_evaluated_clients >= n_clients:
        return np.arange(n_clients)
    return np.sort(new_generator(seed, "scored_clients").choice(n_clients, n_evaluated_clients, replace=False))


def measure_client_metrics(
    network: nn.Module, federation: Federation, clients: Ids
) -> tuple[dict[str, float], dict[str, Values]]:
    """Return metrics over clients by name, and per-client columns [n_clients], NaN for other clients.

    Accuracy is measured on a client's test samples (variance in %^2); losses and Jain's index on its training samples.
    `clients/loss` weights clients by their samples: it is FedAvg's objective (McMahan et al. 2017, Sec. 2).
    `clients/loss_mean` weights them equally.

    Args:
        network: the global model.
        federation: data of the run.
        clients: sorted ids of the clients that are evaluated.
    """
    shards_and_functions = ((federation.test, federation.targets.mark_correct), (federation.train, cross_entropy))
    accuracy, client_loss = evaluate_clients(network, clients, *shards_and_functions)
    accuracies = accuracy[~np.isnan(accuracy)]
    metric_values = {
        "clients/jain": compute_jain_index(client_loss),
        "clients/loss": float(np.average(client_loss, weights=np.diff(federation.train.offsets)[clients])),
        "clients/loss_mean": float(client_loss.mean()),
    }
    if len(accuracies):
        worst_accuracy, best_accuracy = mean_worst_and_best(accuracies)
        metric_values |= {
            "clients/acc_mean": float(accuracies.mean()),
            "clients/acc_var": float(np.var(100 * accuracies)),
            "clients/acc_worst5": worst_accuracy,
            "clients/acc_best5": best_accuracy,
        }
    return metric_values, {
        "test_acc": _fill_client_column(clients, accuracy, federation),
        "loss": _fill_client_column(clients, client_loss, federation),
    }


def _fill_client_column(clients: Ids, client_values: Values, federation: Federation) -> Values:
    """Return `client_values` of `clients` as a column of all clients of `federation`, [n_clients]; NaN for others."""
    values_by_client = np.full(federation.n_clients, np.nan)
    values_by_client[clients] = client_values
    return values_by_client
