"""Finish: the jobs that arrive before the round closes, and the cost of the whole round."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.deadline.base import Deadline, DeadlineOutcome, compute_outcome
from fedcohort.ledger import Charge
from fedcohort.rng import Draws
from fedcohort.round.components import ServerState
from fedcohort.round.dispatch import Dispatch, Dispatcher
from fedcohort.round.in_flight import InFlight, count_down
from fedcohort.round.jobs import Jobs
from fedcohort.round.workload import list_queried
from fedcohort.types import Ids, Selection, Values


@dataclass(frozen=True)
class Finished:
    """The end of a round, which is known before the training, as virtual time does not depend on the model.

    Attributes:
        dispatched: decisions before the training.
        closing: time at which the round closes, and the units that each selected client has completed by then.
        arrived: jobs that end before the round closes.
        in_flight: jobs that end in a later round; none unless the deadline `carries`. What was sent with the jobs of
            this round is added to it before the server steps.
        dropped: jobs that are lost.
        processed_samples: samples in all mini-batches of each job that arrives, [m].
        discounts: factor of the weight of each job that arrives, by its staleness, [m].
        weights: aggregation weight of each job that arrives, not normalised, [m].
        agg_answers: answers to the aggregator's queries, by signal, each [m]; none in a plain round.
        first_losses: the entries of `Dispatch.first_losses` that clients measured before the round closed.
        queried_ids: sorted ids of the clients that selector or aggregator queried, with or without an answer.
        charge: cost of the whole round.
    """

    dispatched: Dispatch
    closing: DeadlineOutcome
    arrived: Jobs
    in_flight: InFlight
    dropped: Jobs
    processed_samples: Values
    discounts: Values
    weights: Values
    agg_answers: Mapping[str, Values]
    first_losses: Mapping[int, Values]
    queried_ids: Ids
    charge: Charge

    @property
    def round(self) -> int:
        """Number of the round, from 0."""
        return self.dispatched.round

    @property
    def staleness(self) -> Ids:
        """Number of server steps since the client of each job that arrives received its model, [m]."""
        steps: Ids = self.round - self.arrived.broadcast
        return steps

    @property
    def selection(self) -> Selection:
        """The cohort that the selector chose in this round."""
        return self.dispatched.selection


def close_round(dispatched: Dispatch, dispatcher: Dispatcher, state: ServerState) -> Finished:
    """Close the round: determine which jobs arrive, and add up the cost of the round.

    If the deadline `carries`, a late job stays in flight. Its download and work are charged in the round in which it
    was sent, its upload in the round in which it arrives.
    """
    components, cost_model, n_train = dispatcher.components, dispatcher.cost_model, dispatcher.federation.n_train
    jobs, selection = dispatched.jobs, dispatched.selection
    measure = partial(_measure_for_aggregator, dispatcher, selection.plain)
    refilled = dispatched.refilled
    earlier = state.in_flight.joined_with(refilled, measure(refilled.client)) if len(refilled) else state.in_flight
    wall = partial(dispatcher.clock.wall_time(jobs.start_s), jobs.client)
    is_usable = mark_usable(earlier.jobs, dispatched.round, components.deadline.max_staleness)
    remaining_s = count_down(earlier.jobs, dispatched.start_s)
    closes_s, closing = _find_closing(dispatched, components.deadline, state, remaining_s, is_usable, wall)
    closing, has_landed = _limit_arrivals(
        closing,
        jobs.client,
        earlier.jobs.client,
        remaining_s,
        is_usable,
        components.deadline.arrival_limit(state.deadline),
    )
    goes_on = ~closing.is_in_time & np.isfinite(jobs.duration_s) & components.deadline.carries
    landed = earlier.select_jobs(has_landed & is_usable)
    ended_jobs = replace(jobs, units=closing.units_done, duration_s=closing.finish_s)
    in_time = ended_jobs.select_jobs(closing.is_in_time)
    arrived = in_time.joined_with(landed.jobs)
    n_used = cost_model.count_used(arrived.client, arrived.rows)
    queried_ids, charge = _charge_round(dispatched, dispatcher, closing, earlier.jobs.select_jobs(has_landed))
    ids_in_time = set(jobs.client[wall(jobs.timing.query_s()) <= closes_s].tolist())
    discounts = components.deadline.discount(dispatched.round - arrived.broadcast)
    return Finished(
        dispatched,
        closing,
        arrived,
        in_flight=earlier.select_jobs(~has_landed).joined_with(
            late_jobs := jobs.select_jobs(goes_on), measure(late_jobs.client)
        ),
        dropped=ended_jobs.select_jobs(~closing.is_in_time & ~goes_on).joined_with(
            earlier.jobs.select_jobs(has_landed & ~is_usable)
        ),
        processed_samples=cost_model.count_processed(n_used, arrived.units),
        discounts=discounts,
        weights=n_used.astype(np.float64)
        if selection.plain
        else components.agg.weights(n_used, n_train[arrived.client]) * discounts,
        agg_answers=landed.join_answers(in_time.client, measure(in_time.client)),
        first_losses={k: losses for k, losses in dispatched.first_losses.items() if k in ids_in_time},
        queried_ids=queried_ids,
        charge=charge,
    )


def mark_usable(jobs: Jobs, round: int, max_staleness: int | None) -> Bool[np.ndarray, "_m"]:
    """Return whether the update of each job in flight counts if it arrives in this round, bool [len(jobs)]."""
    return np.full(len(jobs), fill_value=True) if max_staleness is None else round - jobs.broadcast <= max_staleness


def _find_closing(
    dispatched: Dispatch,
    deadline: Deadline[Any],
    state: ServerState,
    remaining_s: Values,
    is_usable: Bool[np.ndarray, "_m"],
    wall: Callable[[Values], Values],
) -> tuple[float, DeadlineOutcome]:
    """Return when the deadline closes the round, in seconds after the broadcast, and the jobs that are done by then.

    Jobs that end later are dropped, stay in flight, or are reduced to the units that are done by then.

    Args:
        dispatched: decisions before the training.
        deadline: the deadline.
        state: state of the server.
        remaining_s: seconds until each job of an earlier round ends, [jobs in flight].
        is_usable: whether its update still counts, bool [jobs in flight].
        wall: function from the clients' seconds of work to the seconds until they are done.
    """
    jobs, announced_s = dispatched.jobs, dispatched.announced_s
    ends_s = np.concatenate([jobs.duration_s, remaining_s[is_usable]])
    if not len(ends_s):  # only clients whose updates are too old are at work: wait until they are free
        ends_s = remaining_s
    if deadline.carries:
        ends_s = ends_s[np.isfinite(ends_s)]
    closes_s = deadline.close(state.deadline, ends_s, announced_s) if len(ends_s) else 0.0
    closing = compute_outcome(jobs.timing, jobs.assigned, closes_s, deadline.partial_work, announced_s, wall)
    if deadline.carries:  # the round lasts until the deadline if any job is still in flight
        closing = replace(closing, train_s=min(closes_s, float(ends_s.max(initial=0.0))))
    return closes_s, closing


def _limit_arrivals(
    closing: DeadlineOutcome,
    clients: Ids,
    earlier_clients: Ids,
    remaining_s: Values,
    is_usable: Bool[np.ndarray, "_m"],
    limit: int | None,
) -> tuple[DeadlineOutcome, Bool[np.ndarray, "_m"]]:
    """Return the end of the round and the jobs in flight that end in it, without arrivals after the `limit`-th one.

    These arrive in the same second, so that they count in the next round. Arrivals are in the order of time and id.
    """
    has_landed = remaining_s <= closing.train_s
    is_arrival = np.concatenate([closing.is_in_time, has_landed & is_usable])
    if limit is None or is_arrival.sum() <= limit:
        return closing, has_landed
    ids, ends_s = np.concatenate([clients, earlier_clients]), np.concatenate([closing.finish_s, remaining_s])
    order = np.lexsort((ids, ends_s))
    too_late = order[is_arrival[order]][limit:]
    is_postponed = np.zeros(len(ids), dtype=bool)
    is_postponed[too_late] = True
    is_in_time = closing.is_in_time & ~is_postponed[: len(clients)]
    closing = replace(closing, is_in_time=is_in_time, units_done=np.where(is_in_time, closing.units_done, 0))
    return closing, has_landed & ~is_postponed[len(clients) :]


def _measure_for_aggregator(dispatcher: Dispatcher, plain: bool, clients: Ids) -> dict[str, Values]:
    """Return the answers to the aggregator's queries about the current model, by signal, each [len(clients)]."""
    signals = dispatcher.cost_model.rates_of_round(plain).queried_signals
    return {name: dispatcher.queries.report_measured(name, signal, clients) for name, signal in signals.items()}


