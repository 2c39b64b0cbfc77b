"""Lightning's `Trainer` for a run: what it is made of, how it trains, and what its errors come to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import nn
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from fedcohort.errors import FedcohortError, IncompatibleConfig
from fedcohort.lightning.checkpoint import FinalWeights, RoundCheckpoint
from fedcohort.lightning.compat import raised_by_a_callback, said_in_a_rank
from fedcohort.lightning.data import CohortDataModule
from fedcohort.lightning.loop import FederatedLoop
from fedcohort.lightning.module import ClientModule
from fedcohort.lightning.stop import EndOfRound, GracefulStop
from fedcohort.lightning.strategy import strategy_for
from fedcohort.lightning.tasks import environment


@dataclass(frozen=True)
class Training:
    """A call of `Trainer.fit`.

    Attributes:
        config: the composed config.
        path: the run's folder.
        loop: the federated loop.
        callbacks: those of the user that are Lightning's own.
        processes: accelerator, devices and num_nodes.
        origin: what wrote the checkpoints (`record.provenance.this`).
    """

    config: Mapping[str, Any]
    path: Path
    loop: FederatedLoop
    callbacks: Sequence[pl.Callback]
    processes: Mapping[str, Any]
    origin: Mapping[str, Any]

    def fit(self, trainer: pl.Trainer, network: nn.Module, checkpoint: Path | None) -> None:
        """Train to the last round; checkpoint: what to go on from."""
        trainer.fit(
            ClientModule(network, watched=bool(self.callbacks)),
            datamodule=CohortDataModule(self.loop.federation, self.config["engine"]["slices"]),
            ckpt_path=checkpoint,
            weights_only=True,
        )

    def trainer(self, *, fresh: bool) -> pl.Trainer:
        """Lightning's; fresh: it goes on from no checkpoint. Raises `IncompatibleConfig` for callbacks that clash."""
        pauses = (self.config["checkpoint"]["every"], self.config["checkpoint"]["every_s"])
        last = RoundCheckpoint(self.path, *pauses, self.loop.stopwatch, self.loop.note_checkpoint, self.origin)
        # On one node the processes are ours, forked: in a SLURM job Lightning would take each for SLURM's rank 0.
        ours = LightningEnvironment() if self.processes["num_nodes"] == 1 else environment()
        try:
            return pl.Trainer(
                strategy=strategy_for(**self.processes),
                **self.processes,
                plugins=ours,
                max_epochs=self.config["rounds"],
                check_val_every_n_epoch=self.config["eval"]["every"],
                num_sanity_val_steps=-1 if fresh else 0,  # it scores w_0: step 0
                callbacks=[
                    *(GracefulStop(), FinalWeights(self.path), self.loop, *self.callbacks),
                    *(EndOfRound(self.loop.decide_end), last),
                ],
                default_root_dir=self.path,  # a ModelCheckpoint without a folder of its own writes here
                logger=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                use_distributed_sampler=False,
            )
        except RuntimeError as error:  # two callbacks whose states could not be told apart
            raise _explain(error) from error


def is_death(error: BaseException) -> bool:
    """Whether a process that trained has died, or raised."""
    return isinstance(error, ProcessExitedException | ProcessRaisedException)


def refusal(error: BaseException) -> FedcohortError | None:
    """The line for what Lightning's callbacks raised; None where they did not."""
    return _explain(error) if isinstance(error, MisconfigurationException) or _by_a_callback(error) else None


def _explain(error: BaseException) -> IncompatibleConfig:
    return IncompatibleConfig(f"Lightning refuses these callbacks: {str(error).splitlines()[0]}")


def _by_a_callback(error: BaseException) -> bool:
    """Whether one of Lightning's own callbacks raised it, say because nothing logs what it monitors."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return isinstance(error, RuntimeError) and raised_by_a_callback(module)


def death_of_a_rank(error: Any) -> str:  # noqa: ANN401  one of torch's two that `is_death` knows
    """One line from what torch says of a process that died or raised."""
    if said := said_in_a_rank(str(error)):
        return said
    last = str(error).strip().splitlines()[-1].strip()
    return f"training process {error.error_index} ended ({last}); go on from the last checkpoint with resume=true"
