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
from fedcohort.round.finish import ClosedRound
from fedcohort.round.late_report import compute_lateness_metrics
from fedcohort.round.privacy import compute_privacy_metrics, make_epsilon_column
from fedcohort.round.setup import RunSetup
from fedcohort.training.client_metrics import choose_evaluated_clients, measure_client_metrics, worst_group_accuracy
from fedcohort.types import Ids, RoundReport

NO_CLIENTS: Ids = np.empty(0, np.int64)


def make_round_report(
    run_setup: RunSetup,
    stopwatch: Stopwatch,
    rounds_done: int,
    server_metrics: Mapping[str, float],
    server_state: ServerState,
    closed_round: ClosedRound | None,
    arrivals: Arrivals | None,
) -> RoundReport:
    """Return the report after `rounds_done` rounds, and note the best test accuracy in `server_state`.

    Args:
        run_setup: the objects of the run.
        stopwatch: measures the stages of the round.
        rounds_done: number of finished rounds.
        server_metrics: metrics on the server's data, by name; {} without an evaluation.
        server_state: state of the server.
        closed_round: the round after it has closed; None before the first.
        arrivals: the updates that arrived in the round; None before the first.
    """
    settings, federation, network = run_setup.settings, run_setup.true_federation, run_setup.server.network
    metrics, clients_every = dict(server_metrics), settings.clients_every
    client_facts = _make_round_facts(run_setup, server_state, closed_round, arrivals)
    if clients_every and rounds_done % clients_every == 0:
        with stopwatch.measure_stage_time("evaluate"), run_setup.average.load_average():
            evaluated_ids = choose_evaluated_clients(federation.n_clients, settings.clients_sample, settings.seed)
            client_metrics, metrics_by_client = measure_client_metrics(network, federation, evaluated_ids)
        metrics, client_facts = metrics | client_metrics, client_facts | metrics_by_client
    # The rank correlations take long with many clients, so that only some reports have them.
    if closed_round is not None and (rounds_done % clients_every == 0 if clients_every else server_metrics):
        metrics |= run_setup.score_correlation.measure_correlations(closed_round.selection)
    if "test/acc" in metrics:
        if (test_attributes := federation.server_test_attribute) is not None:
            with stopwatch.measure_stage_time("evaluate"), run_setup.average.load_average():
                metrics["test/acc_worst_group"] = worst_group_accuracy(network, federation.server_test, test_attributes)
        # the best accuracy is NaN before the first evaluation
        metrics["test/acc_best"] = server_state.best_acc = float(np.fmax(server_state.best_acc, metrics["test/acc"]))
    metrics |= compute_data_metrics(federation, arrivals, run_setup.dispatcher.client_reports.is_attacker)
    metrics |= run_setup.components.describe_component_states(server_state)
    metrics |= compute_progress_metrics(rounds_done, closed_round, arrivals, server_state)
    metrics |= compute_privacy_metrics(run_setup.components, closed_round, server_state)
    metrics |= {"energy/joules": server_state.joules} if settings.measures_energy else {}
    return RoundReport(
        rounds_done,
        cohort=NO_CLIENTS if closed_round is None else closed_round.selection.clients,
        arrived=NO_CLIENTS if arrivals is None else arrivals.clients,
        metrics=metrics,
        clients=client_facts | make_attacker_column(run_setup.dispatcher.client_reports.is_attacker, closed_round),
        trace=run_setup.components.selector.trace(server_state.selector),
        draw_log=None if closed_round is None else closed_round.dispatch.draw_log,
        fingerprint=f"{server_state.choices or '-'}:{hash_model_tensors(run_setup.server)}",
        wall_s=stopwatch.take_lap_seconds(),
    )


def _make_round_facts(
    run_setup: RunSetup, server_state: ServerState, closed_round: ClosedRound | None, arrivals: Arrivals | None
) -> ClientFacts:
    """Return the per-client columns of a round without those of an evaluation.

    Before the first round, when `closed_round` and `arrivals` are None, these are the signals that clients sent when
    they registered. `run_setup` has the objects of the run; `server_state` is the server's state.
    """
    if closed_round is None or arrivals is None:
        return list_registered_signals(run_setup.components, run_setup.dispatcher.populations)
    client_facts = make_client_columns(closed_round, arrivals, run_setup.true_federation.n_clients)
    client_facts.numeric_columns |= make_epsilon_column(run_setup.components, closed_round, server_state)
    return client_facts


def hash_model_tensors(global_model: FlatModel) -> str:
    """Return a hash of the tensors of the model `global_model`: its parameters, float buffers and integer buffers."""
    model_digest = hashlib.blake2b(digest_size=6)
    layout = global_model.layout
    flat_vectors, all_blocks = (global_model.w, global_model.buffers, global_model.counters), vars(layout).values()
    for flat_vector, tensor_blocks in zip(flat_vectors, all_blocks, strict=True):
        cpu_vector = flat_vector.detach().cpu() if tensor_blocks else flat_vector
        for tensor_block in tensor_blocks:
            model_digest.update(tensor_block.make_view(cpu_vector).contiguous().numpy().tobytes())
    return model_digest.hexdigest()


def compute_deadline_metrics(closed_round: ClosedRound) -> Mapping[str, float]:
    """Return the announced deadline and the duration of a round, in seconds by metric.

    Without a finite announced deadline, its metric is left out. The result is {} if no client was selected or arrived.

    Args:
        closed_round: the round after it has closed.
    """
    outcome = closed_round.outcome
    if not len(closed_round.selection.clients) and not len(closed_round.arrived_jobs):
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
    rounds_done: int, closed_round: ClosedRound | None, arrivals: Arrivals | None, server_state: ServerState
) -> Mapping[str, float]:
    """Return the metrics of the run's costs and of the round's selection, by name.

    `closed_round` is the round after `rounds_done` rounds and `arrivals` are its updates; both are None before the
    first. `server_state` is the server's state.
    """
    progress_metrics = server_state.spent.metrics()
    if closed_round is None or arrivals is None:
        return progress_metrics
    if not math.isnan(arrivals.relative_update_variance):
        progress_metrics |= {"update/relative_variance": arrivals.relative_update_variance}
    return progress_metrics | {
        "round/cohort": float(len(closed_round.selection.clients)),
        "round/arrived": float(len(arrivals.clients)),
        "round/waited_s": closed_round.dispatch.wait_s,
        "round/dropped_nonfinite": float(len(arrivals.dropped_ids)),
        "round/dropped_step": float(arrivals.is_step_dropped),
        "select/share_max": float(server_state.times_selected.max() / rounds_done),
        "select/share_min": float(server_state.times_selected.min() / rounds_done),
        **compute_deadline_metrics(closed_round),
        **(compute_lateness_metrics(closed_round) if closed_round.carries_late_jobs else {}),
        **server_state.uniform.metrics(server_state.times_selected),
    }