def _charge_round(
    dispatched: Dispatch, dispatcher: Dispatcher, closing: DeadlineOutcome, landed: Jobs
) -> tuple[Ids, Charge]:
    """Return the sorted ids of the queried clients, and the cost of the whole round.

    Args:
        dispatched: decisions before the training.
        dispatcher: knows the cost model and the data.
        closing: end of the round.
        landed: jobs of earlier rounds, and of clients that started during the round, that end in it.
    """
    cost_model, jobs, queried = dispatcher.cost_model, dispatched.jobs, dispatched.queried
    selection, draws = (
        dispatched.selection,
        Draws(dispatcher.settings.seed, dispatcher.federation.n_clients, dispatched.round),
    )
    # The charge includes first measurements of all samples, which the cost model's `round` does not know.
    charge = cost_model.charge_round(queried.probes, queried.answers, jobs, closing, selection.plain, draws)
    if len(refilled := dispatched.refilled):
        not_yet = compute_outcome(refilled.timing, refilled.assigned, -1.0, partial_work=False)
        charge += cost_model.charge_round((), {}, refilled, not_yet, selection.plain, draws)
    measuring_ids = np.array(list(dispatched.first_losses), dtype=np.int64)
    charge += Charge(
        up_bytes=float(landed.bytes_up.sum()),
        client_flops=cost_model.flops * int(dispatcher.federation.n_train[measuring_ids].sum()),
        virtual_s=dispatched.before_s + queried.blocking_s + max(closing.train_s, queried.concurrent_s),
    )
    has_queries = bool(cost_model.rates_of_round(selection.plain).queried_signals)
    return list_queried(queried.probes, selection.clients if has_queries else selection.clients[:0]), charge
