"""Finish: the jobs that arrive before the round closes, and the cost of the whole round."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fedcohort.deadline.base import DeadlineOutcome, compute_outcome
from fedcohort.ledger import Charge
from fedcohort.rng import Draws
from fedcohort.round.components import ServerState
from fedcohort.round.dispatch import Dispatch, Dispatcher
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
        in_flight: jobs that end in a later round; none, as rounds are synchronous.
        dropped: jobs that are lost.
        processed_samples: samples in all mini-batches of each job that arrives, [m].
        weights: aggregation weight of each job that arrives, not normalised, [m].
        agg_answers: answers to the aggregator's queries, by signal, each [m]; none in a plain round.
        first_losses: the entries of `Dispatch.first_losses` that clients measured before the round closed.
        queried_ids: sorted ids of the clients that selector or aggregator queried, with or without an answer.
        charge: cost of the whole round.
    """

    dispatched: Dispatch
    closing: DeadlineOutcome
    arrived: Jobs
    in_flight: Jobs
    dropped: Jobs
    processed_samples: Values
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
    def selection(self) -> Selection:
        """The cohort that the selector chose in this round."""
        return self.dispatched.selection


def close_round(dispatched: Dispatch, dispatcher: Dispatcher, state: ServerState) -> Finished:
    """Close the round: determine which jobs arrive, and add up the cost of the round."""
    components, cost_model, n_train = dispatcher.components, dispatcher.cost_model, dispatcher.federation.n_train
    jobs, selection, queried = dispatched.jobs, dispatched.selection, dispatched.queried
    rates, wall = (
        cost_model.rates_of_round(selection.plain),
        partial(dispatcher.clock.wall_time(jobs.start_s), jobs.client),
    )
    # The deadline closes the round: jobs that end later are dropped, or reduced to the units that are done by then.
    announced_s = float(jobs.announced_s[0]) if len(jobs) else np.inf
    closes_s = components.deadline.close(state.deadline, jobs.duration_s, announced_s) if len(jobs) else 0.0
    closing = compute_outcome(jobs.timing, jobs.assigned, closes_s, components.deadline.partial_work, announced_s, wall)
    ended_jobs = replace(jobs, units=closing.units_done, duration_s=closing.finish_s)
    arrived = ended_jobs.select_jobs(closing.is_in_time)
    n_used = cost_model.count_used(arrived.client, arrived.rows)
    draws = Draws(dispatcher.settings.seed, dispatcher.federation.n_clients, dispatched.round)
    # The charge includes first measurements of all samples, which the cost model's `round` does not know.
    charge = cost_model.charge_round(queried.probes, queried.answers, jobs, closing, selection.plain, draws)
    measuring_ids = np.array(list(dispatched.first_losses), dtype=np.int64)
    train_s = closing.train_s if len(jobs) else 0.0
    charge += Charge(
        client_flops=cost_model.flops * int(n_train[measuring_ids].sum()),
        virtual_s=dispatched.before_s + queried.blocking_s + max(train_s, queried.concurrent_s),
    )
    ids_in_time = set(jobs.client[wall(jobs.timing.query_s()) <= closes_s].tolist())
    return Finished(
        dispatched,
        closing,
        arrived,
        in_flight=ended_jobs.select_jobs(np.zeros(len(jobs), dtype=bool)),
        dropped=ended_jobs.select_jobs(~closing.is_in_time),
        processed_samples=cost_model.count_processed(n_used, arrived.units),
        weights=n_used.astype(np.float64)
        if selection.plain
        else components.agg.weights(n_used, n_train[arrived.client]),
        agg_answers={
            w: dispatcher.queries.report_measured(w, s, arrived.client) for w, s in rates.queried_signals.items()
        },
        first_losses={k: losses for k, losses in dispatched.first_losses.items() if k in ids_in_time},
        queried_ids=list_queried(queried.probes, selection.clients if rates.queried_signals else selection.clients[:0]),
        charge=charge,
    )
