"""FederatedLoop: the Lightning callback that makes an epoch a communication round."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn

from fedcohort.data.federation import Federation
from fedcohort.host.interrupt import interrupts
from fedcohort.host.memory import keep_freed_memory
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.lightning.compat import count_a_step
from fedcohort.lightning.data import CohortDataModule
from fedcohort.lightning.module import ClientModule
from fedcohort.lightning.stop import finish, report_end, status_of
from fedcohort.ranks import reduce_max
from fedcohort.record.observer import Observer
from fedcohort.round.budget import Spending
from fedcohort.round.components import Components
from fedcohort.round.round import RoundRunner
from fedcohort.round.settings import Settings
from fedcohort.round.setup import Setup, choose_layout
from fedcohort.round.shared import Shared
from fedcohort.types import Values


class FederatedLoop(pl.Callback):
    """Calls the steps of `round/round.py` once per epoch; its state_dict is the whole state of the server.

    A signal (`host.interrupt`) stops the run at the end of the current round.

    Attributes:
        info: function from the expected seconds of each client's job to the facts that observers get at the start.
        reason: description of the engine and why it was chosen.
        folder: folder for a clients' store that does not fit into memory.
        new_folder: whether this process created the folder, which is removed if no round is trained.
        last_reported: last round that this process reported.
        owners: option by module, to name the component that raised an exception.
        ends_early: configs of the callbacks that may end the run.
        halted: whether one of them has ended it.
        started: whether observers were started in this process, which is that of rank 0.
        spending: amounts that the run has reached, including rounds before a resume.
    """

    def __init__(self, components: Components, settings: Settings, federation: Federation) -> None:
        self.components, self.settings, self.federation = components, settings, federation
        self.observers: Sequence[Observer] = ()
        self.info: Callable[[Values], Any] = lambda expected_s: None
        self.rounds: RoundRunner
        self.stopwatch = Stopwatch()
        self.reason = ""
        self.folder: Path | None = None
        self.new_folder = False
        self.last_reported = 0
        self.asked_to_stop = False
        self.owners: Mapping[str, str] = {}
        self.ends_early: Sequence[Any] = ()
        self.halted = False
        self.started = False
        self.spending = Spending()
        self._restored: dict[str, Any] | None = None

    # --- start -------------------------------------------------------------------------------------------------
    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Make the objects of the rounds, now that the network is on its device and has its restored weights."""
        keep_freed_memory()
        module = self._module(pl_module)
        self.federation = self.federation.to(module.device)
        setup = Setup(self.components, self.settings, self.federation, module.network, self.stopwatch, self.folder)
        self.shared = Shared(self.federation)
        self.rounds = RoundRunner(setup, self.stopwatch)
        self._data(trainer).federation = self.federation
        module.stopwatch, module.targets = self.stopwatch, self.federation.targets
        module.engine, self.reason = setup.engine, setup.reason
        if self._restored is not None:
            self.rounds.restore(self._restored["server"], self._restored["clients"])
            self.halted = self._restored.get("halted_by") == list(self.ends_early)
            # A run that was killed after its last round has no further round to train.
            trainer.should_stop = self.halted or bool(self.settings.budget.list_reached(self.spending.now))
        if trainer.is_global_zero:
            info = self.info(setup.dispatcher.populations.facts["expected_s"])
            self.started = True
            for observer in self.observers:
                observer.start(info)

    def lay_out(self, network: nn.Module) -> None:
        """Choose the memory layout of images before training processes are forked, so that they share it."""
        choose_layout(self.settings, network, self.federation)

    # --- a round -----------------------------------------------------------------------------------------------
    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Dispatch and finish the round's virtual time, and distribute this process's tasks over its slices."""
        module = self._module(pl_module)
        module.evaluated = {}
        tasks, module.collector = self.rounds.begin(trainer.current_epoch)
        self._data(trainer).slices.deal(tasks)
        broadcast = self.components.agg.broadcast(self.rounds.state.agg)
        module.down = {name: vector.to(module.device) for name, vector in broadcast.items()}

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Aggregate after the last slice, as the model is validated before `on_train_epoch_end`."""
        if batch_idx + 1 == self.settings.slices:
            self.rounds.end(self._module(pl_module).collector)
            count_a_step(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._report(trainer, self._module(pl_module), trainer.current_epoch + 1)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Report step 0, as the sanity check validates w_0."""
        if trainer.sanity_checking:
            self._report(trainer, self._module(pl_module), 0)

    def decide_end(self, trainer: pl.Trainer) -> None:
        """Decide whether the run ends with this round; `should_stop` is set if a callback has ended it."""
        done = bool(self.settings.budget.list_reached(self.spending.now))
        code, ends, halted = reduce_max(
            torch.tensor([interrupts.code, int(done), int(trainer.should_stop)])
        ).tolist()  # the same on all ranks, whichever rank received a signal
        interrupts.record_exit_code(code)
        self.asked_to_stop, self.halted = code > 0, halted > 0
        trainer.should_stop = self.asked_to_stop or ends > 0 or self.halted

    def _report(self, trainer: pl.Trainer, module: ClientModule, step: int) -> None:
        report = self.rounds.report(step, module.evaluated)
        self.last_reported = step
        self.spending = self.spending.after_round(step, report.metrics)
        if trainer.is_global_zero:
            with self.stopwatch.stage("log"):
                for observer in self.observers:
                    observer.observe(report)

    # --- end -----------------------------------------------------------------------------------------------------
    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.shared.verify(self.federation)
        self._finish(
            report_end(trainer, self.settings.budget, self.spending.now, self.asked_to_stop and not self.halted)
        )

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._finish(status_of(exception, nothing_trained=self.new_folder and self.last_reported == 0))

    def _finish(self, status: str) -> None:
        if self.started:
            self.started = False
            finish(self.observers, status)

    # --- state -------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        digests = (observer.digest(self.last_reported) for observer in self.observers)
        return {
            "config_hash": self.settings.config_hash,
            "server": self.rounds.state.pack(self.components),
            "clients": self.rounds.setup.store.state_dict(),
            "spending": self.spending.pack(),
            "journal": next(filter(None, digests), None),
            "halted_by": list(self.ends_early) if self.halted else None,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._restored = state_dict

    def note_checkpoint(self) -> None:
        """Note that the state last returned by `state_dict` is on disk."""
        self.rounds.setup.store.note_checkpoint()
        for observer in self.observers:
            observer.note_checkpoint()

    @staticmethod
    def _module(pl_module: pl.LightningModule) -> ClientModule:
        if not isinstance(pl_module, ClientModule):
            raise TypeError(f"FederatedLoop drives a ClientModule, not a {type(pl_module).__name__}")
        return pl_module

    @staticmethod
    def _data(trainer: pl.Trainer) -> CohortDataModule:
        data = getattr(trainer, "datamodule", None)
        if not isinstance(data, CohortDataModule):
            raise TypeError("FederatedLoop needs a CohortDataModule")
        return data
