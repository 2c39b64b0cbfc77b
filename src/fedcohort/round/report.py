"""The last step of a round (docs/architecture.md): its report, with metrics and per-client columns."""

import hashlib
import math
from collections.abc import Mapping

import numpy as np

from fedcohort.data.federation import Federation
from fedcohort.data.skew import class_imbalance
from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.flat import FlatModel
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.collected import Collected
from fedcohort.round.components import Components, Populations, ServerState
from fedcohort.round.finish import Finished
from fedcohort.round.late_report import add_late_columns, late_metrics
from fedcohort.round.privacy import epsilon_column, privacy_metrics
from fedcohort.round.setup import Setup
from fedcohort.signal.base import Static, find_signal
from fedcohort.training.client_metrics import choose_evaluated_clients, client_metrics, worst_group_accuracy
from fedcohort.types import Ids, RoundReport

MAX_SIGNAL_COLUMNS = 400  # of a signal in the per-client table: `class_loss` of up to 133 classes
NO_CLIENTS: Ids = np.empty(0, np.int64)


def make_report(
    setup: Setup,
    stopwatch: Stopwatch,
    step: int,
    server_metrics: Mapping[str, float],
    state: ServerState,
    finished: Finished | None,
    collected: Collected | None,
) -> RoundReport:
    """Return the report after `step` rounds, and note the best test accuracy in `state`.

    Args:
        setup: the objects of the run.
        stopwatch: measures the stages of the round.
        step: number of finished rounds.
        server_metrics: metrics of the server's data, by name; {} without an evaluation.
        state: state of the server.
        finished: the round; None before the first.
        collected: the updates that arrived in it; None before the first round.
    """
    settings, federation, network = setup.settings, setup.true_federation, setup.server.network
    metrics, clients_every = dict(server_metrics), settings.clients_every
    client_table = _start_table(setup, state, finished, collected)
    if clients_every and step % clients_every == 0:
        with stopwatch.stage("evaluate"), setup.average.loaded():
            clients = choose_evaluated_clients(federation.n_clients, settings.clients_sample, settings.seed)
            client_scalars, metrics_by_client = client_metrics(network, federation, clients)
        metrics |= client_scalars
        client_table |= metrics_by_client
    # The rank correlations take long with many clients, so that only some reports have them.
    if finished is not None and (step % clients_every == 0 if clients_every else server_metrics):
        metrics |= setup.score_correlation.measure(finished.selection)
    if "test/acc" in metrics:
        if (attribute := federation.server_test_attribute) is not None:
            with stopwatch.stage("evaluate"), setup.average.loaded():
                metrics["test/acc_worst_group"] = worst_group_accuracy(network, federation.server_test, attribute)
        metrics["test/acc_best"] = state.best_acc = best_accuracy(state.best_acc, metrics["test/acc"])
    metrics |= data_metrics(federation, collected, setup.dispatcher.client_reports.is_attacker)
    metrics |= {**setup.components.state_metrics(state), **progress_metrics(step, finished, collected, state)}
    metrics |= privacy_metrics(setup.components, finished, state)
    metrics |= {"energy/joules": state.joules} if settings.measures_energy else {}
    return RoundReport(
        step,
        cohort=NO_CLIENTS if finished is None else finished.selection.clients,
        arrived=NO_CLIENTS if collected is None else collected.clients,
        metrics=metrics,
        clients=client_table | attacker_column(setup.dispatcher.client_reports.is_attacker, finished),
        trace=setup.components.selector.trace(state.selector),
        draw_log=None if finished is None else finished.dispatched.draw_log,
        fingerprint=f"{state.choices or '-'}:{weights_hash(setup.server)}",
        wall_s=stopwatch.lap_seconds(),
    )


def _start_table(
    setup: Setup, state: ServerState, finished: Finished | None, collected: Collected | None
) -> ClientFacts:
    """Return the columns of a round without those of an evaluation; before the first round, registered signals."""
    if finished is None or collected is None:
        return registered_columns(setup.components, setup.dispatcher.populations)
    table = client_columns(finished, collected, setup.true_federation.n_clients)
    table.numeric_columns |= epsilon_column(setup.components, finished, state)
    return table


def best_accuracy(best_so_far: float, accuracy: float) -> float:
    """Return the larger of two accuracies; `best_so_far` is NaN before the first evaluation."""
    return accuracy if math.isnan(best_so_far) else max(best_so_far, accuracy)


def weights_hash(server: FlatModel) -> str:
    """Return a hash of the global model's tensors, in the order of the network's state."""
    digest = hashlib.blake2b(digest_size=6)
    layout = server.layout
    vectors_and_blocks = (
        (server.w, layout.parameters),
        (server.buffers, layout.buffers),
        (server.counters, layout.counters),
    )
    for vector, blocks in vectors_and_blocks:
        host_vector = vector.detach().cpu() if blocks else vector
        for block in blocks:
            digest.update(block.of(host_vector).contiguous().numpy().tobytes())
    return digest.hexdigest()


