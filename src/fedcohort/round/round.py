"""A communication round: dispatch, finish, train, aggregate, report. The hooks of `lightning/loop.py` call it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from fedcohort.host.stopwatch import Stopwatch
from fedcohort.process_ranks import reduce_max, reduce_sum
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.collect import Collector
from fedcohort.round.components import ServerState
from fedcohort.round.energy import compute_joules
from fedcohort.round.finish import ClosedRound, close_round
from fedcohort.round.in_flight import SentModels
from fedcohort.round.refill import replace_arrived_clients
from fedcohort.round.report import make_round_report
from fedcohort.round.setup import RunSetup
from fedcohort.round.tasks import group_client_tasks, make_collector
from fedcohort.round.update_variance import average_all_updates, compute_relative_variance, is_variance_measured
from fedcohort.training.client_task import ClientTask
from fedcohort.types import RoundReport


class RoundRunner:
    """Runs the rounds of a run: `begin_round`, training of the tasks by the caller, `end_round`, `make_round_report`.

    Args:
        run_setup: the objects of the run.
        stopwatch: measures the stages of rounds.

    Attributes:
        state: state of the server between rounds.
        closed_round: outcome of the round in progress, known before its training; None before the first.
        arrivals: the updates that arrived in the latest round; None before the first.
    """

    def __init__(self, run_setup: RunSetup, stopwatch: Stopwatch) -> None:
        self.setup, self.stopwatch = run_setup, stopwatch
        self.state = run_setup.initial_server_state()
        self.closed_round: ClosedRound | None = None
        self.arrivals: Arrivals | None = None

    def restore_state(
        self, saved_fields: Mapping[str, Any], store_state: Mapping[str, Any], model_average: Mapping[str, Any] | None
    ) -> None:
        """Take the state of the run from a checkpoint.

        Args:
            saved_fields: fields of the server's state, by name.
            store_state: state of the store of clients' vectors.
            model_average: state of the average of models; None for a checkpoint of a version without averages.
        """
        self.state = ServerState.from_plain_data(dict(saved_fields), self.state)
        self.setup.store.load_state_dict(store_state)
        if model_average is not None:
            self.setup.average.load_state_dict(model_average)

    def begin_round(self, round: int) -> tuple[list[Sequence[ClientTask]], Collector]:
        """Decide the round with number `round`: select clients, send them jobs, and determine which jobs arrive.

        Returns:
            The tasks of this process, in groups that are trained at once, and the collector of their updates.
        """
        with self.stopwatch.measure_stage_time("select"):
            dispatch = self.setup.dispatcher.dispatch(round, self.state)
            dispatch = replace_arrived_clients(dispatch, self.setup.dispatcher, self.state)
            self.closed_round = close_round(dispatch, self.setup.dispatcher, self.state)
        thresholds = {r: b.threshold for r, b in self.state.in_flight.broadcasts.items()}
        thresholds[round] = self.setup.components.samples.sent_threshold(self.state.samples)
        task_groups = group_client_tasks(self.setup, self.closed_round, thresholds)
        return task_groups, make_collector(self.setup, self.closed_round)

    def sent_models(self, round: int) -> SentModels:
        """Return the models and vectors from which the jobs that arrive in the round with number `round` start."""
        agg_vectors = self.setup.components.agg.broadcast(self.state.agg)
        device_agg_vectors = {k: agg_vector.to(self.setup.server.w.device) for k, agg_vector in agg_vectors.items()}
        return SentModels(self.setup.server, round, device_agg_vectors, self.state.in_flight.broadcasts)

    def end_round(self, collector: Collector) -> None:
        """Aggregate the updates of all processes and take the server's step.

        Args:
            collector: has the updates of this process.

        Raises:
            ValueError: no round has begun.
        """
        if self.closed_round is None:
            raise ValueError("no round has begun: call begin_round before end_round")
        with self.stopwatch.measure_stage_time("aggregate"):
            arrivals = collector.sum_over_ranks(reduce_sum, reduce_max)
            population_update = self._measure_population_update(self.closed_round.round)  # before w_t changes
            arrivals, self.state = self.setup.server_step.finish_round(self.closed_round, arrivals, self.state)
            joules = compute_joules(self.setup.settings, self.setup.cost_model, self.closed_round)
            self.state = replace(self.state, joules=self.state.joules + joules)
            update_variance = compute_relative_variance(arrivals.mean, population_update)  # NaN if not measured
            self.arrivals = replace(arrivals, relative_update_variance=update_variance)
            self.setup.average.add_round()

    def _measure_population_update(self, round: int) -> Tensor | None:
        """Return the mean update of all clients in `round`, [P]; None unless `eval.update_every` demands it."""
        if not is_variance_measured(round, self.setup.settings.update_every):
            return None
        measurer, aggregator = self.setup.server_step.measurer, self.setup.components.agg
        return average_all_updates(measurer, aggregator, self.setup.federation.n_train, round)

    def make_round_report(self, rounds_done: int, server_metrics: Mapping[str, float]) -> RoundReport:
        """Return the report after `rounds_done` rounds; `server_metrics`: metrics on the server's data, by name."""
        report_arguments = (self.state, self.closed_round, self.arrivals)
        return make_round_report(self.setup, self.stopwatch, rounds_done, server_metrics, *report_arguments)
