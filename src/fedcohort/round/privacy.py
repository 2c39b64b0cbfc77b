"""The numbers that clients report with noise in a round, and the privacy that these cost (`signal_noise`)."""

import numpy as np

from fedcohort.round.components import Components, ServerState
from fedcohort.round.finish import ClosedRound
from fedcohort.round.workload import mark_answering_clients
from fedcohort.signal.base import Reported, find_signal
from fedcohort.types import Ids, Values

MetricValues = dict[str, float]


def count_reported_numbers(components: Components, closed_round: ClosedRound) -> Ids:
    """Return how many numbers each client reported in a round, int64 [n_clients]: in answers and with its update.

    A query that both selector and aggregator make is answered once. Answers count in the round of the query, also if
    the update is late or lost. Reports with an update count when it arrives, also if it is too old to be used. Signals
    that clients do not send (`bytes_up` is 0) do not count. Without noise all counts are 0.

    Args:
        components: the components of the run.
        closed_round: the round after it has closed.
    """
    n_reported_numbers = np.zeros(closed_round.dispatch.first_context.n_clients, dtype=np.int64)
    if not components.signal_noise.perturbs:
        return n_reported_numbers
    dispatch, queries = closed_round.dispatch, closed_round.dispatch.queries
    for k, probe_result in queries.answers_by_signal.items():
        if find_signal(k).bytes_up:
            n_reported_numbers[probe_result.clients] += probe_result.values[:1].size
    for k in closed_round.agg_answers:
        job_clients = np.concatenate([dispatch.jobs.client, dispatch.refill_jobs.client])
        n_reported_numbers[job_clients[~mark_answering_clients(k, job_clients, queries.answered_probes)]] += 1
    signals = (find_signal(k) for k in components.needed_signals(closed_round.selection.plain))
    n_reported_numbers[closed_round.reporting_ids] += sum(isinstance(s, Reported) and s.bytes_up > 0 for s in signals)
    return n_reported_numbers


def compute_privacy_metrics(
    components: Components, closed_round: ClosedRound | None, server_state: ServerState
) -> MetricValues:
    """Return the largest epsilon of a client in the round and in the run so far, by metric name.

    The result is {} without noise, and before the first round. Epsilon is the parameter of differential privacy.

    Args:
        components: the components of the run.
        closed_round: the round after it has closed; None before the first.
        server_state: state of the server.
    """
    signal_noise = components.signal_noise
    if not signal_noise.perturbs or closed_round is None:
        return {}
    max_reported_numbers = int(count_reported_numbers(components, closed_round).max())
    return {
        "privacy/epsilon_round": signal_noise.epsilon(max_reported_numbers),
        "privacy/epsilon": signal_noise.epsilon(int(server_state.reported_numbers.max())),
    }


def make_epsilon_column(
    components: Components, closed_round: ClosedRound, server_state: ServerState
) -> dict[str, tuple[Ids | None, np.ndarray]]:
    """Return the epsilon (of differential privacy) of each client that reported in the round; {} without noise.

    The column has the client ids and the values over the run so far, both [clients].

    Args:
        components: the components of the run.
        closed_round: the round after it has closed.
        server_state: state of the server.
    """
    if not components.signal_noise.perturbs:
        return {}
    clients = np.flatnonzero(count_reported_numbers(components, closed_round))
    distinct_counts, position_in_distinct_counts = np.unique(
        server_state.reported_numbers[clients], return_inverse=True
    )
    epsilons: Values = np.array([components.signal_noise.epsilon(n) for n in distinct_counts.tolist()])
    return {"epsilon": (clients, epsilons[position_in_distinct_counts])}
