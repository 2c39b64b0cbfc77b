"""The virtual time that queries take: until the slowest queried client answers or would have answered."""

import numpy as np
from jaxtyping import Bool

from fedcohort.availability.schedule import WORK_TOLERANCE_S
from fedcohort.rng import Draws
from fedcohort.round.clock import VirtualClock, WallTime
from fedcohort.round.cost import CostModel
from fedcohort.round.rates import QueryPasses
from fedcohort.types import Values


def compute_query_times(
    cost_model: CostModel, query_work: QueryPasses, draws: Draws, start_s: float, clock: VirtualClock
) -> tuple[float, Bool[np.ndarray, "clients"]]:
    """Return the virtual seconds that queries take, and which clients become unavailable meanwhile, bool [n_clients].

    The queries take until the slowest client would be done. A client that becomes unavailable before gives no answer,
    and does not resume the query later. If some clients train for a signal, the server first waits for their encoded
    updates, without buffers. Then all queried clients receive the resulting model and run their forward passes.

    Args:
        cost_model: the costs of queries.
        query_work: forward passes of each client.
        draws: random numbers of the round.
        start_s: virtual second at which the queries begin.
        clock: adds the seconds in which clients are away.
    """
    up_bytes = np.where(query_work.training_passes > 0, cost_model.update_bytes, 0.0)
    training_s, has_client_left = _time_slowest_client(
        cost_model, query_work.model_passes + query_work.training_passes, up_bytes, draws, clock.wall_time(start_s)
    )
    updated_model_s, has_client_left_updated_model = _time_slowest_client(
        cost_model, query_work.passes_after_training, 0.0 * up_bytes, draws, clock.wall_time(start_s + training_s)
    )
    return training_s + updated_model_s, has_client_left | has_client_left_updated_model


def _time_slowest_client(
    cost_model: CostModel, n_forward_passes: Values, up_bytes: Values, draws: Draws, compute_wall_time: WallTime
) -> tuple[float, Bool[np.ndarray, "clients"]]:
    """Return the seconds that the slowest queried client takes, and which clients are unavailable before they answer.

    Args:
        cost_model: the costs of queries.
        n_forward_passes: forward passes of each client, [n_clients]; 0 for a client without a query.
        up_bytes: bytes of each answer, [n_clients].
        draws: random numbers of the round.
        compute_wall_time: function from ids and seconds of work to seconds with absences.
    """
    clients, has_client_left = np.flatnonzero(n_forward_passes), np.zeros(len(n_forward_passes), dtype=bool)
    if not len(clients):
        return 0.0, has_client_left
    workload_arguments = (n_forward_passes[clients], cost_model.query_costs, up_bytes[clients])
    workload = cost_model.make_workload(np.zeros_like(clients), *workload_arguments)
    query_s = cost_model.components.device.sample(clients, workload, draws).finish_s(0)
    has_client_left[clients] = compute_wall_time(clients, query_s) > query_s + WORK_TOLERANCE_S
    return float(query_s.max()), has_client_left
