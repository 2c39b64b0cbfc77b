"""Lightning's `Trainer` for a run, and messages for its errors."""

import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import nn
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from fedcohort.errors import FedcohortError, IncompatibleConfig
from fedcohort.host.interrupt import RunPhase, interrupts
from fedcohort.host.processes import read_process_options
from fedcohort.lightning.checkpoint import RoundCheckpoint
from fedcohort.lightning.compat import find_rank_message, is_callback_module
from fedcohort.lightning.data import CohortDataModule
from fedcohort.lightning.loop import FederatedLoop
from fedcohort.lightning.module import ClientModule
from fedcohort.lightning.strategy import make_lightning_strategy
from fedcohort.lightning.tasks import cluster_environment


def train(
    config: Mapping[str, Any],
    run_path: Path,
    loop: FederatedLoop,
    network: nn.Module,
    callbacks: Sequence[pl.Callback],
    run_origin: Mapping[str, Any],
    rounds_done: int,
) -> None:
    """Train `network` up to the last round by Lightning's `Trainer.fit`.

    Args:
        config: the composed config.
        run_path: the run's folder.
        loop: the callback that runs the rounds.
        network: the network to train.
        callbacks: the user's callbacks of Lightning.
        run_origin: versions and commit of this process (`record.provenance`).
        rounds_done: rounds of the checkpoint from which the run resumes; 0 for a new run.

    Raises:
        IncompatibleConfig: two callbacks conflict.
    """
    process_options = read_process_options(config)
    checkpoint_callback = RoundCheckpoint(run_path, config["checkpoint"], loop, run_origin)
    # Processes on one node are forked; in a SLURM job Lightning would otherwise take each for SLURM's rank 0.
    cluster = LightningEnvironment() if process_options["num_nodes"] == 1 else cluster_environment()
    try:
        trainer = pl.Trainer(
            strategy=make_lightning_strategy(**process_options),
            **process_options,
            plugins=cluster,
            max_epochs=config["rounds"],
            check_val_every_n_epoch=config["eval"]["every"],
            num_sanity_val_steps=0 if rounds_done else -1,  # evaluates w_0, for step 0
            callbacks=[loop, *callbacks, checkpoint_callback],
            default_root_dir=run_path,  # a ModelCheckpoint without a folder of its own writes here
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
    except RuntimeError as error:  # two callbacks with the same key of their state
        raise _explain_rejection(error) from error
    interrupts.enter_phase(RunPhase.PROCESSES_FORKED)  # the loop reverts this in the process that trains
    trainer.fit(
        ClientModule(network, is_monitored=bool(callbacks)),
        datamodule=CohortDataModule(loop.federation, config["engine"]["slices"]),
        ckpt_path=checkpoint_callback.path if rounds_done else None,
        weights_only=True,
    )


def is_process_death(error: BaseException) -> bool:
    """Return whether `error` means that a training process has died, or raised an exception."""
    return isinstance(error, ProcessExitedException | ProcessRaisedException)


def find_rejection(error: BaseException) -> FedcohortError | None:
    """Return the error that explains `error`, an exception of Lightning's callbacks; None for other exceptions."""
    is_rejection = isinstance(error, MisconfigurationException) or _was_raised_by_callback(error)
    return _explain_rejection(error) if is_rejection else None


def _explain_rejection(error: BaseException) -> IncompatibleConfig:
    rejection_text = str(error).splitlines()[0]
    return IncompatibleConfig(f"Lightning rejects the callbacks ({rejection_text}): change or remove one of them")


def _was_raised_by_callback(error: BaseException) -> bool:
    """Return whether a callback of Lightning raised `error`, for example if its monitored metric is not logged."""
    module_names = [f.f_globals.get("__name__", "") for f, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, RuntimeError) and bool(module_names) and is_callback_module(module_names[-1])


def describe_rank_death(error: Any) -> str:  # noqa: ANN401  one of torch's two that `is_process_death` knows
    """Return one line about a training process that died, or raised an exception, from torch's `error`."""
    if rank_message := find_rank_message(str(error)):
        return rank_message
    cause_text = f"training process {error.error_index} ended ({str(error).strip().splitlines()[-1].strip()})"
    return f"{cause_text}; resume from the last checkpoint with resume=true"
