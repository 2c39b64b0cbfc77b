"""The energy that clients spend, in joules, for computation (`device.watts`) and messages (`device.joules_per_byte`).

    joules = watts * seconds of computation + joules_per_byte * bytes down and up, summed over all clients

The seconds are those of the device model: training, and forward passes for queries and reports. A late client is
charged for its full computation, in the round in which it started. Bytes are those of the ledger. All clients have the
same power. Idle clients spend nothing, and the server's energy is not included. Not from a paper.
"""

import numpy as np

from fedcohort.round.cost import CostModel
from fedcohort.round.finish import ClosedRound
from fedcohort.round.settings import Settings


def compute_joules(settings: Settings, cost_model: CostModel, closed_round: ClosedRound) -> float:
    """Return the joules that all clients spend in a round; 0 if the options give no energy.

    Args:
        settings: options of the run, with watts and joules per byte.
        cost_model: the costs of jobs and queries.
        closed_round: the round after it has closed.
    """
    joules = settings.joules_per_byte * (closed_round.charge.down_bytes + closed_round.charge.up_bytes)
    if settings.watts is None:
        return joules
    dispatch, deadline_outcome = closed_round.dispatch, closed_round.outcome
    units_done = np.where(deadline_outcome.is_in_time, deadline_outcome.units_done, dispatch.jobs.assigned)
    computation_s = 0.0
    for jobs, units_done_by_job in ((dispatch.jobs, units_done), (dispatch.refill_jobs, dispatch.refill_jobs.assigned)):
        computation_s += float((jobs.timing.infer_s + units_done_by_job * jobs.timing.unit_s).sum())
    draws = cost_model.federation.draws(settings.seed, closed_round.round)
    query_passes = cost_model.sum_query_work(dispatch.queries.probes, draws).total_passes
    clients = np.flatnonzero(query_passes)
    if len(clients):
        workload = cost_model.make_workload(
            np.zeros_like(clients), query_passes[clients], cost_model.query_costs, np.zeros(len(clients))
        )
        computation_s += float(cost_model.components.device.sample(clients, workload, draws).infer_s.sum())
    return joules + settings.watts * computation_s
