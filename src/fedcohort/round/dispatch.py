"""Dispatch: the clients that are ready, queried and selected in a round, and the job that each selected client gets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from fedcohort.data.federation import Federation
from fedcohort.deadline.base import PaceContext
from fedcohort.device.base import Timing
from fedcohort.rng import Draws
from fedcohort.round.backoff import withhold
from fedcohort.round.clock import Clock
from fedcohort.round.components import Components, Populations, ServerState
from fedcohort.round.cost import CostModel
from fedcohort.round.guard import name_component_of_errors
from fedcohort.round.jobs import Jobs
from fedcohort.round.queries import ClientReports, Queries
from fedcohort.round.rates import JobRates
from fedcohort.round.sampling import SampleSelection
from fedcohort.round.settings import Settings
from fedcohort.round.uniform import draw_uniform
from fedcohort.round.workload import assign_work, list_answered, verify_selection
from fedcohort.types import Ids, Probe, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class QueriedClients:
    """The selector's queries of a round and their answers.

    Attributes:
        probes: the queries, in the order of the selector.
        answers: answers of the clients that did not leave before they were done, by signal.
        blocking_s: virtual seconds of the queries before the selection.
        concurrent_s: virtual seconds of the queries during the training.
        has_model: whether a client received w_t with a query before the selection, [n_clients].
    """

    probes: Sequence[Probe]
    answers: Mapping[str, ProbeResult]
    blocking_s: float
    concurrent_s: float
    has_model: Bool[np.ndarray, "clients"]

    def answers_to(self, concurrent: bool) -> dict[str, ProbeResult]:
        """Return the answers to the queries during the training, or to those before the selection, by signal."""
        return {p.signal: self.answers[p.signal] for p in self.probes if p.concurrent == concurrent}

    @property
    def answered_probes(self) -> list[Probe]:
        """The selector's queries, each with only those of its clients that answered."""
        return list_answered(self.probes, self.answers)


@dataclass(frozen=True)
class Dispatch:
    """The decisions of a round before its training.

    Attributes:
        round: number of the round, from 0.
        ready: sorted ids of the clients that are ready, including those that back off.
        selection: the selector's choice.
        selector_state: state of the selector after its choice.
        queried: queries and answers.
        jobs: the local work of each selected client.
        first_losses: losses of w_t on each sample of the clients that measure all their samples in this round, by id.
        waited_s: virtual seconds before the selection in which no client was ready.
        before_s: virtual seconds from the end of the round before to the first query.
        start_s: virtual second at which the jobs begin.
        announced_s: deadline that the clients received, in seconds after `start_s`; inf without one.
        uniform: sorted ids of a uniform reference cohort of the same size (`round/uniform.py`).
    """

    round: int
    ready: Ids
    selection: Selection
    selector_state: object
    queried: QueriedClients
    jobs: Jobs
    first_losses: Mapping[int, Values]
    waited_s: float
    before_s: float
    start_s: float
    announced_s: float
    uniform: Ids


