"""The engine for debugging: one client at a time, with checks of all numbers and errors that name client and round."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fedcohort.errors import ClientError
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.step import TrainingStep
from fedcohort.types import ClientUpdate


class DebugEngine:
    """Local training for debugging: one client at a time, with autograd's anomaly checks on all gradients.

    It uses no hand-written gradients.
    """

    def __init__(self, trainer: LocalTrainer) -> None:
        self.trainer = trainer
        trainer.chain = None
        trainer.wrap_step = self._add_step_checks

    def group_client_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield each of `tasks` as a separate group, since clients are trained one at a time."""
        return self.trainer.group_client_tasks(tasks)

    def train_clients(self, tasks: Sequence[ClientTask], broadcast: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train one client after the other, and yield their updates.

        Args:
            tasks: tasks of the clients.
            broadcast: vectors that the aggregator broadcasts, by name.

        Raises:
            ClientError: with round, client and stage, if training fails or a number is not finite.
        """
        for task in tasks:
            self.stage = "before the first step"
            try:
                with torch.autograd.set_detect_anomaly(True, check_nan=True):
                    update = self.trainer.train(task, broadcast)
                self.stage = "after the last step"
                self._check_tensor_is_finite("the update", update.delta)
                for vector_name, upload_vector in update.uploads.items():
                    self._check_tensor_is_finite(vector_name, upload_vector)
            except Exception as error:
                raise ClientError(f"round {task.round + 1}, client {task.client}, {self.stage}: {error}") from error
            yield replace(update)  # a copy without the cached `delta`

    def _add_step_checks(self, training_step: TrainingStep) -> TrainingStep:
        """Return `training_step` with checks that its inputs, its loss and the trained model are finite."""
        n_steps = 0

        def make_checked_step(x: Tensor, y: Tensor, ref_probs: Tensor | None) -> Tensor:
            nonlocal n_steps
            n_steps += 1
            self.stage = f"step {n_steps}"
            self._check_tensor_is_finite("an input", x)
            loss = training_step(x, y, ref_probs)
            self._check_tensor_is_finite("the loss", loss)
            self._check_tensor_is_finite("the model after it", self.trainer.worker.w)
            return loss

        return make_checked_step

    def _check_tensor_is_finite(self, tensor_name: str, tensor: Tensor) -> None:
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{tensor_name} is not finite: check the data, or lower client.lr")
