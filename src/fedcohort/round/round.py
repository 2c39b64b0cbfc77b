"""A communication round: dispatch, finish, train, aggregate, report. The hooks of `lightning/loop.py` call it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcohort.hook import averaged_uploads
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.ranks import rank, ranks, reduce_max, reduce_sum, share_of
from fedcohort.rng import Draws
from fedcohort.round.aggregate import longest_update
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.collect import CollectOptions, Collector
from fedcohort.round.collected import Collected
from fedcohort.round.finish import Finished, finish
from fedcohort.round.parts import ServerState
from fedcohort.round.readings import declared_reports, keeps_updates
from fedcohort.round.report import columns, facts_of, progress, registered_columns, weights_hash
from fedcohort.round.setup import Setup
from fedcohort.training.client_task import ClientTask
from fedcohort.training.evaluate import client_metrics, scored, worst_group
from fedcohort.types import RoundReport


class Rounds:
    """The rounds of a run, one after the other: `begin`, training by the caller, `end`, `report`.

    Attributes:
        state: the server's, between rounds.
        finished: the round in progress, None before the first.
        collected: what arrived in it.
    """

    def __init__(self, setup: Setup, stopwatch: Stopwatch) -> None:
        self.setup, self.stopwatch = setup, stopwatch
        self.state = setup.fresh_state()
        self.finished: Finished | None = None
        self.collected: Collected | None = None

    def restore(self, server: Mapping[str, Any], clients: Mapping[str, Any]) -> None:
        """Take the state of the server and of the clients' store from a checkpoint."""
        self.state = ServerState.unpack(dict(server), self.state)
        self.setup.store.load_state_dict(clients)

    def begin(self, t: int) -> tuple[list[Sequence[ClientTask]], Collector]:
        """Decide round t.

        Returns:
            The tasks of this process, in groups that are trained at once, and the collector of their updates.
        """
        setup, dispatcher = self.setup, self.setup.dispatcher
        with self.stopwatch.stage("select"):
            self.finished = finish(dispatcher.dispatch(t, self.state), dispatcher, self.state)
        finished, plain = self.finished, self.finished.selection.plain
        own = share_of(rank(), ranks(), finished.arrived.client, finished.samples)
        hooks = setup.parts.hooks_in(plain)
        options = CollectOptions(
            uploads=[name for hook in hooks for name in hook.uploads],
            averaged=averaged_uploads(hooks),
            remembers=setup.stored_sizes(plain),
            reports=declared_reports(setup.parts, dispatcher.claims, plain),
            stacked=keeps_updates(setup.parts),
            moments=setup.settings.bn_var == "moments",
            longest=longest_update(setup.server, setup.settings.update_limit),
            dtype=setup.server.w.dtype,
        )
        layout, device = setup.server.layout, setup.server.w.device
        collector = Collector(layout, finished.arrived.client, finished.weights, options, ranks(), device)
        return list(setup.engine.together([self._task(finished, i) for i in own])), collector

    def end(self, collector: Collector) -> None:
        """Aggregate the updates of all processes and take the server's step."""
        if self.finished is None:
            raise ValueError("no round has begun")
        with self.stopwatch.stage("aggregate"):
            collected = collector.finish(reduce_sum, reduce_max)
            self.collected, self.state = self.setup.server_step.close(self.finished, collected, self.state)

    def report(self, step: int, evaluated: Mapping[str, float]) -> RoundReport:
        """Return what observers see after `step` rounds; evaluated: metrics of the server's data, by name."""
        setup, settings, federation = self.setup, self.setup.settings, self.setup.federation
        network, metrics = setup.server.network, dict(evaluated)
        if self.finished is None or self.collected is None:
            table: ClientFacts = registered_columns(setup.parts, setup.dispatcher.populations)
        else:
            table = columns(self.finished, self.collected, federation.n_clients)
        every = settings.clients_every
        if every and step % every == 0:
            with self.stopwatch.stage("evaluate"):
                who = scored(federation.n_clients, settings.clients_sample, settings.seed)
                scalars, per_client = client_metrics(network, federation, who)
            metrics |= scalars
            table |= per_client
        if self.finished is not None and (step % every == 0 if every else evaluated):  # it takes time with many clients
            metrics |= setup.score_correlation.measure(self.finished.selection)
        if "test/acc" in metrics:
            if (attribute := federation.server_test_attribute) is not None:
                with self.stopwatch.stage("evaluate"):
                    metrics["test/acc_worst_group"] = worst_group(network, federation.server_test, attribute)
            best = self.state.best_acc
            self.state.best_acc = metrics["test/acc"] if math.isnan(best) else max(best, metrics["test/acc"])
            metrics["test/acc_best"] = self.state.best_acc
        metrics |= facts_of(federation, self.collected, setup.dispatcher.claims.liars)
        metrics |= setup.parts.describe(self.state)
        metrics |= progress(step, self.finished, self.collected, self.state)
        none = np.empty(0, np.int64)
        return RoundReport(
            step,
            cohort=none if self.finished is None else self.finished.selection.clients,
            arrived=none if self.collected is None else self.collected.clients,
            metrics=metrics,
            clients=table,
            trace=setup.parts.selector.trace(self.state.selector),
            fingerprint=f"{self.state.choices or '-'}:{weights_hash(setup.server)}",
            wall_s=self.stopwatch.lap(),
        )

    def _task(self, finished: Finished, i: int) -> ClientTask:
        """Return what the client of the i-th job that arrives has to do."""
        setup, jobs = self.setup, finished.arrived
        broadcast, client = int(jobs.broadcast[i]), int(jobs.client[i])
        draws = Draws(setup.settings.seed, setup.federation.n_clients, broadcast)
        plain = bool(jobs.plain[i])
        return ClientTask(
            round=broadcast,
            client=client,
            rows=jobs.rows[i],
            units=int(jobs.units[i]),
            units_asked=int(jobs.asked[i]),
            lr=setup.parts.client.lr_at(broadcast),
            duration=float(jobs.duration_s[i]),
            stored=setup.store.get(client),
            plain=plain,
            kept=jobs.kept[i],
            loss_after=setup.cost_model.rates(plain).passes_after > 0,
            remember=setup.samples.remember(self.state.samples, jobs, i, draws),
        )
