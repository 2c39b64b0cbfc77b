"""The choice of the engine that trains the clients, with its reason."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from torch import Tensor

from fedcohort.training.client_task import ClientTask
from fedcohort.training.debug import DebugEngine
from fedcohort.training.dual import GramMatrixEngine
from fedcohort.training.local import LocalTrainer
from fedcohort.training.vectorised import VectorisedEngine
from fedcohort.types import ClientUpdate

MAX_SMALL_PARAMETERS = 2_000_000  # parameters up to which one client at a time does not use a GPU fully


class Engine(Protocol):
    """An implementation of local training, which trains the clients of a round, one or several at a time."""

    def group_client_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of `tasks`, one per client, that are trained at once; no group is in two training batches."""
        ...

    def train_clients(self, tasks: Sequence[ClientTask], broadcast: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train the clients, and yield their updates in the order of `tasks`.

        `broadcast` has the vectors, by name, that the aggregator sends to clients.
        """
        ...


def choose_engine(engine_kind: str, trainer: LocalTrainer, clients_at_once: int) -> tuple[Engine, str]:
    """Return the implementation of local training to use (the engine), and a text that names and justifies it.

    `auto` means vectorised for linear models, and for small models on a GPU; else sequential.

    Args:
        engine_kind: option `engine.kind`: auto, sequential, vectorised or debug.
        trainer: trains single clients.
        clients_at_once: number of clients that the vectorised engine trains at a time.
    """
    worker = trainer.worker
    if engine_kind == "debug":
        return DebugEngine(trainer), "debug, as requested"
    if trainer.weighs_samples:
        return trainer, "sequential: the aggregator weighs samples step by step, one client at a time through autograd"
    if trainer.augmentation is not None:
        return trainer, "sequential: the augmentation changes samples in every pass, one client at a time"
    sample_mixing_layer = "batch norm" if worker.has_batch_norm else "dropout" if worker.has_dropout else ""
    sample_mixing_layer = "recurrent layers" if worker.has_recurrence else sample_mixing_layer
    if engine_kind == "vectorised" and sample_mixing_layer:
        return trainer, f"sequential: the vectorised engine does not support {sample_mixing_layer}"
    if engine_kind != "sequential" and GramMatrixEngine.supports_trainer(trainer):
        return GramMatrixEngine(trainer), "vectorised: a linear model in its dual, many clients at a time"
    is_small_gpu_model = worker.w.device.type == "cuda" and worker.layout.n_params <= MAX_SMALL_PARAMETERS
    if engine_kind == "vectorised" or (engine_kind == "auto" and is_small_gpu_model and not sample_mixing_layer):
        engine_reason = ", as requested:" if engine_kind == "vectorised" else ": a small model on a GPU,"
        return VectorisedEngine(
            trainer, clients_at_once
        ), f"vectorised{engine_reason} {clients_at_once} client{'s' * (clients_at_once != 1)} at a time"
    gradient_method = "autograd on flat views"
    if trainer.chain is not None:
        closed_form_scope = "" if trainer.chain.front_layers is None else " of the dense layers, autograd before them"
        gradient_method = f"hand-written gradients{closed_form_scope}"
    requested_suffix = "" if engine_kind == "auto" else ", as requested"
    return trainer, f"sequential: {gradient_method}, one client at a time{requested_suffix}"
