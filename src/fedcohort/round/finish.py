"""Finish: the jobs that arrive before the round closes, and the cost of the whole round."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.ledger import Charge
from fedcohort.round.closing_time import find_round_end
from fedcohort.round.components import ServerState
from fedcohort.round.dispatch import Dispatcher
from fedcohort.round.dispatch_record import Dispatch
from fedcohort.round.in_flight import JobsInFlight
from fedcohort.round.jobs import Jobs
from fedcohort.round.workload import list_queried_clients
from fedcohort.types import Ids, Selection, Values


@dataclass(frozen=True)
class ClosedRound:
    """A round after it has closed: its arrivals, its cost, and the jobs that end later.

    It is known before the training, as virtual time does not depend on the model.

    m is the number of jobs that arrive.

    Attributes:
        dispatch: decisions before the training.
        outcome: time at which the round closes, and the units of work that each selected client has completed by then.
        arrived_jobs: jobs that end before the round closes.
        jobs_in_flight: jobs that end in a later round; none unless the deadline `carries` them. The model that this
            round's jobs received is added to them before the server's step.
        dropped_jobs: jobs that are lost.
        processed_samples: samples in all mini-batches of each job that arrives, [m].
        staleness_discounts: factor of the weight of each job that arrives, by its staleness, [m].
        client_weights: aggregation weight of each job that arrives, not normalised, [m].
        agg_answers: answers to the aggregator's queries, by signal, each [m]; {} if the round is trained as FedAvg.
        initial_losses: the entries of `Dispatch.initial_losses` that clients measured before the round closed.
        queried_ids: sorted ids of the clients that selector or aggregator queried, with or without an answer.
        charge: cost of the whole round.
        carries_late_jobs: whether late jobs arrive in later rounds (`Deadline.carries`).
    """

    dispatch: Dispatch
    outcome: DeadlineOutcome
    arrived_jobs: Jobs
    jobs_in_flight: JobsInFlight
    dropped_jobs: Jobs
    processed_samples: Values
    staleness_discounts: Values
    client_weights: Values
    agg_answers: Mapping[str, Values]
    initial_losses: Mapping[int, Values]
    queried_ids: Ids
    charge: Charge
    carries_late_jobs: bool

    @property
    def round(self) -> int:
        """Number of the finished round; the first round is 0."""
        return self.dispatch.round

    @property
    def staleness(self) -> Ids:
        """Number of server steps since the client of each job that arrives received its model, [m]."""
        return np.asarray(self.round - self.arrived_jobs.broadcast)

    @property
    def reporting_ids(self) -> Ids:
        """Sorted ids of the clients whose reports reached the server, with an update that it used or excluded, [n]."""
        is_update_too_old = self.dropped_jobs.broadcast < self.round
        return np.union1d(self.arrived_jobs.client, self.dropped_jobs.client[is_update_too_old])

    @property
    def selection(self) -> Selection:
        """The cohort that the selector chose in this round."""
        return self.dispatch.selection


def close_round(dispatch: Dispatch, dispatcher: Dispatcher, server_state: ServerState) -> ClosedRound:
    """Close the round: determine which jobs arrive, and add up the cost of the round.

    If the deadline `carries`, a late job stays in flight, unless its client never returns. Its download and work are
    charged in the round in which it was sent, its upload in the round in which it arrives.

    Args:
        dispatch: decisions of the round before the training.
        dispatcher: has the components, the clock and the cost model.
        server_state: state of the server before the round.
    """
    components, cost_model, n_train = dispatcher.components, dispatcher.cost_model, dispatcher.federation.n_train
    jobs, selection, refill_jobs = dispatch.jobs, dispatch.selection, dispatch.refill_jobs
    answer_agg = partial(_answer_agg_queries, dispatcher, selection.plain, dispatch.round)
    jobs_in_flight = server_state.in_flight.merge_jobs(refill_jobs, answer_agg(refill_jobs.client))
    compute_wall_time = partial(dispatcher.clock.wall_time(jobs.start_s), jobs.client)
    round_end = find_round_end(
        dispatch, jobs_in_flight.jobs, components.deadline, server_state.deadline, compute_wall_time
    )
    outcome, has_ended = round_end.outcome, round_end.has_ended
    is_update_used = has_ended & round_end.is_update_usable
    is_working = ~has_ended & np.isfinite(jobs_in_flight.jobs.duration_s)
    is_job_carried = ~outcome.is_in_time & np.isfinite(jobs.duration_s) & components.deadline.carries
    late_jobs, arrived_earlier_jobs = jobs.select_jobs(is_job_carried), jobs_in_flight.select_jobs(is_update_used)
    ended_jobs = replace(jobs, units=outcome.units_done, duration_s=outcome.finish_s)
    timely_jobs = ended_jobs.select_jobs(outcome.is_in_time)
    arrived_jobs = timely_jobs.merge_jobs(arrived_earlier_jobs.jobs)
    n_used_samples = cost_model.count_samples(arrived_jobs.client, arrived_jobs.rows)
    queried_ids, charge = _charge_round(dispatch, dispatcher, outcome, jobs_in_flight.jobs.select_jobs(has_ended))
    in_time_ids = set(jobs.client[compute_wall_time(jobs.timing.query_s()) <= round_end.close_s].tolist())
    lost_jobs = ended_jobs.select_jobs(~outcome.is_in_time & ~is_job_carried)
    staleness_discounts = components.deadline.discount(dispatch.round - arrived_jobs.broadcast)
    return ClosedRound(
        dispatch,
        outcome,
        arrived_jobs,
        jobs_in_flight=jobs_in_flight.select_jobs(is_working).merge_jobs(late_jobs, answer_agg(late_jobs.client)),
        dropped_jobs=lost_jobs.merge_jobs(jobs_in_flight.jobs.select_jobs(~is_working & ~is_update_used)),
        processed_samples=cost_model.count_sample_uses(n_used_samples, arrived_jobs.units),
        staleness_discounts=staleness_discounts,
        client_weights=n_used_samples.astype(np.float64)
        if selection.plain
        else components.agg.weights(n_used_samples, n_train[arrived_jobs.client]) * staleness_discounts,
        agg_answers=arrived_earlier_jobs.merge_answers(timely_jobs.client, answer_agg(timely_jobs.client)),
        initial_losses={k: sample_losses for k, sample_losses in dispatch.initial_losses.items() if k in in_time_ids},
        queried_ids=queried_ids,
        charge=charge,
        carries_late_jobs=components.deadline.carries,
    )


def _answer_agg_queries(dispatcher: Dispatcher, is_fedavg: bool, round: int, clients: Ids) -> dict[str, Values]:
    """Return the clients' answers to the aggregator's queries, by signal, each [len(clients)].

    Args:
        dispatcher: has the queries, and the costs of a job, which list the signals that the aggregator queries.
        is_fedavg: whether the round is trained as FedAvg (`Selection.plain`); the aggregator then queries nothing.
        round: number of the round whose global model the queries are about.
        clients: ids of the queried clients.
    """
    queried_signals = dispatcher.cost_model.select_job_costs(is_fedavg).queried_signals
    return {k: dispatcher.queries.report_agg_signal(k, signal, clients, round) for k, signal in queried_signals.items()}


def _charge_round(
    dispatch: Dispatch, dispatcher: Dispatcher, outcome: DeadlineOutcome, ended_earlier_jobs: Jobs
) -> tuple[Ids, Charge]:
    """Return the sorted ids of the queried clients, and the cost of the whole round.

    Args:
        dispatch: decisions before the training.
        dispatcher: has the cost model and the data.
        outcome: the clients that the deadline counts as in time, and the units that each has completed.
        ended_earlier_jobs: jobs of earlier rounds, and of clients that started during the round, that end in it.
    """
    cost_model, jobs, queries = dispatcher.cost_model, dispatch.jobs, dispatch.queries
    selection, draws = dispatch.selection, dispatcher.federation.draws(dispatcher.settings.seed, dispatch.round)
    # The charge includes first measurements of all samples, which `charge_round` does not know.
    # The uploads of refill jobs are among those of `ended_earlier_jobs`, if they arrive.
    if n_refill_jobs := len(dispatch.refill_jobs):
        client_order = np.argsort(np.concatenate([jobs.client, dispatch.refill_jobs.client]))
        is_job_in_time = np.append(outcome.is_in_time, np.zeros(n_refill_jobs, dtype=bool))[client_order]
        units_done = np.append(outcome.units_done, np.zeros(n_refill_jobs, np.int64))[client_order]
        jobs = jobs.merge_jobs(dispatch.refill_jobs)
        outcome = replace(outcome, is_in_time=is_job_in_time, units_done=units_done)
    charge = cost_model.charge_round(queries.probes, queries.answers_by_signal, jobs, outcome, selection.plain, draws)
    loss_measuring_client_ids = np.array(list(dispatch.initial_losses), dtype=np.int64)
    charge += Charge(
        up_bytes=float(ended_earlier_jobs.bytes_up.sum()),
        client_flops=cost_model.pass_flops * int(dispatcher.federation.n_train[loss_measuring_client_ids].sum()),
        virtual_s=dispatch.pause_s + queries.query_s + max(outcome.train_s, queries.concurrent_query_s),
    )
    has_agg_queries = bool(cost_model.select_job_costs(selection.plain).queried_signals)
    return list_queried_clients(queries.probes, selection.clients if has_agg_queries else selection.clients[:0]), charge
