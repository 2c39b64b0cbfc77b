"""Finish: the jobs that arrive before the round closes, and the cost of the whole round."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.ledger import Charge
from fedcohort.round.closing_time import find_closing
from fedcohort.round.components import ServerState
from fedcohort.round.dispatch import Dispatcher
from fedcohort.round.dispatch_record import Dispatch
from fedcohort.round.in_flight import InFlight
from fedcohort.round.jobs import Jobs
from fedcohort.round.workload import list_queried_clients
from fedcohort.types import Ids, Selection, Values


@dataclass(frozen=True)
class RoundEnd:
    """The end of a round, which is known before the training, as virtual time does not depend on the model.

    m is the number of jobs that arrive.

    Attributes:
        dispatch: decisions before the training.
        outcome: time at which the round closes, and the units of work that each selected client has completed by then.
        arrived: jobs that end before the round closes.
        in_flight: jobs that end in a later round; none unless the deadline `carries` them. The models that this round's
            jobs received are added before the server steps.
        dropped_jobs: jobs that are lost.
        processed_samples: samples in all mini-batches of each job that arrives, [m].
        discounts: factor of the weight of each job that arrives, by its staleness, [m].
        weights: aggregation weight of each job that arrives, not normalised, [m].
        agg_answers: answers to the aggregator's queries, by signal, each [m]; {} if the round is trained as FedAvg.
        first_losses: the entries of `Dispatch.first_losses` that clients measured before the round closed.
        queried_ids: sorted ids of the clients that selector or aggregator queried, with or without an answer.
        charge: cost of the whole round.
        carries_jobs: whether late jobs arrive in later rounds (`Deadline.carries`).
    """

    dispatch: Dispatch
    outcome: DeadlineOutcome
    arrived: Jobs
    in_flight: InFlight
    dropped_jobs: Jobs
    processed_samples: Values
    discounts: Values
    weights: Values
    agg_answers: Mapping[str, Values]
    first_losses: Mapping[int, Values]
    queried_ids: Ids
    charge: Charge
    carries_jobs: bool

    @property
    def round(self) -> int:
        """Number of the finished round; the first round is 0."""
        return self.dispatch.round

    @property
    def staleness(self) -> Ids:
        """Number of server steps since the client of each job that arrives received its model, [m]."""
        n_steps: Ids = self.round - self.arrived.broadcast
        return n_steps

    @property
    def selection(self) -> Selection:
        """The cohort that the selector chose in this round."""
        return self.dispatch.selection


def close_round(dispatch: Dispatch, dispatcher: Dispatcher, state: ServerState) -> RoundEnd:
    """Close the round: determine which jobs arrive, and add up the cost of the round.

    If the deadline `carries`, a late job stays in flight. Its download and work are charged in the round in which it
    was sent, its upload in the round in which it arrives.

    Args:
        dispatch: decisions of the round before the training.
        dispatcher: has the components, the clock and the cost model.
        state: state of the server before the round.
    """
    components, cost_model, n_train = dispatcher.components, dispatcher.cost_model, dispatcher.federation.n_train
    jobs, selection, refills = dispatch.jobs, dispatch.selection, dispatch.refills
    measure = partial(_measure_for_aggregator, dispatcher, selection.plain, dispatch.round)
    in_flight = state.in_flight.joined_with(refills, measure(refills.client)) if len(refills) else state.in_flight
    wall_time = partial(dispatcher.clock.wall_time(jobs.start_s), jobs.client)
    closing = find_closing(dispatch, in_flight.jobs, components.deadline, state.deadline, wall_time)
    outcome, has_landed, is_usable = closing.outcome, closing.has_landed, closing.is_usable
    is_carried = ~outcome.is_in_time & np.isfinite(jobs.duration_s) & components.deadline.carries
    landed_jobs, late_jobs = in_flight.select_jobs(has_landed & is_usable), jobs.select_jobs(is_carried)
    ended_jobs = replace(jobs, units=outcome.units_done, duration_s=outcome.finish_s)
    timely_jobs = ended_jobs.select_jobs(outcome.is_in_time)
    arrived_jobs = timely_jobs.joined_with(landed_jobs.jobs)
    n_used = cost_model.count_samples(arrived_jobs.client, arrived_jobs.rows)
    queried_ids, charge = _charge_round(dispatch, dispatcher, outcome, in_flight.jobs.select_jobs(has_landed))
    ids_in_time = set(jobs.client[wall_time(jobs.timing.query_s()) <= closing.close_s].tolist())
    lost_jobs = ended_jobs.select_jobs(~outcome.is_in_time & ~is_carried)
    discounts = components.deadline.discount(dispatch.round - arrived_jobs.broadcast)
    return RoundEnd(
        dispatch,
        outcome,
        arrived_jobs,
        in_flight=in_flight.select_jobs(~has_landed).joined_with(late_jobs, measure(late_jobs.client)),
        dropped_jobs=lost_jobs.joined_with(in_flight.jobs.select_jobs(has_landed & ~is_usable)),
        processed_samples=cost_model.count_sample_uses(n_used, arrived_jobs.units),
        discounts=discounts,
        weights=n_used.astype(np.float64)
        if selection.plain
        else components.agg.weights(n_used, n_train[arrived_jobs.client]) * discounts,
        agg_answers=landed_jobs.join_answers(timely_jobs.client, measure(timely_jobs.client)),
        first_losses={k: client_losses for k, client_losses in dispatch.first_losses.items() if k in ids_in_time},
        queried_ids=queried_ids,
        charge=charge,
        carries_jobs=components.deadline.carries,
    )


def _measure_for_aggregator(dispatcher: Dispatcher, as_fedavg: bool, round: int, clients: Ids) -> dict[str, Values]:
    """Return the clients' answers to the aggregator's queries, by signal, each [len(clients)].

    Args:
        dispatcher: has the queries, and the costs of a job, which list the signals that the aggregator queries.
        as_fedavg: whether the round is trained as FedAvg (`Selection.plain`); the aggregator then queries nothing.
        round: number of the round whose global model the queries are about.
        clients: ids of the queried clients.
    """
    signals = dispatcher.cost_model.select_rates(as_fedavg).queried_signals
    return {k: dispatcher.queries.report_signal(k, signal, clients, round) for k, signal in signals.items()}


def _charge_round(
    dispatch: Dispatch, dispatcher: Dispatcher, outcome: DeadlineOutcome, landed_jobs: Jobs
) -> tuple[Ids, Charge]:
    """Return the sorted ids of the queried clients, and the cost of the whole round.

    Args:
        dispatch: decisions before the training.
        dispatcher: has the cost model and the data.
        outcome: the clients that the deadline counts as in time, and the units that each has completed.
        landed_jobs: jobs of earlier rounds, and of clients that started during the round, that end in it.
    """
    cost_model, jobs, queries = dispatcher.cost_model, dispatch.jobs, dispatch.queries
    selection, draws = (
        dispatch.selection,
        dispatcher.federation.draws(dispatcher.settings.seed, dispatch.round),
    )
    # The charge includes first measurements of all samples, which `charge_round` does not know.
    if n_refills := len(dispatch.refills):  # their uploads are among those of `landed_jobs`, if they arrive
        client_order = np.argsort(np.concatenate([jobs.client, dispatch.refills.client]))
        is_in_time = np.append(outcome.is_in_time, np.zeros(n_refills, dtype=bool))[client_order]
        units_done = np.append(outcome.units_done, np.zeros(n_refills, np.int64))[client_order]
        jobs, outcome = (
            jobs.joined_with(dispatch.refills),
            replace(outcome, is_in_time=is_in_time, units_done=units_done),
        )
    charge = cost_model.charge_round(queries.probes, queries.answers, jobs, outcome, selection.plain, draws)
    measuring_ids = np.array(list(dispatch.first_losses), dtype=np.int64)
    charge += Charge(
        up_bytes=float(landed_jobs.bytes_up.sum()),
        client_flops=cost_model.flops * int(dispatcher.federation.n_train[measuring_ids].sum()),
        virtual_s=dispatch.pause_s + queries.blocking_s + max(outcome.train_s, queries.concurrent_s),
    )
    has_queries = bool(cost_model.select_rates(selection.plain).queried_signals)
    return list_queried_clients(queries.probes, selection.clients if has_queries else selection.clients[:0]), charge
