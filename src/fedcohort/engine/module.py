"""ClientModule: the LightningModule that is every client in turn, and the global model when it is evaluated."""

from collections.abc import Mapping, Sequence
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.engine.choose import Engine
from fedcohort.engine.gather import Gatherer
from fedcohort.engine.local import ClientTask
from fedcohort.engine.stopwatch import Stopwatch
from fedcohort.engine.strategy import reduce_sum

LOADERS = ("server_val", "test")
MONITORED = ("server_val/acc", "server_val/loss")


class ClientModule(pl.LightningModule):
    """One training batch is a slice of the cohort; the registered parameters are the global model.

    network: inputs [B, ...] to logits [B, n_classes]. evaluated: the server's metrics after the latest validation, over
    all ranks; a diverged model's loss is NaN. `engine`, `gatherer`, `down` and `watch` are set by the loop.
    """

    engine: Engine
    gatherer: Gatherer
    down: Mapping[str, Tensor]
    watch: Stopwatch
    _tally: Tensor

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.network = network
        self.evaluated: dict[str, float] = {}

    def configure_optimizers(self) -> None:
        """Clients and the server have optimizers of their own."""

    def training_step(self, batch: Sequence[ClientTask], batch_idx: int) -> None:
        with self.watch.stage("train"):
            for update in self.engine.updates(batch, self.down):
                self.gatherer.add(update)

    def on_validation_epoch_start(self) -> None:
        """A row for each of `LOADERS`: samples that were right, their summed cross-entropy, how many they are."""
        self._tally = torch.zeros((len(LOADERS), 3), dtype=torch.float64, device=self.device)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int, dataloader_idx: int = 0) -> None:
        x, y = batch
        if not len(y):
            return
        with self.watch.stage("evaluate"):
            logits = self.network(x)
            row = self._tally[dataloader_idx]
            row[0] += (logits.argmax(1) == y).sum()
            row[1] += F.cross_entropy(logits, y, reduction="none").double().sum()
            row[2] += len(y)

    def on_validation_epoch_end(self) -> None:
        """Each rank has seen its part of the data: one exchange, and every rank knows the whole.

        Callbacks see `MONITORED` alone: nothing selects on `test/*`.
        """
        with self.watch.stage("evaluate"):
            right, loss, count = reduce_sum(self._tally).cpu().unbind(1)
            scores = {"acc": right / count, "loss": loss / count}
        self.evaluated = {
            f"{name}/{score}": float(values[row])
            for row, name in enumerate(LOADERS)
            for score, values in scores.items()
        }
        for name in MONITORED:
            # Not for Lightning to add up, nor for rank 0 alone: EarlyStopping compares on every rank.
            self.log(name, self.evaluated[name], batch_size=1)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The views into the flat vector are saved as tensors of their own."""
        checkpoint["state_dict"] = {name: tensor.clone() for name, tensor in checkpoint["state_dict"].items()}

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Everything is on the device already; looking for tensors inside of tasks would only cost time."""
        return batch
