"""The numbers that clients report with noise in a round, and the privacy that these cost (`signal_noise`)."""

import numpy as np

from fedcohort.round.components import Components, ServerState
from fedcohort.round.finish import RoundEnd
from fedcohort.signal.base import Reported, find_signal
from fedcohort.types import Ids, Values


def count_reported_numbers(components: Components, round_end: RoundEnd) -> Ids:
    """Return how many numbers each client reported in a round, int64 [n_clients]: in answers and with its update.

    A query that both selector and aggregator make is answered once. A late client's reports count in the round in which
    they arrive. Signals that clients do not send (`bytes_up` is 0) do not count. Without noise all counts are 0.

    Args:
        components: the components of the run.
        round_end: the round after it has closed.
    """
    n_reported = np.zeros(round_end.dispatch.opening_context.n_clients, dtype=np.int64)
    if not components.signal_noise.perturbs:
        return n_reported
    queries, arrived_jobs = round_end.dispatch.queries, round_end.arrived
    for name, probe_result in queries.answers.items():
        if find_signal(name).bytes_up:
            n_reported[probe_result.clients] += probe_result.values[:1].size
    for name in round_end.agg_answers:
        answered_ids = [queries.answers[p.signal].clients for p in queries.probes if p.signal == name and not p.options]
        is_repeated = np.isin(arrived_jobs.client, answered_ids) & (arrived_jobs.broadcast == round_end.round)
        n_reported[arrived_jobs.client[~is_repeated]] += 1
    signals = (find_signal(name) for name in components.needs(round_end.selection.plain))
    n_reported[arrived_jobs.client] += sum(isinstance(signal, Reported) and signal.bytes_up > 0 for signal in signals)
    return n_reported


def compute_privacy_metrics(components: Components, round_end: RoundEnd | None, state: ServerState) -> dict[str, float]:
    """Return the largest epsilon of a client in the round and in the run so far, by metric name.

    The result is {} without noise, and before the first round. Epsilon is the parameter of differential privacy.

    Args:
        components: the components of the run.
        round_end: the round after it has closed; None before the first.
        state: state of the server.
    """
    noise_multiplier = components.signal_noise
    if not noise_multiplier.perturbs or round_end is None:
        return {}
    round_numbers = int(count_reported_numbers(components, round_end).max())
    return {
        "privacy/epsilon_round": noise_multiplier.epsilon(round_numbers),
        "privacy/epsilon": noise_multiplier.epsilon(int(state.reported_numbers.max())),
    }


def make_epsilon_column(
    components: Components, round_end: RoundEnd, state: ServerState
) -> dict[str, tuple[Ids | None, np.ndarray]]:
    """Return the epsilon (of differential privacy) of each client that reported in the round; {} without noise.

    The column has the client ids and the values over the run so far, both [clients].

    Args:
        components: the components of the run.
        round_end: the round after it has closed.
        state: state of the server.
    """
    if not components.signal_noise.perturbs:
        return {}
    clients = np.flatnonzero(count_reported_numbers(components, round_end))
    distinct_counts, count_rows = np.unique(state.reported_numbers[clients], return_inverse=True)
    epsilons: Values = np.array([components.signal_noise.epsilon(n) for n in distinct_counts.tolist()])
    return {"epsilon": (clients, epsilons[count_rows])}