class Dispatcher:
    """Decides a round: queries clients, has the selector choose, and makes the jobs of the selected clients."""

    def __init__(
        self,
        components: Components,
        settings: Settings,
        federation: Federation,
        cost_model: CostModel,
        queries: Queries,
        samples: SampleSelection,
    ) -> None:
        self.components, self.settings, self.federation = components, settings, federation
        self.cost_model, self.queries, self.samples = cost_model, queries, samples
        draws = Draws(settings.seed, federation.n_clients)
        self.clock = Clock(components.availability, draws, settings.window_s)
        self.cohort = components.deadline.cohort_size(settings.cohort)
        populations = Populations.from_federation(federation, settings.cohort, cost_model.device_facts(draws))
        self.populations = replace(populations, report=self.client_reports.report)
        self.timing_by_rates: dict[int, Timing] = {}  # by the id of a `JobRates` object; the cost model has two

    @property
    def client_reports(self) -> ClientReports:
        """The values that clients report under the run's attack."""
        return self.queries.client_reports

    def dispatch(self, round: int, state: ServerState) -> Dispatch:
        """Return the decisions of round t: ready clients, queries with their answers, the cohort, and its jobs.

        A client whose job is in flight is not ready: it can be neither queried nor selected.
        """
        draws, selector = Draws(self.settings.seed, self.federation.n_clients, round), self.components.selector
        in_flight = state.in_flight.jobs
        ready, waited_s = self.clock.find_ready(draws, state.spent.virtual_s, may_wait=not len(in_flight))
        if len(in_flight):
            ready = np.setdiff1d(ready, in_flight.client, assume_unique=True)
        places = self.components.deadline.free_places(self.cohort, len(in_flight))
        before_s = waited_s + self.clock.window_s
        start_s = state.spent.virtual_s + before_s
        ctx = RoundContext(
            round=round,
            cohort=places,
            n_clients=self.federation.n_clients,
            available=ready,
            signals=self.populations.signals(self.queries.needs, "the selector", self.queries.measure_on_server()),
            rng=draws.generator("selector"),
            units=self.cost_model.units,
            in_flight=in_flight.client,
            in_flight_s=np.maximum(in_flight.expected_end_s - start_s, 0.0),
        )
        if selector.backs_off:
            ctx = withhold(state.failures, ctx, selector.shortlist(places))
        if len(in_flight) and (places < 1 or not len(ctx.available)):  # this step only waits for jobs in flight
            ctx = replace(ctx, available=ready[:0], backed_off=ready[:0])
            queried = self._query(state.selector, ctx, draws, start_s)
            selection, selector_state = Selection(ready[:0]), state.selector
        else:
            queried = self._query(state.selector, ctx, draws, start_s)
            selection, selector_state = selector.select(state.selector, ctx, queried.answers_to(concurrent=False))
        with name_component_of_errors(selector):
            verify_selection(selection, ctx.available, places, self.federation.n_clients, self.components.codec)
        rates = self.cost_model.rates_of_round(selection.plain)
        jobs = assign_work(
            selection,
            self.cost_model.units,
            self.cost_model.layout,
            self.components.codec,
            rates.extra_bytes,
            draws,
            start_s + queried.blocking_s,
        )
        jobs, announced_s, first_losses = self._schedule_jobs(jobs, rates, queried, state, draws)
        uniform_ids = draw_uniform(ready, len(selection.clients), draws)
        return Dispatch(
            round,
            ready,
            selection,
            selector_state,
            queried,
            jobs,
            first_losses,
            waited_s,
            before_s,
            start_s + queried.blocking_s,
            announced_s,
            uniform_ids,
        )

    def _query(self, selector_state: object, ctx: RoundContext, draws: Draws, start_s: float) -> QueriedClients:
        """Send the selector's queries from virtual second `start_s` on; clients that leave early give no answer."""
        selector, cost_model = self.components.selector, self.cost_model
        probes = list(selector.plan(selector_state, ctx)) if len(ctx.ready) else []
        with name_component_of_errors(selector):
            answers = self.queries.answer_probes(probes, ctx.ready, ctx.round)
        blocking_work, concurrent_work = (
            cost_model.query_work([p for p in probes if p.concurrent == is_concurrent], draws)
            for is_concurrent in (False, True)
        )
        blocking_s, has_left = cost_model.time_queries(blocking_work, draws, start_s, self.clock)
        concurrent_s, has_left_later = cost_model.time_queries(concurrent_work, draws, start_s + blocking_s, self.clock)
        answers = {p.signal: answers[p.signal].without(has_left_later if p.concurrent else has_left) for p in probes}
        return QueriedClients(probes, answers, blocking_s, concurrent_s, blocking_work.total > 0)

    def _schedule_jobs(
        self, jobs: Jobs, rates: JobRates, queried: QueriedClients, state: ServerState, draws: Draws
    ) -> tuple[Jobs, float, Mapping[int, Values]]:
        """Announce the deadline, have the samples chosen, and time the jobs.

        Returns:
            The jobs, the deadline in seconds, and the losses of the clients that first measure all of their samples.
        """
        components, cost_model, clients, n_train = (
            self.components,
            self.cost_model,
            jobs.client,
            self.federation.n_train,
        )
        has_model = queried.has_model[clients]
        measuring_ids = self.samples.find_clients_without_losses(state.samples, clients)
        forward_passes = cost_model.count_forward_passes(clients, rates, queried.answered_probes)
        forward_passes = forward_passes + np.where(np.isin(clients, measuring_ids), n_train[clients], 0)
        work = cost_model.job_workload(n_train[clients], forward_passes, rates, jobs.bytes_up, has_model, jobs.assigned)
        expected = components.device.expect(clients, work, draws.once())
        context = PaceContext(draws.round, clients, cost_model.units, self._expect_all(rates), expected)
        announced_s = components.deadline.announce(state.deadline, context)
        jobs = replace(jobs, expected=expected, announced_s=np.full(len(jobs), announced_s))
        with self.queries.stopwatch.stage("probe"):
            first_losses = self.samples.measure_losses(measuring_ids)
        jobs = self.samples.choose_samples(state.samples, jobs, first_losses, draws)
        n_used = cost_model.count_used(clients, jobs.rows)
        work = cost_model.job_workload(n_used, forward_passes, rates, jobs.bytes_up, has_model, jobs.assigned)
        timing = components.device.sample(clients, work, draws)
        duration_s = self.clock.wall_time(jobs.start_s)(clients, timing.finish_s(jobs.assigned))
        return replace(jobs, timing=timing, duration_s=duration_s), announced_s, first_losses

    def _expect_all(self, rates: JobRates) -> Timing:
        """Return the expected times of every client's whole job, computed once for each kind of round."""
        if id(rates) not in self.timing_by_rates:
            cost_model, all_client_ids = self.cost_model, self.clock.all_client_ids
            draws = Draws(self.settings.seed, self.federation.n_clients)
            bytes_up = cost_model.update_bytes + rates.extra_bytes
            forward_passes = cost_model.count_forward_passes(all_client_ids, rates)
            work = cost_model.job_workload(self.federation.n_train, forward_passes, rates, bytes_up)
            self.timing_by_rates[id(rates)] = self.components.device.expect(all_client_ids, work, draws)
        return self.timing_by_rates[id(rates)]
