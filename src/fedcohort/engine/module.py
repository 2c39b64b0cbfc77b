"""ClientModule: the LightningModule that is every client in turn, and the global model when it is evaluated."""

from collections.abc import Mapping, Sequence
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchmetrics import MeanMetric, Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from fedcohort.engine.choose import Engine
from fedcohort.engine.gather import Gatherer
from fedcohort.engine.local import ClientTask
from fedcohort.engine.stopwatch import Stopwatch
from fedcohort.engine.strategy import ranks, reduce_sum

LOADERS = ("server_val", "test")
MONITORED = ("server_val/acc", "server_val/loss")


class ClientModule(pl.LightningModule):
    """One training batch is a slice of the cohort; the registered parameters are the global model.

    network: inputs [B, ...] to logits [B, n_classes]. `engine`, `gatherer`, `down` and `watch` are set by the loop.
    """

    engine: Engine
    gatherer: Gatherer
    down: Mapping[str, Tensor]
    watch: Stopwatch

    def __init__(self, network: nn.Module, n_classes: int) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.network = network
        scores = [
            MetricCollection(
                {
                    "acc": MulticlassAccuracy(n_classes, average="micro", validate_args=False, sync_on_compute=False),
                    "loss": MeanMetric("error", sync_on_compute=False),
                }
            )
            for _ in LOADERS
        ]
        self._scores = scores  # a plain list: metrics are no part of the model's state_dict
        self.evaluated: dict[str, float] = {}

    def configure_optimizers(self) -> None:
        """Clients and the server have optimizers of their own."""

    def training_step(self, batch: Sequence[ClientTask], batch_idx: int) -> None:
        with self.watch.stage("train"):
            for update in self.engine.updates(batch, self.down):
                self.gatherer.add(update)

    def on_validation_epoch_start(self) -> None:
        for collection in self._scores:
            collection.to(self.device)
            collection.reset()

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int, dataloader_idx: int = 0) -> None:
        x, y = batch
        if not len(y):
            return
        with self.watch.stage("evaluate"):
            logits = self.network(x)
            collection = self._scores[dataloader_idx]
            collection["acc"].update(logits, y)
            collection["loss"].update(F.cross_entropy(logits, y, reduction="none"))

    def on_validation_epoch_end(self) -> None:
        """Callbacks see `MONITORED` alone: nothing selects on `test/*`."""
        self.evaluated = {
            f"{name}/{metric}": float(value)
            for name, collection in zip(LOADERS, self._scores, strict=True)
            for metric, value in collection.compute().items()
        }
        for name, value in self.evaluated.items():
            if name in MONITORED:
                self.log(name, value, batch_size=1, rank_zero_only=True)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The views into the flat vector are saved as tensors of their own."""
        checkpoint["state_dict"] = {name: tensor.clone() for name, tensor in checkpoint["state_dict"].items()}

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Everything is on the device already; looking for tensors inside of tasks would only cost time."""
        return batch


def add_up(metrics: Sequence[Metric]) -> None:
    """Sum the metrics' states over ranks in one exchange; torchmetrics takes one for each state, and waits twice."""
    if ranks() == 1:
        return
    states = [(metric, name, torch.as_tensor(v)) for metric in metrics for name, v in metric.metric_state.items()]
    summed = reduce_sum(torch.cat([value.double().flatten() for _, _, value in states]))
    parts = torch.split(summed, [value.numel() for _, _, value in states])
    for (metric, name, value), total in zip(states, parts, strict=True):
        setattr(metric, name, total.view_as(value).to(value.dtype))
