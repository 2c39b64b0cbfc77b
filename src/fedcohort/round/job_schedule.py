"""The jobs of selected clients: their work and deadline, the samples that they train on, and their times."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fedcohort.deadline.base import PaceContext
from fedcohort.device.base import Timing, Workload
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.rng import Draws
from fedcohort.round.clock import Clock
from fedcohort.round.components import Components, ServerState
from fedcohort.round.cost import CostModel
from fedcohort.round.dispatch_record import QueryRecord
from fedcohort.round.jobs import Jobs
from fedcohort.round.rates import JobRates
from fedcohort.round.sampling import SampleSelection
from fedcohort.round.workload import assign_work, mark_trained_clients
from fedcohort.types import Ids, Selection, Values


class JobScheduler:
    """Makes the jobs of selected clients: assigns work, announces the deadline, has samples chosen, and times the jobs.

    Args:
        components: the components of the run.
        cost_model: the costs of jobs.
        samples: applies the run's sample selection.
        stopwatch: measures the real time of the first losses.
        clock: adds the virtual seconds in which clients are away.
    """

    def __init__(
        self,
        components: Components,
        cost_model: CostModel,
        samples: SampleSelection,
        stopwatch: Stopwatch,
        clock: Clock,
    ) -> None:
        self.components, self.cost_model, self.samples = components, cost_model, samples
        self.stopwatch, self.clock = stopwatch, clock
        self.timing_by_rates: dict[int, Timing] = {}  # by the id of a `JobRates` object; the cost model has two

    def make_jobs(
        self, selection: Selection, queries: QueryRecord, state: ServerState, draws: Draws, start_s: float
    ) -> tuple[Jobs, float, Mapping[int, Values]]:
        """Return the jobs of a selection, their deadline in seconds after `start_s`, and the first losses.

        First losses are the losses, by client id, of clients that measure all of their samples before the training.

        Args:
            selection: the selector's choice.
            queries: the selector's queries and their answers.
            state: state of the server before the round.
            draws: random numbers of the round.
            start_s: virtual second at which the jobs begin.
        """
        components, cost_model, n_train = self.components, self.cost_model, self.cost_model.federation.n_train
        rates, clients = cost_model.select_rates(selection.plain), selection.clients
        jobs = assign_work(
            selection, cost_model.units, cost_model.layout, components.codec, rates.extra_bytes, draws, start_s
        )
        has_model = queries.has_model[clients]
        measuring_ids = self.samples.find_clients_without_losses(state.samples, clients)
        forward_passes = cost_model.count_forward_passes(clients, rates, queries.answered_probes)
        forward_passes = forward_passes + np.where(np.isin(clients, measuring_ids), n_train[clients], 0)
        has_trained = mark_trained_clients(clients, queries.answered_probes)

        def job_work(n_used: Ids) -> Workload:
            work = cost_model.make_workload(n_used, forward_passes, rates, jobs.bytes_up, has_model, jobs.assigned)
            return replace(work, unit_load=np.where(has_trained, 0.0, work.unit_load)) if has_trained.any() else work

        expected_timing = components.device.expect(clients, job_work(n_train[clients]), draws.draws_of_run())
        all_timing = self._time_all_jobs(rates, draws)
        pace_context = PaceContext(draws.round, clients, cost_model.units, all_timing, expected_timing)
        announced_s = components.deadline.announce(state.deadline, pace_context)
        jobs = replace(jobs, expected=expected_timing, announced_s=np.full(len(jobs), announced_s))
        with self.stopwatch.measure_stage("probe"):
            first_losses = self.samples.measure_losses(measuring_ids)
        jobs = self.samples.choose_samples(state.samples, jobs, first_losses, draws)
        timing = components.device.sample(clients, job_work(cost_model.count_samples(clients, jobs.rows)), draws)
        duration_s = self.clock.wall_time(jobs.start_s)(clients, timing.finish_s(jobs.assigned))
        return replace(jobs, timing=timing, duration_s=duration_s), announced_s, first_losses

    def _time_all_jobs(self, rates: JobRates, draws: Draws) -> Timing:
        """Return the expected seconds of each phase of every client's whole job, on all of its samples.

        `rates` are the costs of a job in the round; the result is cached for each object. `draws` belong to the round,
        and only their draws of the run have an effect.
        """
        if id(rates) not in self.timing_by_rates:
            cost_model, all_client_ids = self.cost_model, self.clock.all_client_ids
            bytes_up = cost_model.update_bytes + rates.extra_bytes
            forward_passes = cost_model.count_forward_passes(all_client_ids, rates)
            workload = cost_model.make_workload(cost_model.federation.n_train, forward_passes, rates, bytes_up)
            timing = self.components.device.expect(all_client_ids, workload, draws.draws_of_run())
            self.timing_by_rates[id(rates)] = timing
        return self.timing_by_rates[id(rates)]
