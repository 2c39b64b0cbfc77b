"""The choice of the engine that trains the clients, with its reason."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from torch import Tensor

from fedcohort.training.client_task import ClientTask
from fedcohort.training.debug import Debug
from fedcohort.training.dual import Dual
from fedcohort.training.local import LocalTrainer
from fedcohort.training.vectorised import Vectorised
from fedcohort.types import ClientUpdate

SMALL = 2_000_000  # parameters up to which one client at a time does not use a GPU fully


class Engine(Protocol):
    def group_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of tasks that are trained at once; a slice of the cohort has whole groups only."""
        ...

    def updates(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train the clients in the order of the tasks."""
        ...


def choose(kind: str, trainer: LocalTrainer, chunk: int) -> tuple[Engine, str]:
    """Return the engine of the option `engine.kind`, with a description and its reason.

    kind=auto means vectorised for linear models, and for small models on a GPU; else sequential.
    """
    worker = trainer.worker
    if kind == "debug":
        return Debug(trainer), "debug, as requested"
    if trainer.weighs:
        return trainer, "sequential: the aggregator weighs samples step by step, one client at a time through autograd"
    if trainer.augmentation is not None:
        return trainer, "sequential: the augmentation changes samples in every pass, one client at a time"
    mixes = "batch norm" if worker.has_batch_norm else "dropout" if worker.has_dropout else ""
    mixes = "recurrent layers" if worker.has_recurrence else mixes
    if kind == "vectorised" and mixes:
        return trainer, f"sequential: the vectorised engine does not support {mixes}"
    if kind != "sequential" and Dual.fits(trainer):
        return Dual(trainer, chunk), f"vectorised: a linear model in its dual, up to {chunk} clients at a time"
    if kind == "vectorised":
        return Vectorised(trainer, chunk), f"vectorised, as requested: {chunk} clients at a time"
    if kind == "auto" and worker.w.device.type == "cuda" and not mixes and worker.layout.n_params <= SMALL:
        return Vectorised(trainer, chunk), f"vectorised: a small model on a GPU, {chunk} clients at a time"
    return trainer, f"sequential: {_gradients(trainer)}, one client at a time" + (
        "" if kind == "auto" else ", as requested"
    )


def _gradients(trainer: LocalTrainer) -> str:
    if trainer.chain is None:
        return "autograd on flat views"
    scope = "" if trainer.chain.front is None else " of the dense layers, autograd before them"
    return f"hand-written gradients{scope}"
