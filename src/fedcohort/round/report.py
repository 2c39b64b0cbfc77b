"""The last step of a round (docs/architecture.md): its report, with metrics and per-client columns."""

import hashlib
import math
from collections.abc import Mapping

import numpy as np

from fedcohort.data.federation import Federation
from fedcohort.data.skew import class_imbalance
from fedcohort.flat import FlatModel
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.client_columns import list_registered_signals, make_attacker_column, make_client_columns
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.components import ServerState
from fedcohort.round.finish import RoundEnd
from fedcohort.round.late_report import compute_lateness_metrics
from fedcohort.round.privacy import compute_privacy_metrics, make_epsilon_column
from fedcohort.round.setup import Setup
from fedcohort.training.client_metrics import choose_evaluated_clients, measure_clients, worst_group_accuracy
from fedcohort.types import Ids, RoundReport

NO_CLIENTS: Ids = np.empty(0, np.int64)


def make_report(
    setup: Setup,
    stopwatch: Stopwatch,
    step: int,
    server_metrics: Mapping[str, float],
    state: ServerState,
    round_end: RoundEnd | None,
    arrivals: Arrivals | None,
) -> RoundReport:
    """Return the report after `step` rounds, and note the best test accuracy in `state`.

    Args:
        setup: the objects of the run.
        stopwatch: measures the stages of the round.
        step: number of finished rounds.
        server_metrics: metrics on the server's data, by name; {} without an evaluation.
        state: state of the server.
        round_end: the round after it has closed; None before the first.
        arrivals: the updates that arrived in the round; None before the first.
    """
    settings, federation, network = setup.settings, setup.true_federation, setup.server.network
    metrics, clients_every = dict(server_metrics), settings.clients_every
    client_facts = _make_round_facts(setup, state, round_end, arrivals)
    if clients_every and step % clients_every == 0:
        with stopwatch.measure_stage("evaluate"), setup.average.load_average():
            clients = choose_evaluated_clients(federation.n_clients, settings.clients_sample, settings.seed)
            client_scalars, metrics_by_client = measure_clients(network, federation, clients)
        metrics |= client_scalars
        client_facts |= metrics_by_client
    # The rank correlations take long with many clients, so that only some reports have them.
    if round_end is not None and (step % clients_every == 0 if clients_every else server_metrics):
        metrics |= setup.score_correlation.measure_correlations(round_end.selection)
    if "test/acc" in metrics:
        if (attribute := federation.server_test_attribute) is not None:
            with stopwatch.measure_stage("evaluate"), setup.average.load_average():
                metrics["test/acc_worst_group"] = worst_group_accuracy(network, federation.server_test, attribute)
        metrics["test/acc_best"] = state.best_acc = max_accuracy(state.best_acc, metrics["test/acc"])
    metrics |= compute_data_metrics(federation, arrivals, setup.dispatcher.client_reports.is_attacker)
    metrics |= {**setup.components.state_metrics(state), **compute_progress_metrics(step, round_end, arrivals, state)}
    metrics |= compute_privacy_metrics(setup.components, round_end, state)
    metrics |= {"energy/joules": state.joules} if settings.measures_energy else {}
    return RoundReport(
        step,
        cohort=NO_CLIENTS if round_end is None else round_end.selection.clients,
        arrived=NO_CLIENTS if arrivals is None else arrivals.clients,
        metrics=metrics,
        clients=client_facts | make_attacker_column(setup.dispatcher.client_reports.is_attacker, round_end),
        trace=setup.components.selector.trace(state.selector),
        draw_log=None if round_end is None else round_end.dispatch.draw_log,
        fingerprint=f"{state.choices or '-'}:{hash_weights(setup.server)}",
        wall_s=stopwatch.lap_seconds(),
    )


def _make_round_facts(
    setup: Setup, state: ServerState, round_end: RoundEnd | None, arrivals: Arrivals | None
) -> ClientFacts:
    """Return the per-client columns of a round without those of an evaluation.

    Before the first round, when `round_end` and `arrivals` are None, these are the signals that clients registered.
    `setup` has the objects of the run; `state` is the server's state.
    """
    if round_end is None or arrivals is None:
        return list_registered_signals(setup.components, setup.dispatcher.populations)
    client_facts = make_client_columns(round_end, arrivals, setup.true_federation.n_clients)
    client_facts.numeric_columns |= make_epsilon_column(setup.components, round_end, state)
    return client_facts