def client_columns(finished: Finished, collected: Collected, n_clients: int) -> ClientFacts:
    """Return the per-client columns of a round; n_clients: size of the population."""
    selection, arrived_ids = finished.selection, collected.clients
    started_ids, is_done = finished.dispatched.jobs.client, finished.closing.units_done > 0
    ids_by_flag = {
        "available": finished.dispatched.ready,
        "queried": finished.queried_ids,
        "selected": selection.clients,
        "arrived": arrived_ids,
    }
    table: dict[str, tuple[Ids | None, np.ndarray]] = {
        "units": (started_ids, finished.closing.units_done),
        "finish_s": (started_ids, np.where(is_done, finished.closing.finish_s, np.nan)),
        **{name: (started_ids, values) for name, values in phase_columns(finished.closing).items()},
        "train_loss": (arrived_ids, collected.reports["train_loss"]),
        "weight": (arrived_ids, collected.weights),
    }
    if finished.carries:
        table = add_late_columns(table, finished)
    ranking_columns = {
        "score": selection.scores,
        **{f"part_{name}": score_term for name, score_term in selection.score_terms.items()},
    }
    ranking_columns |= {"reward": selection.reward, "probability": selection.probability}
    table |= {name: (None, values) for name, values in ranking_columns.items() if values is not None}
    signals = {name: (arrived_ids, values) for name, values in collected.reports.items() if name != "train_loss"}
    derived_signals = collected.derived_signals.items()
    signals |= {name: (arrived_ids, values) for name, values in derived_signals if isinstance(values, np.ndarray)}
    signals |= {name: (answer.clients, answer.values) for name, answer in finished.dispatched.queried.answers.items()}
    for signal, (client_ids, values) in signals.items():
        table |= {name: (client_ids, column) for name, column in spread_columns(signal, values).items()}
    return ClientFacts(n_clients, ids_by_flag, table)


def attacker_column(attackers: np.ndarray, finished: Finished | None) -> dict[str, np.ndarray]:
    """Return a column that is 1 for attackers and 0 for other clients, by name; {} without attackers.

    Args:
        attackers: which clients attack, bool [n_clients].
        finished: the round, whose cohort has values; None before the first round, where all clients have one.
    """
    if not attackers.any():
        return {}
    column = attackers.astype(np.float64)
    if finished is not None:
        column[np.setdiff1d(np.arange(len(column)), finished.selection.clients)] = np.nan
    return {"attacker": column}


def phase_columns(outcome: DeadlineOutcome) -> Mapping[str, np.ndarray]:
    """Return, by column name, the requested units of each selected client and the seconds of each phase of its job."""
    return {"units_asked": outcome.units_asked, **{f"{name}_s": seconds for name, seconds in outcome.phase_s.items()}}


def deadline_metrics(finished: Finished) -> Mapping[str, float]:
    """Return the announced deadline, if there is one, and the duration of the round; {} without a cohort."""
    outcome = finished.closing
    if not len(finished.selection.clients) and not len(finished.arrived):
        return {}
    announced_metric = {"round/announced_s": float(outcome.announced_s)} if np.isfinite(outcome.announced_s) else {}
    return {**announced_metric, "round/closed_s": float(outcome.train_s)}


def spread_columns(signal: str, values: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return the columns of a signal by name: `signal_<name>`, or `signal_<name>.0`, `.1`, ... if values are [n, d].

    There are none if d is above `MAX_SIGNAL_COLUMNS`, as a compressed gradient can be as long as the model. A signal of
    pairs of clients has as many columns as the round has clients; the columns of larger rounds are null here.
    """
    if values.ndim == 1:
        return {f"signal_{signal}": values}
    if values.shape[1] > MAX_SIGNAL_COLUMNS:
        return {}
    return {f"signal_{signal}.{i}": column for i, column in enumerate(values.T)}


def registered_columns(components: Components, populations: Populations) -> ClientFacts:
    """Return the signals that clients sent when they registered, as columns."""
    table: dict[str, np.ndarray] = {}
    for name in sorted(components.selector.needs):
        if isinstance(signal := find_signal(name), Static):
            table |= spread_columns(name, populations.reported(name, signal).astype(np.float64))
    return ClientFacts.from_columns(table)


def data_metrics(federation: Federation, collected: Collected | None, is_attacker: np.ndarray) -> Mapping[str, float]:
    """Return metrics of the federation's data before the first round, and of the clients that arrived after a round.

    Args:
        federation: data of the run.
        collected: the updates that arrived; None before the first round.
        is_attacker: which clients lie, bool [n_clients].
    """
    if collected is None:
        return {f"skew/{name}": value for name, value in federation.skew.items()}
    metric_values = {}
    if federation.targets.single and len(collected.clients):
        metric_values["select/class_imbalance"] = class_imbalance(federation.label_counts[collected.clients].sum(0))
    # Relative to the sum of all weights, which is not 1 for some aggregators (q-FFL).
    if is_attacker.any() and (weight_sum := float(collected.weights.sum())) > 0:
        arrived_attackers = is_attacker[collected.clients]
        metric_values["attack/weight"] = float(collected.weights[arrived_attackers].sum()) / weight_sum
        metric_values["attack/share"] = float(arrived_attackers.mean())
    return metric_values


def progress_metrics(
    step: int, finished: Finished | None, collected: Collected | None, state: ServerState
) -> Mapping[str, float]:
    """Return the metrics of the run's costs and of the round's selection, by name."""
    metrics = state.spent.metrics()
    if finished is None or collected is None:
        return metrics
    if not math.isnan(collected.relative_variance):
        metrics |= {"update/relative_variance": collected.relative_variance}
    return metrics | {
        "round/cohort": float(len(finished.selection.clients)),
        "round/arrived": float(len(collected.clients)),
        "round/waited_s": finished.dispatched.waited_s,
        "round/dropped_nonfinite": float(len(collected.dropped_ids)),
        "round/dropped_step": float(collected.step_dropped),
        "select/share_max": float(state.times_selected.max() / step),
        "select/share_min": float(state.times_selected.min() / step),
        **deadline_metrics(finished),
        **(late_metrics(finished) if finished.carries else {}),
        **state.uniform.metrics(state.times_selected),
    }
