"""The numbers that clients report with noise in a round, and the privacy that these cost (`signal_noise`)."""

import numpy as np

from fedcohort.round.components import Components, ServerState
from fedcohort.round.finish import Finished
from fedcohort.signal.base import Reported, find_signal
from fedcohort.types import Ids, Values


def count_reported(components: Components, finished: Finished) -> Ids:
    """Return how many numbers each client reported in a round, int64 [n_clients]: in answers and with its update.

    A query that both selector and aggregator make is answered once. A late client's reports count in the round in which
    they arrive. Signals that clients do not send (`bytes_up` is 0) do not count. Without noise all counts are 0.
    """
    n_reported = np.zeros(finished.dispatched.opening.n_clients, dtype=np.int64)
    if not components.signal_noise.perturbs:
        return n_reported
    queried, arrived = finished.dispatched.queried, finished.arrived
    for name, probe_result in queried.answers.items():
        if find_signal(name).bytes_up:
            n_reported[probe_result.clients] += probe_result.values[:1].size
    for name in finished.agg_answers:
        has_answered = [queried.answers[p.signal].clients for p in queried.probes if p.signal == name and not p.options]
        is_repeated = np.isin(arrived.client, has_answered) & (arrived.broadcast == finished.round)
        n_reported[arrived.client[~is_repeated]] += 1
    signals = (find_signal(name) for name in components.needs(finished.selection.plain))
    n_reported[arrived.client] += sum(isinstance(signal, Reported) and signal.bytes_up > 0 for signal in signals)
    return n_reported


def privacy_metrics(components: Components, finished: Finished | None, state: ServerState) -> dict[str, float]:
    """Return the largest epsilon of a client in the round and in the run so far, by metric name; {} without noise."""
    noise = components.signal_noise
    if not noise.perturbs or finished is None:
        return {}
    round_numbers = int(count_reported(components, finished).max())
    return {
        "privacy/epsilon_round": noise.epsilon(round_numbers),
        "privacy/epsilon": noise.epsilon(int(state.reported_numbers.max())),
    }


def epsilon_column(
    components: Components, finished: Finished, state: ServerState
) -> dict[str, tuple[Ids | None, np.ndarray]]:
    """Return the epsilon in the run so far of each client that reported in the round, as a column; {} without noise."""
    if not components.signal_noise.perturbs:
        return {}
    clients = np.flatnonzero(count_reported(components, finished))
    distinct_counts, rows = np.unique(state.reported_numbers[clients], return_inverse=True)
    epsilons: Values = np.array([components.signal_noise.epsilon(n) for n in distinct_counts.tolist()])
    return {"epsilon": (clients, epsilons[rows])}
