"""The energy that clients spend, in joules, for computation (`device.watts`) and messages (`device.joules_per_byte`).

    joules = watts * seconds of computation + joules_per_byte * bytes down and up, summed over all clients

The seconds are those of the device model: training, and forward passes for queries and reports. A late client is
charged for its full computation, in the round in which it started. Bytes are those of the ledger. All clients have the
same power. Idle clients spend nothing, and the server's energy is not included. Not from a paper.
"""

import numpy as np

from fedcohort.round.cost import CostModel
from fedcohort.round.finish import RoundEnd
from fedcohort.round.settings import Settings


def compute_joules(settings: Settings, cost_model: CostModel, round_end: RoundEnd) -> float:
    """Return the joules that all clients spend in a round; 0 if the options give no energy.

    Args:
        settings: options of the run, with watts and joules per byte.
        cost_model: the costs of jobs and queries.
        round_end: the round after it has closed.
    """
    joules = settings.joules_per_byte * (round_end.charge.down_bytes + round_end.charge.up_bytes)
    if settings.watts is None:
        return joules
    dispatch, deadline_outcome = round_end.dispatch, round_end.outcome
    units_done = np.where(deadline_outcome.is_in_time, deadline_outcome.units_done, dispatch.jobs.assigned)
    work_s = 0.0
    for jobs, units_done_by_job in ((dispatch.jobs, units_done), (dispatch.refills, dispatch.refills.assigned)):
        work_s += float((jobs.timing.infer_s + units_done_by_job * jobs.timing.unit_s).sum())
    draws = cost_model.federation.draws(settings.seed, round_end.round)
    query_samples = cost_model.sum_query_work(dispatch.queries.probes, draws).total
    clients = np.flatnonzero(query_samples)
    if len(clients):
        workload = cost_model.make_workload(
            np.zeros_like(clients), query_samples[clients], cost_model.query_rates, np.zeros(len(clients))
        )
        work_s += float(cost_model.components.device.sample(clients, workload, draws).infer_s.sum())
    return joules + settings.watts * work_s
