"""The end of a run: by a signal (after the current round is saved; a second signal drops it), a budget or an error."""

import logging
from collections.abc import Sequence

import lightning.pytorch as pl
from lightning.fabric.utilities.exceptions import MisconfigurationException

from fedcohort.errors import FedcohortError
from fedcohort.host import disk
from fedcohort.host.interrupt import interrupts
from fedcohort.record.observer import Observer
from fedcohort.round.budget import Budget, BudgetUse

log = logging.getLogger("fedcohort")


def find_end_status(exception: BaseException, *, has_no_rounds: bool) -> str:
    """Return the status of a run that raised `exception`: "dropped", "interrupted" or "failed".

    has_no_rounds: whether no round was trained. A signal during C++ code may raise any exception.
    """
    is_interrupted = isinstance(exception, KeyboardInterrupt | SystemExit) or interrupts.has_pending_signal
    if has_no_rounds and (is_interrupted or isinstance(exception, FedcohortError | MisconfigurationException)):
        return "dropped"
    return "interrupted" if is_interrupted else "failed"


def describe_stopping_callback(trainer: pl.Trainer) -> str:
    """Return which callback ended the run of `trainer` early, and why if it has a message, like EarlyStopping."""
    callbacks: list[pl.Callback] = getattr(trainer, "callbacks", [])
    stop_reasons = ((type(c).__name__, getattr(c, "stopping_reason_message", None)) for c in callbacks)
    return "; ".join(f"{k}: {r}" for k, r in stop_reasons if r) or "a callback stopped the run"


def log_run_end(trainer: pl.Trainer, budget: Budget, budget_use: BudgetUse, is_interrupted: bool) -> str:
    """Log why a run ended at the end of `fit`, and return its status, "finished" or "interrupted".

    Args:
        trainer: Lightning's trainer.
        budget: the limits of the run.
        budget_use: the amounts that the run has reached.
        is_interrupted: whether a signal ended the run.
    """
    has_reached_budget = bool(budget.list_reached_limits(budget_use))
    end_reason = budget.describe_reached_limits(budget_use)
    if not (end_reason or has_reached_budget or is_interrupted):
        end_reason = describe_stopping_callback(trainer)
    if end_reason and trainer.is_global_zero:
        log.info("ended after round %d of %d. %s", budget_use.rounds, budget.rounds, end_reason)
    return "finished" if has_reached_budget or not is_interrupted else "interrupted"


def finish_observers(observers: Sequence[Observer], run_status: str) -> None:
    """Call `finish` of all observers, even if one fails or a signal stops it; raise the first failure.

    Args:
        observers: the receivers of the run's reports.
        run_status: how the run ended, as "finished"; observers after a failure get "failed".
    """
    observer_errors: list[Exception] = []
    for observer in observers:
        try:
            observer.finish("failed" if observer_errors else run_status)
        except Exception as error:
            traceback_error = None if isinstance(error, FedcohortError) or disk.is_disk_error(error) else error
            log.error("%s could not finish: %s", type(observer).__name__, error, exc_info=traceback_error)
            observer_errors.append(error)
        except KeyboardInterrupt:
            # the next resume writes what is missing
            run_status = "interrupted" if run_status == "finished" else run_status
    if observer_errors:
        raise observer_errors[0]