def max_accuracy(best_so_far: float, new_accuracy: float) -> float:
    """Return the larger of `new_accuracy` and `best_so_far`, which is NaN before the first evaluation."""
    return new_accuracy if math.isnan(best_so_far) else max(best_so_far, new_accuracy)


def hash_weights(server: FlatModel) -> str:
    """Return a hash of the tensors of the model `server`: its parameters, float buffers and integer buffers."""
    weight_digest = hashlib.blake2b(digest_size=6)
    layout = server.layout
    vectors_and_blocks = (
        (server.w, layout.parameters),
        (server.buffers, layout.buffers),
        (server.counters, layout.counters),
    )
    for flat_vector, blocks in vectors_and_blocks:
        host_vector = flat_vector.detach().cpu() if blocks else flat_vector
        for tensor_block in blocks:
            weight_digest.update(tensor_block.make_view(host_vector).contiguous().numpy().tobytes())
    return weight_digest.hexdigest()


def compute_deadline_metrics(round_end: RoundEnd) -> Mapping[str, float]:
    """Return the announced deadline and the duration of a round, in seconds by metric.

    Without a finite announced deadline, its metric is left out. The result is {} if no client was selected or arrived.

    Args:
        round_end: the round after it has closed.
    """
    outcome = round_end.outcome
    if not len(round_end.selection.clients) and not len(round_end.arrived):
        return {}
    announced_metric = {"round/announced_s": float(outcome.announced_s)} if np.isfinite(outcome.announced_s) else {}
    return {**announced_metric, "round/closed_s": float(outcome.train_s)}


def compute_data_metrics(
    federation: Federation, arrivals: Arrivals | None, is_attacker: np.ndarray
) -> Mapping[str, float]:
    """Return metrics of the federation's data before the first round, and of the clients that arrived after a round.

    Args:
        federation: data of the run.
        arrivals: the updates that arrived; None before the first round.
        is_attacker: which clients attack, bool [n_clients].
    """
    if arrivals is None:
        return {f"skew/{metric_name}": metric_value for metric_name, metric_value in federation.skew.items()}
    metric_values = {}
    if federation.targets.single and len(arrivals.clients):
        metric_values["select/class_imbalance"] = class_imbalance(federation.label_counts[arrivals.clients].sum(0))
    # Relative to the sum of all weights, which is not 1 for some aggregators (q-FFL).
    if is_attacker.any() and (weight_sum := float(arrivals.weights.sum())) > 0:
        arrived_attackers = is_attacker[arrivals.clients]
        metric_values["attack/weight"] = float(arrivals.weights[arrived_attackers].sum()) / weight_sum
        metric_values["attack/share"] = float(arrived_attackers.mean())
    return metric_values


def compute_progress_metrics(
    step: int, round_end: RoundEnd | None, arrivals: Arrivals | None, state: ServerState
) -> Mapping[str, float]:
    """Return the metrics of the run's costs and of the round's selection, by name.

    `round_end` is the round after `step` rounds and `arrivals` are its updates; both are None before the first. `state`
    is the server's state.
    """
    progress_metrics = state.spent.metrics()
    if round_end is None or arrivals is None:
        return progress_metrics
    if not math.isnan(arrivals.relative_variance):
        progress_metrics |= {"update/relative_variance": arrivals.relative_variance}
    return progress_metrics | {
        "round/cohort": float(len(round_end.selection.clients)),
        "round/arrived": float(len(arrivals.clients)),
        "round/waited_s": round_end.dispatch.wait_s,
        "round/dropped_nonfinite": float(len(arrivals.dropped_ids)),
        "round/dropped_step": float(arrivals.step_dropped),
        "select/share_max": float(state.times_selected.max() / step),
        "select/share_min": float(state.times_selected.min() / step),
        **compute_deadline_metrics(round_end),
        **(compute_lateness_metrics(round_end) if round_end.carries_jobs else {}),
        **state.uniform.metrics(state.times_selected),
    }
