"""The private parts of Lightning are there: where one is gone, these fail with a sentence that names the version."""

import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import lightning.pytorch as pl
import pytest
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import EarlyStopping
from torch.multiprocessing.spawn import ProcessRaisedException

from fedcohort.errors import LibraryMismatch, OptionError
from fedcohort.lightning import compat
from fedcohort.lightning.strategy import CohortLauncher, CohortStrategy


def sentence(part: str) -> str:
    return (
        rf"lightning {version('lightning')} is installed, and {part}, which .* install "
        f"lightning=={compat.LIGHTNING_VERSION}"
    )


@pytest.fixture
def trainer(tmp_path: Path) -> pl.Trainer:
    return pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        default_root_dir=tmp_path,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )


@pytest.fixture
def strategy() -> CohortStrategy:
    return CohortStrategy(cluster_environment=LightningEnvironment(), process_group_backend="gloo", start_method="fork")


def test_the_global_step_of_lightning_advances(trainer: pl.Trainer) -> None:
    trainer.fit_loop.epoch_loop.manual_optimization.on_run_start()
    before = trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.total.completed
    compat.advance_global_step(trainer)
    assert trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.total.completed == before + 1


def test_the_checkpoint_function_of_lightning_exists(trainer: pl.Trainer) -> None:
    """The content of the checkpoint is tested in `test_checkpoint_resume.py`."""
    assert callable(compat._read_private(trainer, "_checkpoint_connector.dump_checkpoint", "makes checkpoints"))


def test_the_strategy_uses_the_cohort_launcher(strategy: CohortStrategy) -> None:
    strategy._configure_launcher()
    assert type(strategy._launcher) is CohortLauncher, (
        f"lightning {version('lightning')}: `_launcher` is not what is used"
    )
    assert strategy._launcher._strategy is strategy
    assert compat.read_process_timeout(strategy).total_seconds() > 0


def test_lightning_still_calls_the_launcher_hook(strategy: CohortStrategy) -> None:
    has_hook = hasattr(pl.strategies.DDPStrategy, "_configure_launcher")
    assert has_hook, (
        f"lightning {version('lightning')} has no DDPStrategy._configure_launcher, which makes our launcher"
    )


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (compat.make_checkpoint_content, r"SimpleNamespace\._checkpoint_connector\.dump_checkpoint"),
        (
            compat.advance_global_step,
            r"SimpleNamespace\.fit_loop\.epoch_loop\.manual_optimization\.optim_step_progress",
        ),
        (compat.read_process_timeout, r"SimpleNamespace\._timeout"),
        (lambda nothing: compat.make_fork_launcher(nothing, CohortLauncher), r"SimpleNamespace\._start_method"),
    ],
)
def test_a_missing_private_attribute_is_named_with_the_library_version(
    call: Callable[[object], object], part: str
) -> None:
    with pytest.raises(LibraryMismatch, match=sentence(part)):
        call(SimpleNamespace())


def test_lightning_callbacks_are_recognised_by_their_package() -> None:
    assert compat.is_callback_module(EarlyStopping.__module__), f"lightning {version('lightning')} keeps them elsewhere"
    assert not compat.is_callback_module("torch.nn")


@pytest.mark.parametrize("error", [OptionError("lr must be positive"), MisconfigurationException("no such monitor")])
def test_the_message_of_a_rank_is_extracted_from_torchs_error(error: Exception) -> None:
    text = "".join(traceback.format_exception(error))
    message = compat.find_rank_message(str(ProcessRaisedException(f"\n\n-- Process 1 terminated:\n{text}", 1, 7)))
    assert message == str(error), f"torch {version('torch')} says it otherwise: {text}"
    assert compat.find_rank_message("Traceback\nValueError: x") is None
