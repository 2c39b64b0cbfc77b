"""Dispatch: the clients that are ready, queried and selected in a round, and the job that each selected client gets."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from fedcohort.data.federation import Federation
from fedcohort.deadline.base import PaceContext
from fedcohort.device.base import Timing, Workload
from fedcohort.draw_log import NO_DRAWS, DrawLog, LoggedGenerator, list_logged_clients
from fedcohort.rng import Draws
from fedcohort.round.backoff import withhold_clients
from fedcohort.round.clock import Clock
from fedcohort.round.components import Components, Populations, ServerState
from fedcohort.round.cost import CostModel
from fedcohort.round.dispatch_record import Dispatch, QueryRecord
from fedcohort.round.guard import name_component_of_errors
from fedcohort.round.jobs import Jobs
from fedcohort.round.queries import ClientReports, Queries
from fedcohort.round.rates import JobRates
from fedcohort.round.sampling import SampleSelection
from fedcohort.round.settings import Settings
from fedcohort.round.uniform import draw_uniform
from fedcohort.round.workload import assign_work, mark_trained, verify_selection
from fedcohort.types import Ids, ProbeResult, RoundContext, Selection, Values

NO_IDS: Ids = np.empty(0, np.int64)


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
        populations = Populations.from_federation(federation, settings.cohort, cost_model.time_whole_jobs(draws))
        self.populations = replace(populations, report=self.client_reports.report_values)
        self.logged_ids = list_logged_clients(settings.seed, federation.n_clients)
        self.timing_by_rates: dict[int, Timing] = {}  # by the id of a `JobRates` object; the cost model has two

    @property
    def client_reports(self) -> ClientReports:
        """The values that clients report under the run's attack."""
        return self.queries.client_reports

    def dispatch(self, round: int, state: ServerState) -> Dispatch:
        """Return the decisions of round t: ready clients, queries with their answers, the cohort, and its jobs.

        A client whose job is in flight is not ready: it can be neither queried nor selected.
        """
        draws, busy_jobs = Draws(self.settings.seed, self.federation.n_clients, round), state.in_flight.jobs
        ready_ids, waited_s = self.clock.find_ready(draws, state.spent.virtual_s, may_wait=not len(busy_jobs))
        before_s = waited_s + self.clock.window_s
        start_s = state.spent.virtual_s + before_s
        free_places = self.components.deadline.free_places(self.cohort, len(busy_jobs))
        opening_context = RoundContext(
            round=round,
            cohort=free_places,
            n_clients=self.federation.n_clients,
            available=ready_ids,
            signals=self.populations.signals(self.queries.needs, "the selector", self.queries.measure_on_server()),
            rng=LoggedGenerator(draws.generator("selector"), self.logged_ids),
            units=self.cost_model.units,
        )
        ctx = self._withhold_clients(opening_context, state, busy_jobs, start_s)
        if len(busy_jobs) and (free_places < 1 or not len(ctx.available)):  # this step only waits for jobs in flight
            queries = self._query(state.selector, replace(ctx, available=NO_IDS, backed_off=NO_IDS), draws, start_s)
            selection, selector_state, log = Selection(NO_IDS), state.selector, NO_DRAWS
        else:
            queries = self._query(state.selector, ctx, draws, start_s)
            selection, selector_state, log = self._select(state.selector, ctx, queries.answers_to(concurrent=False))
        start_s += queries.blocking_s
        jobs, announced_s, first_losses = self._make_jobs(selection, queries, state, draws, start_s)
        return Dispatch(
            round=round,
            opening_context=opening_context,
            ready_ids=ctx.ready,
            selection=selection,
            selector_state=selector_state,
            queries=queries,
            jobs=jobs,
            first_losses=first_losses,
            wait_s=waited_s,
            pause_s=before_s,
            start_s=start_s,
            announced_s=announced_s,
            uniform_ids=draw_uniform(ctx.ready, len(selection.clients), draws),
            draw_log=log,
        )

    def refill(self, dispatch: Dispatch, state: ServerState, busy: Jobs, now_s: float, refill_number: int) -> Dispatch:
        """Return the decisions of a round with one more client, which gets a place that became free during it.

        The client receives the same model as the others, and is chosen by the answers to this round's queries.

        Args:
            dispatch: decisions of the round so far.
            state: state of the server before the round.
            busy: jobs of clients that work, or whose update waits for the server's step.
            now_s: virtual second at which the place became free.
            refill_number: number of the refill in this round, from 1.
        """
        draws = Draws(self.settings.seed, self.federation.n_clients, dispatch.round)
        ready_ids = self.clock.ready_at(dispatch.ready_ids, now_s)
        rng = LoggedGenerator(draws.generator("refill", refill_number), self.logged_ids)
        ctx = self._withhold_clients(
            replace(dispatch.opening_context, cohort=1, available=ready_ids, rng=rng), state, busy, now_s
        )
        if not len(ctx.available):
            return dispatch
        is_absent = np.ones(self.federation.n_clients, dtype=bool)
        is_absent[ctx.ready] = False
        answers = {name: r.without(is_absent) for name, r in dispatch.queries.answers_to(concurrent=False).items()}
        is_absent[dispatch.ready_ids] = False
        selection, selector_state, log = self._select(dispatch.selector_state, ctx, answers)
        jobs, _, _ = self._make_jobs(selection, dispatch.queries, state, draws, now_s)
        return replace(
            dispatch,
            ready_ids=np.flatnonzero(~is_absent),
            selection=replace(selection, clients=np.union1d(dispatch.selection.clients, selection.clients)),
            selector_state=selector_state,
            refills=dispatch.refills.joined_with(jobs),
            draw_log=dispatch.draw_log.append_log(log),
        )

    def add_uniform_cohort(self, dispatch: Dispatch) -> Dispatch:
        """Return the decisions of a round with the uniform reference cohort of all clients that it selected."""
        draws = Draws(self.settings.seed, self.federation.n_clients, dispatch.round)
        return replace(dispatch, uniform_ids=draw_uniform(dispatch.ready_ids, len(dispatch.selection.clients), draws))

    def _withhold_clients(self, ctx: RoundContext, state: ServerState, busy: Jobs, now_s: float) -> RoundContext:
        """Return the context at virtual second `now_s`, without the clients that are busy or back off."""
        if len(busy):
            is_free = np.ones(ctx.n_clients, dtype=bool)
            is_free[busy.client] = False
            ctx = replace(
                ctx,
                available=ctx.available[is_free[ctx.available]],
                in_flight=busy.client,
                in_flight_s=np.maximum(busy.expected_end_s - now_s, 0.0),
            )
        selector = self.components.selector
        return withhold_clients(state.failures, ctx, selector.shortlist(ctx.cohort)) if selector.backs_off else ctx

    def _select(
        self, selector_state: object, ctx: RoundContext, answers: Mapping[str, ProbeResult]
    ) -> tuple[Selection, object, DrawLog]:
        """Return the selector's choice, its next state and its draws; raise an error for an invalid choice."""
        selector, log = self.components.selector, ctx.rng
        if not isinstance(log, LoggedGenerator):
            raise TypeError(f"pass a LoggedGenerator as `rng` of the round's context, not a {type(log).__name__}")
        log.start_selection()
        selection, next_state = selector.select(selector_state, ctx, answers)
        with name_component_of_errors(selector):
            verify_selection(selection, ctx.available, ctx.cohort, ctx.n_clients, self.components.codec)
        return selection, next_state, log.finish()

    def _make_jobs(
        self, selection: Selection, queries: QueryRecord, state: ServerState, draws: Draws, start_s: float
    ) -> tuple[Jobs, float, Mapping[int, Values]]:
        """Return the jobs of a selection that begin at `start_s`, their deadline in seconds, and the first losses."""
        rates, cost_model = self.cost_model.select_rates(selection.plain), self.cost_model
        jobs = assign_work(
            selection, cost_model.units, cost_model.layout, self.components.codec, rates.extra_bytes, draws, start_s
        )
        return self._schedule_jobs(jobs, rates, queries, state, draws)

    def _query(self, selector_state: object, ctx: RoundContext, draws: Draws, start_s: float) -> QueryRecord:
        """Send the selector's queries from virtual second `start_s` on; clients that leave early give no answer."""
        selector, cost_model = self.components.selector, self.cost_model
        probes = list(selector.plan(selector_state, ctx)) if len(ctx.ready) else []
        if not probes:
            return QueryRecord([], {}, 0.0, 0.0, np.zeros(self.federation.n_clients, dtype=bool))
        with name_component_of_errors(selector):
            ready_share = partial(self.clock.ready_share, start_s)
            answers = self.queries.answer_probes(probes, ctx.ready, ctx.round, ready_share)
        blocking_work, concurrent_work = (
            cost_model.sum_query_work([p for p in probes if p.concurrent == is_concurrent], draws)
            for is_concurrent in (False, True)
        )
        blocking_s, has_left = cost_model.time_queries(blocking_work, draws, start_s, self.clock)
        concurrent_s, has_left_later = cost_model.time_queries(concurrent_work, draws, start_s + blocking_s, self.clock)
        answers = {p.signal: answers[p.signal].without(has_left_later if p.concurrent else has_left) for p in probes}
        return QueryRecord(probes, answers, blocking_s, concurrent_s, blocking_work.total > 0)

    def _schedule_jobs(
        self, jobs: Jobs, rates: JobRates, queries: QueryRecord, state: ServerState, draws: Draws
    ) -> tuple[Jobs, float, Mapping[int, Values]]:
        """Announce the deadline, have the samples chosen, and time the jobs.

        `jobs` have neither samples nor times yet; `rates` are the costs of a job in the round.

        Returns:
            The jobs, the deadline in seconds, and the losses of the clients that first measure all of their samples.
        """
        components, cost_model, clients, n_train = (
            self.components,
            self.cost_model,
            jobs.client,
            self.federation.n_train,
        )
        has_model = queries.has_model[clients]
        measuring_ids = self.samples.find_clients_without_losses(state.samples, clients)
        forward_passes = cost_model.count_forward_passes(clients, rates, queries.answered_probes)
        forward_passes = forward_passes + np.where(np.isin(clients, measuring_ids), n_train[clients], 0)
        has_trained = mark_trained(clients, queries.answered_probes)

        def job_work(n_used: Ids) -> Workload:
            work = cost_model.make_workload(n_used, forward_passes, rates, jobs.bytes_up, has_model, jobs.assigned)
            return replace(work, unit_load=np.where(has_trained, 0.0, work.unit_load)) if has_trained.any() else work

        expected_timing = components.device.expect(clients, job_work(n_train[clients]), draws.draws_of_run())
        pace_context = PaceContext(draws.round, clients, cost_model.units, self._time_all_jobs(rates), expected_timing)
        announced_s = components.deadline.announce(state.deadline, pace_context)
        jobs = replace(jobs, expected=expected_timing, announced_s=np.full(len(jobs), announced_s))
        with self.queries.stopwatch.measure_stage("probe"):
            first_losses = self.samples.measure_losses(measuring_ids)
        jobs = self.samples.choose_samples(state.samples, jobs, first_losses, draws)
        timing = components.device.sample(clients, job_work(cost_model.count_samples(clients, jobs.rows)), draws)
        duration_s = self.clock.wall_time(jobs.start_s)(clients, timing.finish_s(jobs.assigned))
        return replace(jobs, timing=timing, duration_s=duration_s), announced_s, first_losses

    def _time_all_jobs(self, rates: JobRates) -> Timing:
        """Return the expected seconds of each phase of every client's whole job, on all of its samples.

        rates: costs of a job in the round; the result is cached for each value.
        """
        if id(rates) not in self.timing_by_rates:
            cost_model, all_client_ids = self.cost_model, self.clock.all_client_ids
            draws = Draws(self.settings.seed, self.federation.n_clients)
            bytes_up = cost_model.update_bytes + rates.extra_bytes
            forward_passes = cost_model.count_forward_passes(all_client_ids, rates)
            work = cost_model.make_workload(self.federation.n_train, forward_passes, rates, bytes_up)
            self.timing_by_rates[id(rates)] = self.components.device.expect(all_client_ids, work, draws)
        return self.timing_by_rates[id(rates)]
