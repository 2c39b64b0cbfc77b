"""Dispatch: the clients that are ready, queried and selected in a round, and the job that each selected client gets."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from fedcohort.data.federation import Federation
from fedcohort.draw_log import EMPTY_DRAW_LOG, DrawLog, LoggedGenerator, list_logged_clients
from fedcohort.rng import Draws
from fedcohort.round.backoff import omit_failed_clients
from fedcohort.round.clock import VirtualClock
from fedcohort.round.components import Components, ServerState
from fedcohort.round.cost import CostModel
from fedcohort.round.dispatch_record import Dispatch, QueryRecord
from fedcohort.round.guard import prefix_errors_with_component
from fedcohort.round.in_flight import exclude_busy_clients
from fedcohort.round.job_schedule import JobScheduler
from fedcohort.round.jobs import Jobs
from fedcohort.round.populations import Populations
from fedcohort.round.queries import ClientReports, QueryAnswerer
from fedcohort.round.query_time import compute_query_times
from fedcohort.round.sampling import SampleSelection
from fedcohort.round.settings import Settings
from fedcohort.round.uniform import draw_uniform_cohort
from fedcohort.round.workload import verify_selection
from fedcohort.types import Ids, ProbeResult, RoundContext, Selection

NO_CLIENT_IDS: Ids = np.empty(0, np.int64)


class Dispatcher:
    """Makes the decisions of a round: queries clients, lets the selector choose, and makes the selected clients' jobs.

    Args:
        components: the components of the run.
        settings: options of the rounds.
        federation: data of the run.
        cost_model: the costs of jobs and queries.
        queries: answers queries.
        sample_selection: applies the run's sample selection.
    """

    def __init__(
        self,
        components: Components,
        settings: Settings,
        federation: Federation,
        cost_model: CostModel,
        queries: QueryAnswerer,
        sample_selection: SampleSelection,
    ) -> None:
        self.components, self.settings, self.federation = components, settings, federation
        self.cost_model, self.queries = cost_model, queries
        run_draws = federation.draws(settings.seed)
        self.clock = VirtualClock(components.availability, run_draws, settings.window_s)
        self.cohort = components.deadline.cohort_size(settings.cohort)
        populations = Populations.from_federation(federation, settings.cohort, cost_model.expect_job_times(run_draws))
        self.populations = replace(populations, report_values=self.client_reports.report_values)
        self.logged_ids = list_logged_clients(settings.seed, federation.n_clients)
        self.scheduler = JobScheduler(components, cost_model, sample_selection, queries.stopwatch, self.clock)

    @property
    def client_reports(self) -> ClientReports:
        """The values that clients report, with the run's noise added; attackers report false ones."""
        return self.queries.client_reports

    def dispatch(self, round: int, state: ServerState) -> Dispatch:
        """Return the decisions of round `round`: ready clients, queries with their answers, the cohort, and its jobs.

        A client whose job is in flight in `state`, the server's state, is not ready: it can be neither queried nor
        selected.
        """
        draws, busy_jobs = self.federation.draws(self.settings.seed, round), state.in_flight.jobs
        ready_ids, wait_s = self.clock.find_ready_clients(draws, state.spent.virtual_s, can_advance=not len(busy_jobs))
        pause_s, deadline = wait_s + self.clock.window_s, self.components.deadline
        start_s, n_places = state.spent.virtual_s + pause_s, deadline.free_places(self.cohort, len(busy_jobs))
        first_context = RoundContext(
            round=round,
            cohort=n_places,
            n_clients=self.federation.n_clients,
            available=ready_ids,
            signals=self.populations.signals(self.queries.needs, "the selector", self.queries.measure_server_signals()),
            rng=LoggedGenerator(draws.generator("selector"), self.logged_ids),
            units=self.cost_model.work_units,
        )
        ctx = self._exclude_clients(first_context, state, busy_jobs, start_s)
        must_wait = len(busy_jobs) > 0 and (n_places < 1 or not len(ctx.available))  # only wait for jobs in flight
        query_ctx = replace(ctx, available=NO_CLIENT_IDS, backed_off=NO_CLIENT_IDS) if must_wait else ctx
        queries = self._send_queries(state.selector, query_ctx, draws, start_s)
        query_answers = queries.select_query_answers(is_query_concurrent=False)
        selection, selector_state, draw_log = Selection(NO_CLIENT_IDS), state.selector, EMPTY_DRAW_LOG
        if not must_wait:
            selection, selector_state, draw_log = self._select_clients(state.selector, ctx, query_answers)
        start_s += queries.query_s
        jobs, deadline_s, initial_losses = self.scheduler.make_jobs(selection, queries, state, draws, start_s)
        return Dispatch(
            round=round,
            first_context=first_context,
            ready_ids=ctx.ready,
            selection=selection,
            selector_state=selector_state,
            queries=queries,
            jobs=jobs,
            initial_losses=initial_losses,
            wait_s=wait_s,
            pause_s=pause_s,
            start_s=start_s,
            deadline_s=deadline_s,
            uniform_cohort=draw_uniform_cohort(ctx.ready, len(selection.clients), draws),
            draw_log=draw_log,
        )

    def add_refill_client(
        self, dispatch: Dispatch, state: ServerState, busy_jobs: Jobs, arrival_s: float, refill_number: int
    ) -> Dispatch:
        """Return the decisions of a round with one more client, which replaces a client that finished during the round.

        The client receives the same model as the others, and is chosen by the answers to this round's queries. The
        context of the selection has `is_refill`, unless no client could be selected before.

        Args:
            dispatch: decisions of the round so far.
            state: state of the server before the round.
            busy_jobs: jobs of clients that work, or whose update waits for the server's step.
            arrival_s: virtual second at which the other client finished.
            refill_number: how many clients have started during the round, this one included; it keys the draws.
        """
        draws = self.federation.draws(self.settings.seed, dispatch.round)
        ready_ids = self.clock.find_ready_clients_at(dispatch.ready_ids, arrival_s)
        refill_context = replace(
            dispatch.first_context,
            is_refill=len(dispatch.selection.clients) > 0,
            cohort=1,
            available=ready_ids,
            rng=LoggedGenerator(draws.generator("refill", refill_number), self.logged_ids),
        )
        ctx = self._exclude_clients(refill_context, state, busy_jobs, arrival_s)
        if not len(ctx.available):
            return dispatch
        query_answers = dispatch.queries.select_query_answers(is_query_concurrent=False)
        all_ready_ids = dispatch.ready_ids  # without a schedule, no further client becomes ready
        if query_answers or self.clock.schedule is not None:
            is_client_absent = np.ones(self.federation.n_clients, dtype=bool)
            is_client_absent[ctx.ready] = False
            query_answers = {k: r.without(is_client_absent) for k, r in query_answers.items()}
            is_client_absent[dispatch.ready_ids] = False
            all_ready_ids = np.flatnonzero(~is_client_absent)
        selection, selector_state, draw_log = self._select_clients(dispatch.selector_state, ctx, query_answers)
        jobs, _, _ = self.scheduler.make_jobs(selection, dispatch.queries, state, draws, arrival_s)
        return replace(
            dispatch,
            ready_ids=all_ready_ids,
            selection=replace(selection, clients=np.union1d(dispatch.selection.clients, selection.clients)),
            selector_state=selector_state,
            refill_jobs=dispatch.refill_jobs.merge_jobs(jobs),
            draw_log=dispatch.draw_log.append_log(draw_log),
        )

    def add_uniform_cohort(self, dispatch: Dispatch) -> Dispatch:
        """Return the decisions `dispatch` with a uniform reference cohort, as large as all selections of the round."""
        draws = self.federation.draws(self.settings.seed, dispatch.round)
        n_selected_clients = len(dispatch.selection.clients)
        return replace(dispatch, uniform_cohort=draw_uniform_cohort(dispatch.ready_ids, n_selected_clients, draws))

    def _exclude_clients(self, ctx: RoundContext, state: ServerState, busy_jobs: Jobs, now_s: float) -> RoundContext:
        """Return `ctx` without clients that have `busy_jobs` at second `now_s`, or failed repeatedly before."""
        ctx = exclude_busy_clients(ctx, busy_jobs, now_s)
        selector = self.components.selector
        return omit_failed_clients(state.failures, ctx, selector.shortlist(ctx.cohort)) if selector.backs_off else ctx

    def _select_clients(
        self, selector_state: object, ctx: RoundContext, query_answers: Mapping[str, ProbeResult]
    ) -> tuple[Selection, object, DrawLog]:
        """Return the selector's choice, its next state and its draws; raise an error for an invalid choice.

        `selector_state` is the state before the choice; `ctx` is the context, and
        `query_answers` has the answers to the selector's queries by signal.
        """
        selector, logged_generator = self.components.selector, ctx.rng
        if not isinstance(logged_generator, LoggedGenerator):
            raise TypeError(
                f"pass a LoggedGenerator as `rng` of the round's context, not a {type(logged_generator).__name__}"
            )
        logged_generator.start_selection()
        selection, next_selector_state = selector.select(selector_state, ctx, query_answers)
        with prefix_errors_with_component(selector):
            verify_selection(selection, ctx, self.components.codec, self.components.deadline.carries)
        return selection, next_selector_state, logged_generator.finish()

    def _send_queries(self, selector_state: object, ctx: RoundContext, draws: Draws, start_s: float) -> QueryRecord:
        """Send the selector's queries from virtual second `start_s` on; clients that become unavailable do not answer.

        `selector_state` is the selector's state, `ctx` the context, and `draws` has the random numbers of the round.
        """
        selector, cost_model = self.components.selector, self.cost_model
        probes = list(selector.plan(selector_state, ctx)) if len(ctx.ready) else []
        if not probes:
            return QueryRecord([], {}, 0.0, 0.0, np.zeros(self.federation.n_clients, dtype=bool))
        with prefix_errors_with_component(selector):
            ready_share = partial(self.clock.ready_share, start_s)
            query_answers = self.queries.answer_probes(probes, ctx.ready, ctx.round, ready_share)
        query_work, concurrent_query_work = (
            cost_model.sum_query_work([p for p in probes if p.concurrent == is_query_concurrent], draws)
            for is_query_concurrent in (False, True)
        )
        query_s, has_client_left = compute_query_times(cost_model, query_work, draws, start_s, self.clock)
        concurrent_query_s, has_client_left_training = compute_query_times(
            cost_model, concurrent_query_work, draws, start_s + query_s, self.clock
        )
        query_answers = {
            p.signal: query_answers[p.signal].without(has_client_left_training if p.concurrent else has_client_left)
            for p in probes
        }
        return QueryRecord(probes, query_answers, query_s, concurrent_query_s, query_work.total_passes > 0)
