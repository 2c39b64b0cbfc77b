"""ClientModule: the LightningModule that trains the clients and evaluates the global model."""

import itertools
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric, Metric, MetricCollection

from fedcohort.data.targets import ONE_CLASS, Targets
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.process_ranks import count_processes, reduce_sum
from fedcohort.round.average import ModelAverage
from fedcohort.round.collect import Collector
from fedcohort.round.in_flight import SentModels
from fedcohort.training.client_task import ClientTask
from fedcohort.training.engines import Engine

LOADER_NAMES = ("server_val", "test")
MONITORED_METRICS = ("server_val/acc", "server_val/loss")
# ending of the metrics of the model that clients receive, where its average is evaluated
UNAVERAGED_SUFFIX = "_unaveraged"


class ClientModule(pl.LightningModule):
    """A LightningModule that trains a slice of the cohort in each training batch; its parameters are the global model.

    Attributes:
        network: the global network, from inputs [B, ...] to logits (`data.targets`).
        is_monitored: whether callbacks of Lightning may read `MONITORED_METRICS`; logging takes as long as evaluating a
            small model.
        server_metrics: the server's metrics after the latest validation, over all ranks; NaN for a diverged model's
            loss.
        engine: the implementation of local training; set by the loop, like the following attributes.
        collector: collects the updates of the round.
        sent_models: the models and vectors from which the round's clients start.
        stopwatch: measures the stages of the round.
        targets: the structure of labels, one class per sample or one per position.
        average: the average of the global model, which is evaluated in its place.
    """

    engine: Engine
    collector: Collector
    sent_models: SentModels
    stopwatch: Stopwatch
    targets: Targets = ONE_CLASS
    average: ModelAverage

    def __init__(self, network: nn.Module, is_monitored: bool = False) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.network, self.watched = network, is_monitored
        # a dictionary of lists, so that they are not in the model's state_dict
        self._metrics_by_model = {"": [make_metrics() for _ in LOADER_NAMES]}
        self.server_metrics: dict[str, float] = {}

    def configure_optimizers(self) -> None:
        """Return nothing: clients and the server have their own optimizers."""

    def training_step(self, batch: Sequence[ClientTask], batch_idx: int) -> None:
        with self.stopwatch.measure_stage_time("train"):
            for sent_round, round_tasks in itertools.groupby(batch, key=lambda task: task.round):
                with self.sent_models.load_model(sent_round) as agg_vectors:
                    for client_update in self.engine.train_clients(list(round_tasks), agg_vectors):
                        self.collector.add_client_update(client_update)

    def on_validation_epoch_start(self) -> None:
        for metric_collection in itertools.chain(*self._metrics_by_suffix.values()):
            metric_collection.to(self.device).set_dtype(torch.float64)  # in this order: a move forgets the precision
            metric_collection.reset()

    def validation_step(self, batch: Sequence[Iterable[tuple[Tensor, Tensor]]], batch_idx: int) -> None:
        """Evaluate the global model on this process's (rank's) share of the server's data, which may be empty.

        With an average of the model (`eval.average`), the average is evaluated first, then the model itself. `batch`
        has the batches of each sample set, and `batch_idx` is always 0.
        """
        batches_by_loader = [list(loader_batches) for loader_batches in batch]
        for metric_suffix, metric_collections in self._metrics_by_suffix.items():
            average_context = nullcontext() if metric_suffix == UNAVERAGED_SUFFIX else self.average.load_average()
            with self.stopwatch.measure_stage_time("evaluate"), average_context:
                for loader_metrics, batches in zip(metric_collections, batches_by_loader, strict=True):
                    sample_metrics = (
                        measure_sample_metrics(self.targets, self.network(x), y) for x, y in batches if len(y)
                    )
                    for k, sample_values in zip(("acc", "loss"), zip(*sample_metrics, strict=True), strict=False):
                        loader_metrics[k].update(torch.cat(sample_values))

    @property
    def _metrics_by_suffix(self) -> dict[str, list[MetricCollection]]:
        """The metrics of the evaluated models, one collection per sample set, by the suffix of the metrics' names."""
        if self.average.vectors and UNAVERAGED_SUFFIX not in self._metrics_by_model:
            self._metrics_by_model[UNAVERAGED_SUFFIX] = [make_metrics() for _ in LOADER_NAMES]
        return self._metrics_by_model

    def on_validation_epoch_end(self) -> None:
        """Compute the metrics over all ranks by one exchange.

        Callbacks can only read `MONITORED_METRICS`, so that none of them selects a model by `test/*`.
        """
        with self.stopwatch.measure_stage_time("evaluate"):
            metric_collections = [*itertools.chain(*self._metrics_by_suffix.values())]
            sum_metrics_over_ranks(
                [metric_name for metric_collection in metric_collections for metric_name in metric_collection.values()]
            )
            metric_values = {
                f"{loader_name}/{metric_name}{metric_suffix}": metric_value
                for metric_suffix, collections_of_suffix in self._metrics_by_suffix.items()
                for loader_name, metric_collection in zip(LOADER_NAMES, collections_of_suffix, strict=True)
                for metric_name, metric_value in metric_collection.compute().items()
            }
            metric_floats = torch.stack(list(metric_values.values())).tolist()
            self.server_metrics = dict(zip(metric_values, metric_floats, strict=True))
        for loader_name in MONITORED_METRICS if self.watched else ():
            # The value is the same on all ranks and must not be summed; EarlyStopping reads it on every rank.
            self.log(loader_name, self.server_metrics[loader_name], batch_size=1)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Copy the network's tensors in `checkpoint`, which are views into the flat vector, before they are saved."""
        checkpoint["state_dict"] = {k: tensor.clone() for k, tensor in checkpoint["state_dict"].items()}

    def transfer_batch_to_device(self, batch: object, device: torch.device, dataloader_idx: int) -> object:
        """Return `batch` unchanged: all data are on the device, and a search for tensors in tasks takes time."""
        return batch


def measure_sample_metrics(targets: Targets, logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the accuracy on each sample's targets and its cross-entropy in nats, both float64 [n].

    Args:
        targets: the structure of labels, one class per sample or one per position.
        logits: logits of n samples, [n, C] or [n, positions, C].
        y: labels, [n] or [n, positions].
    """
    return targets.per_sample(targets.mark_correct)(logits, y).double(), targets.losses(logits, y).double()


def make_metrics() -> MetricCollection:
    """Return metrics of accuracy and mean cross-entropy, NaN for a diverged model, not yet summed over the ranks."""
    mean_metrics = {metric_name: MeanMetric("disable", sync_on_compute=False) for metric_name in ("acc", "loss")}
    return MetricCollection(dict(mean_metrics), compute_groups=False)


def sum_metrics_over_ranks(metrics: Sequence[Metric]) -> None:
    """Sum the states of `metrics` over ranks in one exchange, where torchmetrics needs two for each state."""
    if count_processes() == 1:
        return
    metric_states = [(m, state_name, torch.as_tensor(v)) for m in metrics for state_name, v in m.metric_state.items()]
    summed_states = reduce_sum(torch.cat([v.double().flatten() for _, _, v in metric_states]))
    state_sums = torch.split(summed_states, [v.numel() for _, _, v in metric_states])
    for (metric, state_name, v), state_sum in zip(metric_states, state_sums, strict=True):
        setattr(metric, state_name, state_sum.view_as(v).to(v.dtype))
