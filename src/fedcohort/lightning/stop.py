"""How a run ends: by a signal (the round in progress is finished and saved, a second one drops it), or by an error."""

import logging
from collections.abc import Callable, Sequence

import lightning.pytorch as pl
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Checkpoint

from fedcohort.errors import FedcohortError
from fedcohort.host import disk
from fedcohort.host.interrupt import interrupts
from fedcohort.record.observer import Observer
from fedcohort.round.budget import Budget, Spent

log = logging.getLogger("fedcohort")


class GracefulStop(pl.Callback):
    """Tells `interrupts` what the run is doing, and takes the signals back from Lightning. The first of the callbacks.

    Lightning's own SIGTERM handler would drop the round, and its Ctrl-C leaves the signal ignored.
    """

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.prepares()
        interrupts.check()

    def on_sanity_check_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.listen()
        interrupts.check()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.listen()
        interrupts.check()
        interrupts.trains()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.writes_files()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """What the callbacks after this one still write is not for another signal to break."""
        interrupts.breaks_off()

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A run that is resumed at its end has no round to train."""
        interrupts.writes_files()


class EndOfRound(Checkpoint):
    """Calls `decide` when all callbacks have said whether the run is to end, and before the checkpoint, which holds it.

    Lightning calls EarlyStopping after every other callback, and subclasses of `Checkpoint` after that.
    """

    def __init__(self, decide: Callable[[pl.Trainer], None]) -> None:
        self.decide = decide

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.decide(trainer)


def status_of(exception: BaseException, *, nothing_trained: bool) -> str:
    """How a run ended that raised. A signal while C++ was at work may have become another error on its way."""
    stopped = isinstance(exception, KeyboardInterrupt | SystemExit) or interrupts.waits
    if nothing_trained and (stopped or isinstance(exception, FedcohortError | MisconfigurationException)):
        return "dropped"
    return "interrupted" if stopped else "failed"


def find_stopper(trainer: pl.Trainer) -> str:
    """Which callback ended a run before its last round, and why, where it says so (EarlyStopping does)."""
    callbacks: list[pl.Callback] = getattr(trainer, "callbacks", [])
    reasons = [(type(each).__name__, getattr(each, "stopping_reason_message", None)) for each in callbacks]
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)
    return why or "a callback asked for it"


def end(trainer: pl.Trainer, budget: Budget, spent: Spent, asked_to_stop: bool) -> str:
    """How a fit ended: a run that a budget or a callback ended is finished; one that a signal stopped is not."""
    done = bool(budget.list_reached(spent))
    why = budget.describe(spent) or (find_stopper(trainer) if not done and not asked_to_stop else "")
    if why and trainer.is_global_zero:
        log.info("ended after round %d of %d. %s", spent.rounds, budget.rounds, why)
    return "finished" if done or not asked_to_stop else "interrupted"


def finish(observers: Sequence[Observer], status: str) -> None:
    """One observer's failure never costs the others their end; nor does a signal that gives up what one writes."""
    failures: list[Exception] = []
    for observer in observers:
        try:
            observer.finish("failed" if failures else status)
        except Exception as error:
            trace = None if isinstance(error, FedcohortError) or disk.refuses(error) else error
            log.error("%s could not finish: %s", type(observer).__name__, error, exc_info=trace)
            failures.append(error)
        except KeyboardInterrupt:
            status = "interrupted" if status == "finished" else status  # the next resume writes what is missing
    if failures:
        raise failures[0]
