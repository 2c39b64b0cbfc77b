"""FederatedLoop: the Lightning callback that makes an epoch a communication round."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

from fedcohort.data.federation import Federation
from fedcohort.host.interrupt import RunPhase, interrupts
from fedcohort.host.memory import reuse_freed_memory
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.lightning.checkpoint import write_final_weights
from fedcohort.lightning.compat import advance_global_step
from fedcohort.lightning.data import CohortDataModule
from fedcohort.lightning.module import ClientModule
from fedcohort.lightning.stop import find_end_status, finish_observers, log_run_end
from fedcohort.process_ranks import reduce_max
from fedcohort.record.observer import Observer
from fedcohort.round.budget import BudgetHistory
from fedcohort.round.components import Components
from fedcohort.round.round import RoundRunner
from fedcohort.round.settings import Settings
from fedcohort.round.setup import RunSetup
from fedcohort.round.shared_data import SharedDataState
from fedcohort.types import Values


class FederatedLoop(pl.Callback):
    """A Lightning callback that makes an epoch a communication round; its state_dict is the whole state of the server.

    A signal stops the run at the end of the current round. The loop is the first callback: it records the phase of the
    run, on which the effect of a signal depends, and replaces Lightning's signal handlers by those of `host.interrupt`.
    Lightning's SIGTERM handler would drop the round, and its handler of Ctrl-C leaves the signal ignored.

    Attributes:
        components: the run's components, such as selector and aggregator.
        settings: the run's options that belong to no component.
        federation: the data of clients and server.
        observers: receivers of the reports, such as the journal.
        make_run_info: function from the expected seconds of each client's job to the facts that observers get at the
            start.
        engine_reason: name of the engine, which trains the clients, and why it was chosen.
        folder: folder for vectors that clients keep between rounds, if they do not fit into memory.
        new_folder: whether this process created the folder, which is removed if no round is trained.
        last_reported_round: last round that this process reported.
        component_by_module: option by module, to name the component that raised an exception.
        ends_early: configs of the callbacks that may end the run.
        is_halted: whether one of these callbacks has ended the run.
        has_started: whether observers were started in this process, which is that of rank 0.
        spending: the rounds, costs and accuracy that the run has reached, also before a resume (`round/budget.py`).
    """

    def __init__(self, components: Components, settings: Settings, federation: Federation) -> None:
        self.components, self.settings, self.federation = components, settings, federation
        self.observers: Sequence[Observer] = ()
        self.make_run_info: Callable[[Values], Any] = lambda expected_s: None
        self.round_runner: RoundRunner
        self.stopwatch = Stopwatch()
        self.engine_reason = ""
        self.folder: Path | None = None
        self.new_folder = False
        self.last_reported_round = 0
        self.is_stop_requested = False
        self.component_by_module: Mapping[str, str] = {}
        self.ends_early: Sequence[Any] = ()
        self.is_halted = False
        self.has_started = False
        self.spending = BudgetHistory()
        self._restored_state: dict[str, Any] | None = None

    # --- start -------------------------------------------------------------------------------------------------
    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Make the objects that run the rounds, now that the network is on its device and has its restored weights.

        `trainer` and `pl_module` are Lightning's trainer and the `ClientModule`.
        """
        interrupts.enter_phase(RunPhase.BEFORE_ROUNDS)
        interrupts.raise_if_interrupted()
        reuse_freed_memory()
        if not isinstance(pl_module, ClientModule):
            module_class = type(pl_module).__name__
            raise TypeError(f"FederatedLoop trains a ClientModule, got a {module_class}: pass one to Trainer.fit")
        data_module = getattr(trainer, "datamodule", None)
        if not isinstance(data_module, CohortDataModule):
            raise TypeError("FederatedLoop needs a CohortDataModule: pass one to Trainer.fit as datamodule")
        self._client_module, self._data_module = pl_module, data_module
        network, self.federation = pl_module.network, self.federation.to(pl_module.device)
        run_setup = RunSetup(self.components, self.settings, self.federation, network, self.stopwatch, self.folder)
        self.shared_state = SharedDataState(self.federation)
        self.round_runner = RoundRunner(run_setup, self.stopwatch)
        data_module.federation = self.federation
        pl_module.stopwatch, pl_module.targets = self.stopwatch, self.federation.targets
        pl_module.average = run_setup.average
        pl_module.engine, self.engine_reason = run_setup.engine, run_setup.engine_reason
        if (saved_state := self._restored_state) is not None:
            self.round_runner.restore_state(saved_state["server"], saved_state["clients"], saved_state.get("average"))
            self.is_halted = saved_state.get("halted_by") == list(self.ends_early)
            # A run that was killed after its last round has no further round to train.
            trainer.should_stop = self.is_halted or bool(self.settings.budget.list_reached_limits(self.spending.now))
        if trainer.is_global_zero:
            run_info = self.make_run_info(run_setup.dispatcher.populations.facts["expected_s"])
            self.has_started = True
            for observer in self.observers:
                observer.start(run_info)

    def on_sanity_check_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.reinstall_handlers()
        interrupts.raise_if_interrupted()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.reinstall_handlers()
        interrupts.raise_if_interrupted()
        interrupts.enter_phase(RunPhase.IN_ROUNDS)

    # --- a round -----------------------------------------------------------------------------------------------
    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Select the round's cohort, and distribute the clients that this process trains over its training batches.

        `trainer` and `pl_module` are Lightning's trainer and the `ClientModule`.
        """
        client_module = self._client_module
        client_module.server_metrics = {}
        task_groups, client_module.collector = self.round_runner.begin_round(trainer.current_epoch)
        self._data_module.slices.distribute_tasks(task_groups)
        client_module.sent_models = self.round_runner.sent_models(trainer.current_epoch)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Aggregate the updates after the cohort's last slice, as Lightning validates before `on_train_epoch_end`.

        `batch_idx` is the number of the slice, from 0; the other arguments are Lightning's.
        """
        if batch_idx + 1 == self.settings.slices:
            self.round_runner.end_round(self._client_module.collector)
            advance_global_step(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._report_round(trainer, trainer.current_epoch + 1)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report step 0, the untrained model, which Lightning's sanity check validates.

        `trainer` and `pl_module` are Lightning's trainer and the `ClientModule`.
        """
        if trainer.sanity_checking:
            self._report_round(trainer, 0)

    def decide_end(self, trainer: pl.Trainer) -> None:
        """Decide whether the run ends with this round, and set `trainer.should_stop`, which a callback may have set."""
        has_reached_budget = bool(self.settings.budget.list_reached_limits(self.spending.now))
        end_reason_flags = torch.tensor([interrupts.exit_code, int(has_reached_budget), int(trainer.should_stop)])
        # equal on all ranks, whichever received a signal
        exit_code, is_last_round, is_halted_by_callback = reduce_max(end_reason_flags).tolist()
        interrupts.record_exit_code(exit_code)
        self.is_stop_requested, self.is_halted = exit_code > 0, is_halted_by_callback > 0
        trainer.should_stop = self.is_stop_requested or is_last_round > 0 or self.is_halted

    def _report_round(self, trainer: pl.Trainer, rounds_done: int) -> None:
        round_report = self.round_runner.make_round_report(rounds_done, self._client_module.server_metrics)
        self.last_reported_round = rounds_done
        self.spending = self.spending.add_round_metrics(rounds_done, round_report.metrics)
        if trainer.is_global_zero:
            with self.stopwatch.measure_stage_time("log"):
                for observer in self.observers:
                    observer.observe(round_report)

    # --- end -----------------------------------------------------------------------------------------------------
    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.enter_phase(RunPhase.WRITING_FILES)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the last files, and finish the observers.

        `trainer` and `pl_module` are Lightning's trainer and the `ClientModule`.
        """
        interrupts.enter_phase(RunPhase.WRITING_FILES)  # a run that resumes after its last round has no `on_train_end`
        if trainer.is_global_zero and self.folder is not None:
            write_final_weights(self.folder, self._client_module.network, self._client_module.average)
        self.shared_state.verify_data_unchanged(self.federation)
        is_interrupted = self.is_stop_requested and not self.is_halted
        self._finish_observers(log_run_end(trainer, self.settings.budget, self.spending.now, is_interrupted))

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        interrupts.enter_failure_phase()  # so that further signals do not interrupt the observers
        self._finish_observers(
            find_end_status(exception, has_no_rounds=self.new_folder and self.last_reported_round == 0)
        )

    def _finish_observers(self, run_status: str) -> None:
        if self.has_started:
            self.has_started = False
            finish_observers(self.observers, run_status)

    # --- state -------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        return {
            "config_hash": self.settings.config_hash,
            "server": self.round_runner.state.to_plain_data(self.components),
            "clients": self.round_runner.setup.store.state_dict(),
            "average": self.round_runner.setup.average.state_dict(),
            "spending": self.spending.to_plain_data(),
            "journal": next(filter(None, (o.digest(self.last_reported_round) for o in self.observers)), None),
            "halted_by": list(self.ends_early) if self.is_halted else None,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._restored_state = state_dict

    def record_checkpoint(self) -> None:
        """Record that the checkpoint with the latest result of `state_dict` is on disk."""
        self.round_runner.setup.store.record_checkpoint()
        for observer in self.observers:
            observer.record_checkpoint()
