"""The jobs of selected clients: their work and deadline, the samples that they train on, and their times."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fedcohort.deadline.base import PaceContext
from fedcohort.device.base import Timing, Workload
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.rng import Draws
from fedcohort.round.clock import VirtualClock
from fedcohort.round.components import Components, ServerState
from fedcohort.round.cost import CostModel
from fedcohort.round.dispatch_record import QueryRecord
from fedcohort.round.jobs import Jobs
from fedcohort.round.rates import JobCosts
from fedcohort.round.sampling import SampleSelection
from fedcohort.round.workload import make_untimed_jobs, mark_trained_clients
from fedcohort.types import Ids, Selection, Values


class JobScheduler:
    """Makes the jobs of selected clients: assigns work, announces the deadline, has samples chosen, and times the jobs.

    Args:
        components: the components of the run.
        cost_model: the costs of jobs.
        sample_selection: applies the run's sample selection.
        stopwatch: measures the wall time in which losses are computed before the training.
        clock: adds the virtual seconds in which clients are away.
    """

    def __init__(
        self,
        components: Components,
        cost_model: CostModel,
        sample_selection: SampleSelection,
        stopwatch: Stopwatch,
        clock: VirtualClock,
    ) -> None:
        self.components, self.cost_model, self.samples = components, cost_model, sample_selection
        self.stopwatch, self.clock = stopwatch, clock
        self.timing_by_costs: dict[int, Timing] = {}  # by the id of a `JobCosts` object; the cost model has two

    def make_jobs(
        self, selection: Selection, queries: QueryRecord, server_state: ServerState, draws: Draws, start_s: float
    ) -> tuple[Jobs, float, Mapping[int, Values]]:
        """Return the jobs of a selection, their deadline in seconds after `start_s`, and losses before the training.

        The losses are those of all samples of each client that measures them before its training, by client id.

        Args:
            selection: the selector's choice.
            queries: the selector's queries and their answers.
            server_state: state of the server before the round.
            draws: random numbers of the round.
            start_s: virtual second at which the jobs begin.
        """
        components, cost_model, n_train = self.components, self.cost_model, self.cost_model.federation.n_train
        job_costs, clients = cost_model.select_job_costs(selection.plain), selection.clients
        jobs = make_untimed_jobs(
            selection, cost_model.work_units, cost_model.layout, components.codec, job_costs.extra_bytes, draws, start_s
        )

        measuring_client_ids = self.samples.find_clients_without_losses(server_state.samples, clients)
        forward_passes = cost_model.count_forward_passes(clients, job_costs, queries.answered_probes)
        forward_passes = forward_passes + np.where(np.isin(clients, measuring_client_ids), n_train[clients], 0)
        has_client_trained = mark_trained_clients(clients, queries.answered_probes)

        workload_arguments = (jobs.bytes_up, queries.has_received_model[clients], jobs.assigned)

        def make_job_workload(n_samples: Ids) -> Workload:
            workload = cost_model.make_workload(n_samples, forward_passes, job_costs, *workload_arguments)
            remaining_unit_load = np.where(has_client_trained, 0.0, workload.unit_load)
            return replace(workload, unit_load=remaining_unit_load) if has_client_trained.any() else workload

        expected_timing = components.device.expect(clients, make_job_workload(n_train[clients]), draws.draws_of_run())
        timing_of_all_jobs = self._expect_job_timing(job_costs, draws)
        deadline_context = PaceContext(draws.round, clients, cost_model.work_units, timing_of_all_jobs, expected_timing)
        deadline_s = components.deadline.announce(server_state.deadline, deadline_context)
        jobs = replace(jobs, expected=expected_timing, announced_s=np.full(len(jobs), deadline_s))
        with self.stopwatch.measure_stage_time("probe"):
            initial_losses = {k: self.samples.measurer.per_sample_losses(k) for k in measuring_client_ids.tolist()}
        jobs = self.samples.choose_samples(server_state.samples, jobs, initial_losses, draws)
        workload = make_job_workload(cost_model.count_samples(clients, jobs.rows))
        timing = components.device.sample(clients, workload, draws)
        duration_s = self.clock.wall_time(jobs.start_s)(clients, timing.finish_s(jobs.assigned))
        return replace(jobs, timing=timing, duration_s=duration_s), deadline_s, initial_losses

    def _expect_job_timing(self, job_costs: JobCosts, draws: Draws) -> Timing:
        """Return the expected seconds of each phase of every client's whole job, on all of its samples.

        `job_costs` are the costs of a job in the round; the result is cached for each object. Of the round's random
        numbers, `draws`, only those that hold for the whole run have an effect.
        """
        if id(job_costs) not in self.timing_by_costs:
            cost_model, all_client_ids = self.cost_model, self.clock.all_client_ids
            answer_bytes = cost_model.update_bytes + job_costs.extra_bytes
            forward_passes = cost_model.count_forward_passes(all_client_ids, job_costs)
            workload = cost_model.make_workload(cost_model.federation.n_train, forward_passes, job_costs, answer_bytes)
            timing = self.components.device.expect(all_client_ids, workload, draws.draws_of_run())
            self.timing_by_costs[id(job_costs)] = timing
        return self.timing_by_costs[id(job_costs)]
