"""ClientModule: the LightningModule that is every client in turn, and the global model when it is evaluated."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric, Metric, MetricCollection

from fedcohort.data.targets import ONE_CLASS, Targets
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.ranks import ranks, reduce_sum
from fedcohort.round.collect import Collector
from fedcohort.training.client_task import ClientTask
from fedcohort.training.engines import Engine

LOADERS = ("server_val", "test")
MONITORED = ("server_val/acc", "server_val/loss")


class ClientModule(pl.LightningModule):
    """One training batch is a slice of the cohort; the registered parameters are the global model.

    network: inputs [B, ...] to logits, `data.targets`. watched: whether callbacks of Lightning's may read `MONITORED`;
    to log without a reader would take as long as to score a small model. evaluated: the server's metrics after the
    latest validation, over all ranks; a diverged model's loss is NaN. The loop sets `engine`, `collector`, `down`,
    `stopwatch` and `targets` (the kind of labels).
    """

    engine: Engine
    collector: Collector
    down: Mapping[str, Tensor]
    stopwatch: Stopwatch
    targets: Targets = ONE_CLASS

    def __init__(self, network: nn.Module, watched: bool = False) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.network, self.watched = network, watched
        self._scores = [scores() for _ in LOADERS]  # a plain list: no part of the model's state_dict
        self.evaluated: dict[str, float] = {}

    def configure_optimizers(self) -> None:
        """Clients and the server have optimizers of their own."""

    def training_step(self, batch: Sequence[ClientTask], batch_idx: int) -> None:
        with self.stopwatch.stage("train"):
            for update in self.engine.updates(batch, self.down):
                self.collector.add(update)

    def on_validation_epoch_start(self) -> None:
        for collection in self._scores:
            collection.to(self.device).set_dtype(torch.float64)  # in this order: a move forgets the precision
            collection.reset()

    def validation_step(self, batch: Sequence[Iterable[tuple[Tensor, Tensor]]], batch_idx: int) -> None:
        """Score this rank's share of the server's data, all of it; it may be empty."""
        with self.stopwatch.stage("evaluate"):
            for metrics, pieces in zip(self._scores, batch, strict=True):
                found = [judge(self.targets, self.network(x), y) for x, y in pieces if len(y)]
                for name, values in zip(("acc", "loss"), zip(*found, strict=True), strict=False):
                    metrics[name].update(torch.cat(values))

    def on_validation_epoch_end(self) -> None:
        """Each rank has seen its part of the data: one exchange, and every rank knows the whole.

        Callbacks see `MONITORED` alone: nothing selects on `test/*`.
        """
        with self.stopwatch.stage("evaluate"):
            add_up([metric for collection in self._scores for metric in collection.values()])
            self.evaluated = {
                f"{name}/{metric}": float(value)
                for name, collection in zip(LOADERS, self._scores, strict=True)
                for metric, value in collection.compute().items()
            }
        for name in MONITORED if self.watched else ():
            # Not for Lightning to add up, nor for rank 0 alone: EarlyStopping compares on every rank.
            self.log(name, self.evaluated[name], batch_size=1)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The views into the flat vector are saved as tensors of their own."""
        checkpoint["state_dict"] = {name: tensor.clone() for name, tensor in checkpoint["state_dict"].items()}

    def transfer_batch_to_device(self, batch: object, device: torch.device, dataloader_idx: int) -> object:
        """Everything is on the device already; looking for tensors inside of tasks would only cost time."""
        return batch


def judge(targets: Targets, logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The share of each sample's targets that is found (1 or 0 of one), and its cross-entropy; float64 [n] both."""
    return targets.per_sample(targets.hits)(logits, y).double(), targets.losses(logits, y).double()


def scores() -> MetricCollection:
    """Accuracy and mean cross-entropy; a diverged model's is NaN. Their sums over ranks are ours to make: `add_up`."""
    means = {name: MeanMetric("disable", sync_on_compute=False) for name in ("acc", "loss")}
    return MetricCollection(dict(means), compute_groups=False)


def add_up(metrics: Sequence[Metric]) -> None:
    """Sum the metrics' states over ranks in one exchange; torchmetrics takes one for each state, and waits twice."""
    if ranks() == 1:
        return
    states = [(metric, name, torch.as_tensor(v)) for metric in metrics for name, v in metric.metric_state.items()]
    summed = reduce_sum(torch.cat([value.double().flatten() for _, _, value in states]))
    parts = torch.split(summed, [value.numel() for _, _, value in states])
    for (metric, name, value), total in zip(states, parts, strict=True):
        setattr(metric, name, total.view_as(value).to(value.dtype))
