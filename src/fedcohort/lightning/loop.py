"""FederatedLoop: the Lightning callback that makes an epoch a communication round."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn

from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.hook import ClientHook, averaged_uploads
from fedcohort.host.interrupt import interrupts
from fedcohort.host.memory import keep_freed_memory
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.lightning.compat import count_a_step
from fedcohort.lightning.data import CohortDataModule
from fedcohort.lightning.module import ClientModule
from fedcohort.lightning.stop import end, finish, status_of
from fedcohort.ranks import reduce_max, reduce_sum, share_of
from fedcohort.record.observer import Observer
from fedcohort.rng import Draws
from fedcohort.round.aggregate import ServerStep, declared_reports, keeps_updates, longest
from fedcohort.round.budget import Spending
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.collect import Collector
from fedcohort.round.collected import Collected
from fedcohort.round.cost import CostModel
from fedcohort.round.following import Following
from fedcohort.round.parts import Parts, ServerState
from fedcohort.round.plan import PlannedRound, RoundPlanner
from fedcohort.round.report import columns, facts_of, registered_columns, report_of, weights_hash
from fedcohort.round.sampling import foresee
from fedcohort.round.settings import Settings
from fedcohort.round.shared import Shared
from fedcohort.round.store import ClientStore, store_for
from fedcohort.training.engines import choose
from fedcohort.training.evaluate import FederationLab, client_metrics, scored, worst_group
from fedcohort.training.flops import forward_flops
from fedcohort.training.local import LocalTrainer
from fedcohort.training.memory_layout import lay_out, wants_channels_last
from fedcohort.types import ClientUpdate, Values


class FederatedLoop(pl.Callback):
    """select - broadcast - collect - aggregate, once an epoch; its state_dict is the server's whole state.

    A signal that `interrupt.interrupts` knows of stops the run at the end of the round in progress. `info` makes what
    observers are told at the start out of the expected seconds of each client's job.
    """

    def __init__(self, parts: Parts, settings: Settings, federation: Federation) -> None:
        self.parts, self.settings, self.federation = parts, settings, federation
        self.observers: Sequence[Observer] = ()
        self.info: Callable[[Values], Any] = lambda expected_s: None
        self.store: ClientStore
        self.stopwatch = Stopwatch()
        self.reason = ""  # for the engine that was chosen
        self.folder: Path | None = None  # where a client store too large for memory may live
        self.new_folder = False  # made by this process: it goes where no round was trained
        self.last_reported = 0  # the last round that was reported by this process
        self.asked_to_stop = False
        self.owners: Mapping[str, str] = {}  # option by module, to name the component that raised an exception
        self.ends_early: Sequence[Any] = ()  # the configs of the callbacks that may end the run
        self.halted = False  # by one of them
        self.started = False  # in the process whose observers watch: rank 0, which may be a child of this one
        self.spending = Spending()  # of the rounds that a resume goes on from
        self._restored: dict[str, Any] | None = None

    # --- start -------------------------------------------------------------------------------------------------
    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The network stands on its device, restored weights in it: make the flat models."""
        keep_freed_memory()
        module = self._module(pl_module)
        self.federation = self.federation.to(module.device)
        flops = forward_flops(module.network, self.federation)
        last = self.lay_out(module.network)
        self.shared = Shared(self.federation)
        worker = FlatModel(copy.deepcopy(module.network), last, self.settings.precision == "bf16")
        self.server = FlatModel(module.network, last)
        layout = self.server.layout
        alone = self._trainer_of(worker, self.parts.codec.hooks)
        lab = FederationLab(self.server, worker, self.federation, partial(self._foresee, alone))
        cost_model = CostModel(self.parts, self.federation, layout, flops, worker.has_batch_norm)
        self.planner = RoundPlanner(self.parts, self.settings, self.federation, layout, lab, cost_model, self.stopwatch)
        self.longest_list = int(self.federation.n_train.max())
        n_clients, limit_gb = self.federation.n_clients, self.settings.store_limit_gb
        sizes = self.parts.remembers(False, layout, self.longest_list)
        self.store = store_for(self.folder, sizes, n_clients, limit_gb)
        self.server_step = ServerStep(self.parts, self.server, self.store, self.federation, self.settings, lab, flops)
        self.following = Following(self.federation, self.planner.populations.facts["expected_s"])
        self._data(trainer).federation = self.federation
        module.stopwatch, module.targets = self.stopwatch, self.federation.targets
        module.engine, self.reason = choose(
            self.settings.engine, self._trainer_of(worker, self.parts.hooks), self.settings.chunk
        )
        fresh = ServerState.fresh(self.parts, self.planner.populations, layout.n_params)
        fresh.spent = cost_model.registration(self.planner.populations)
        self.state = fresh
        if self._restored is not None:
            self.state = ServerState.unpack(self._restored["server"], fresh)
            self.store.load_state_dict(self._restored["clients"])
            self.halted = self._restored.get("halted_by") == list(self.ends_early)
            # killed after its last round, it has none to train
            trainer.should_stop = self.halted or bool(self.settings.budget.list_reached(self.spending.now))
        if trainer.is_global_zero:
            info = self.info(self.planner.populations.facts["expected_s"])
            self.started = True
            for observer in self.observers:
                observer.start(info)

    def lay_out(self, network: nn.Module) -> bool:
        """Put images into the layout that the network is fastest with; True for channels last.

        Done before training processes are forked it is done once, and shared by all.
        """
        last = wants_channels_last(self.settings.channels_last, network)
        if last:
            lay_out(self.federation)
        return last

    def _trainer_of(self, worker: FlatModel, hooks: Sequence[ClientHook]) -> LocalTrainer:
        parts, settings = self.parts, self.settings
        common = (parts.objective, parts.client, parts.codec, hooks, settings.seed, settings.closed_form)
        return LocalTrainer(self.server, worker, self.federation, *common, parts.regulariser.hooks, parts.augmentation)

    def _foresee(self, alone: LocalTrainer, round: int, client: int) -> ClientUpdate:
        """Return what a client would send in a round, whatever becomes of it: see `signal.base.Lab.train`."""
        n, draws = self.federation.n_train, Draws(self.settings.seed, self.federation.n_clients, round)
        return alone.update_of(round, client, foresee(self.parts.samples, client, int(n[client]), draws))

    # --- a round -----------------------------------------------------------------------------------------------
    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Decide who trains what, and deal this rank's share over its slices."""
        module = self._module(pl_module)
        module.evaluated = {}
        with self.stopwatch.stage("select"):
            planned = self.planner.open(trainer.current_epoch, self.state, self.store)
        mine = share_of(trainer.global_rank, trainer.world_size, planned.arriving, planned.cost)
        self._data(trainer).slices.deal(list(module.engine.together([planned.task(i) for i in mine])))
        module.down = self.parts.agg.broadcast(self.state.agg)
        hooks = self.parts.hooks_in(planned.selection.plain)
        module.collector = Collector(
            layout=self.server.layout,
            cohort=planned.arriving,
            weights=planned.weights,
            uploads=[name for hook in hooks for name in hook.uploads],
            remembers=self.parts.remembers(planned.selection.plain, self.server.layout, self.longest_list),
            words=declared_reports(self.parts, self.planner.claims, planned.selection.plain),
            stacked=keeps_updates(self.parts),
            moments=self.settings.bn_var == "moments",
            device=self.server.w.device,
            ranks=trainer.world_size,
            longest=longest(self.server, self.settings.update_limit),
            averaged=averaged_uploads(hooks),
            dtype=self.server.w.dtype,
        )
        self.planned: PlannedRound = planned

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Aggregate after the last slice: in `on_train_epoch_end` the old model would have been validated."""
        if batch_idx + 1 < self.settings.slices:
            return
        with self.stopwatch.stage("aggregate"):
            collected = self._module(pl_module).collector.finish(reduce_sum, reduce_max)
            self.collected, self.state = self.server_step.close(self.planned, collected, self.state)
        count_a_step(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        step = trainer.current_epoch + 1
        table = columns(self.planned, self.collected, self.federation.n_clients)
        self._report(trainer, self._module(pl_module), step, self.planned, self.collected, table)

    def decide_end(self, trainer: pl.Trainer) -> None:
        """Say whether the run ends with this round. Where `should_stop` is set by now, a callback wants it."""
        done = bool(self.settings.budget.list_reached(self.spending.now))
        code, ends, halted = reduce_max(
            torch.tensor([interrupts.code, int(done), int(trainer.should_stop)])
        ).tolist()  # the same on all ranks, whenever a signal comes to one
        interrupts.note(code)
        self.asked_to_stop, self.halted = code > 0, halted > 0
        trainer.should_stop = self.asked_to_stop or ends > 0 or self.halted

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The sanity check validates w_0: that is step 0."""
        if trainer.sanity_checking:
            facts = registered_columns(self.parts, self.planner.populations)
            self._report(trainer, self._module(pl_module), 0, None, None, facts)

    def _report(
        self,
        trainer: pl.Trainer,
        module: ClientModule,
        step: int,
        planned: PlannedRound | None,
        collected: Collected | None,
        table: ClientFacts,
    ) -> None:
        metrics = dict(module.evaluated)
        every = self.settings.clients_every
        if every and step % every == 0:
            with self.stopwatch.stage("evaluate"):
                who = scored(self.federation.n_clients, self.settings.clients_sample, self.settings.seed)
                scalars, per_client = client_metrics(module.network, self.federation, who)
            metrics |= scalars
            table |= per_client
        if planned is not None and (step % every == 0 if every else module.evaluated):  # with 0 clients cost nothing
            metrics |= self.following.measure(planned.selection)
        if "test/acc" in metrics and (attribute := self.federation.server_test_attribute) is not None:
            with self.stopwatch.stage("evaluate"):
                metrics["test/acc_worst_group"] = worst_group(module.network, self.federation.server_test, attribute)
        if "test/acc" in metrics:
            best = self.state.best_acc
            self.state.best_acc = metrics["test/acc"] if math.isnan(best) else max(best, metrics["test/acc"])
            metrics["test/acc_best"] = self.state.best_acc
        metrics |= facts_of(self.federation, collected, self.planner.claims.liars)
        metrics |= self.parts.describe(self.state)
        trace = self.parts.selector.trace(self.state.selector)
        fingerprint = weights_hash(self.server)
        report = report_of(step, planned, collected, self.state, metrics, table, trace, fingerprint)
        self.last_reported, self.report = step, replace(report, wall_s=self.stopwatch.lap())
        self.spending = self.spending.go_on(step, self.report.metrics)
        if trainer.is_global_zero:
            with self.stopwatch.stage("log"):
                for observer in self.observers:
                    observer.observe(self.report)

    # --- end -----------------------------------------------------------------------------------------------------
    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.shared.verify(self.federation)
        self._finish(end(trainer, self.settings.budget, self.spending.now, self.asked_to_stop and not self.halted))

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._finish(status_of(exception, nothing_trained=self.new_folder and self.last_reported == 0))

    def _finish(self, status: str) -> None:
        if self.started:
            self.started = False
            finish(self.observers, status)

    # --- state -------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        return {
            "config_hash": self.settings.config_hash,
            "server": self.state.pack(self.parts),
            "clients": self.store.state_dict(),
            "spending": self.spending.pack(),
            "journal": next(filter(None, (each.digest(self.last_reported) for each in self.observers)), None),
            "halted_by": list(self.ends_early) if self.halted else None,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._restored = state_dict

    def note_checkpoint(self) -> None:
        """The state that was last asked for is on disk."""
        self.store.note_checkpoint()
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
