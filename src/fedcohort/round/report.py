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
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.client_facts import ClientFacts
from fedcohort.round.components import Components, Populations, ServerState
from fedcohort.round.finish import RoundEnd
from fedcohort.round.late_report import add_late_columns, measure_lateness
from fedcohort.round.privacy import make_epsilon_column, measure_privacy
from fedcohort.round.setup import Setup
from fedcohort.signal.base import Static, find_signal
from fedcohort.training.client_metrics import choose_evaluated_clients, measure_clients, worst_group_accuracy
from fedcohort.types import Ids, RoundReport

MAX_SIGNAL_COLUMNS = 400  # of a signal in the per-client table: `class_loss` of up to 133 classes
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
        server_metrics: metrics of the server's data, by name; {} without an evaluation.
        state: state of the server.
        round_end: the round; None before the first.
        arrivals: the updates that arrived in it; None before the first round.
    """
    settings, federation, network = setup.settings, setup.true_federation, setup.server.network
    metrics, clients_every = dict(server_metrics), settings.clients_every
    client_table = _start_table(setup, state, round_end, arrivals)
    if clients_every and step % clients_every == 0:
        with stopwatch.measure_stage("evaluate"), setup.average.load_average():
            clients = choose_evaluated_clients(federation.n_clients, settings.clients_sample, settings.seed)
            client_scalars, metrics_by_client = measure_clients(network, federation, clients)
        metrics |= client_scalars
        client_table |= metrics_by_client
    # The rank correlations take long with many clients, so that only some reports have them.
    if round_end is not None and (step % clients_every == 0 if clients_every else server_metrics):
        metrics |= setup.score_correlation.measure_correlations(round_end.selection)
    if "test/acc" in metrics:
        if (attribute := federation.server_test_attribute) is not None:
            with stopwatch.measure_stage("evaluate"), setup.average.load_average():
                metrics["test/acc_worst_group"] = worst_group_accuracy(network, federation.server_test, attribute)
        metrics["test/acc_best"] = state.best_acc = max_accuracy(state.best_acc, metrics["test/acc"])
    metrics |= measure_data(federation, arrivals, setup.dispatcher.client_reports.is_attacker)
    metrics |= {**setup.components.state_metrics(state), **measure_progress(step, round_end, arrivals, state)}
    metrics |= measure_privacy(setup.components, round_end, state)
    metrics |= {"energy/joules": state.joules} if settings.measures_energy else {}
    return RoundReport(
        step,
        cohort=NO_CLIENTS if round_end is None else round_end.selection.clients,
        arrived=NO_CLIENTS if arrivals is None else arrivals.clients,
        metrics=metrics,
        clients=client_table | mark_attackers(setup.dispatcher.client_reports.is_attacker, round_end),
        trace=setup.components.selector.trace(state.selector),
        draw_log=None if round_end is None else round_end.dispatch.draw_log,
        fingerprint=f"{state.choices or '-'}:{hash_weights(setup.server)}",
        wall_s=stopwatch.lap_seconds(),
    )


def _start_table(
    setup: Setup, state: ServerState, round_end: RoundEnd | None, arrivals: Arrivals | None
) -> ClientFacts:
    """Return the columns of a round without those of an evaluation; before the first round, registered signals."""
    if round_end is None or arrivals is None:
        return list_registered(setup.components, setup.dispatcher.populations)
    table = make_client_columns(round_end, arrivals, setup.true_federation.n_clients)
    table.numeric_columns |= make_epsilon_column(setup.components, round_end, state)
    return table


def max_accuracy(best_so_far: float, accuracy: float) -> float:
    """Return the larger of two accuracies; `best_so_far` is NaN before the first evaluation."""
    return accuracy if math.isnan(best_so_far) else max(best_so_far, accuracy)


def hash_weights(server: FlatModel) -> str:
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
            digest.update(block.view_of(host_vector).contiguous().numpy().tobytes())
    return digest.hexdigest()


def make_client_columns(round_end: RoundEnd, arrivals: Arrivals, n_clients: int) -> ClientFacts:
    """Return the per-client columns of a round; n_clients: size of the population."""
    selection, arrived_ids = round_end.selection, arrivals.clients
    started_ids, is_done = round_end.dispatch.jobs.client, round_end.outcome.units_done > 0
    ids_by_flag = {
        "available": round_end.dispatch.ready_ids,
        "queried": round_end.queried_ids,
        "selected": selection.clients,
        "arrived": arrived_ids,
    }
    table: dict[str, tuple[Ids | None, np.ndarray]] = {
        "units": (started_ids, round_end.outcome.units_done),
        "finish_s": (started_ids, np.where(is_done, round_end.outcome.finish_s, np.nan)),
        **{name: (started_ids, values) for name, values in name_phase_columns(round_end.outcome).items()},
        "train_loss": (arrived_ids, arrivals.reports["train_loss"]),
        "weight": (arrived_ids, arrivals.weights),
    }
    if round_end.carries_jobs:
        table = add_late_columns(table, round_end)
    ranking_columns = {
        "score": selection.scores,
        **{f"part_{name}": score_term for name, score_term in selection.score_terms.items()},
    }
    ranking_columns |= {"reward": selection.reward, "probability": selection.probability}
    table |= {name: (None, values) for name, values in ranking_columns.items() if values is not None}
    signals = {name: (arrived_ids, values) for name, values in arrivals.reports.items() if name != "train_loss"}
    derived_signals = arrivals.derived_signals.items()
    signals |= {name: (arrived_ids, values) for name, values in derived_signals if isinstance(values, np.ndarray)}
    signals |= {name: (answer.clients, answer.values) for name, answer in round_end.dispatch.queries.answers.items()}
    for signal, (client_ids, values) in signals.items():
        table |= {name: (client_ids, column) for name, column in spread_signal(signal, values).items()}
    return ClientFacts(n_clients, ids_by_flag, table)


def mark_attackers(attackers: np.ndarray, round_end: RoundEnd | None) -> dict[str, np.ndarray]:
    """Return a column that is 1 for attackers and 0 for other clients, by name; {} without attackers.

    Args:
        attackers: which clients attack, bool [n_clients].
        round_end: the round, whose cohort has values; None before the first round, where all clients have one.
    """
    if not attackers.any():
        return {}
    column = attackers.astype(np.float64)
    if round_end is not None:
        column[np.setdiff1d(np.arange(len(column)), round_end.selection.clients)] = np.nan
    return {"attacker": column}


def name_phase_columns(outcome: DeadlineOutcome) -> Mapping[str, np.ndarray]:
    """Return, by column name, the requested units of each selected client and the seconds of each phase of its job."""
    return {"units_asked": outcome.units_asked, **{f"{name}_s": seconds for name, seconds in outcome.phase_s.items()}}


def measure_deadline(round_end: RoundEnd) -> Mapping[str, float]:
    """Return the announced deadline, if there is one, and the duration of the round; {} without a cohort."""
    outcome = round_end.outcome
    if not len(round_end.selection.clients) and not len(round_end.arrived):
        return {}
    announced_metric = {"round/announced_s": float(outcome.announced_s)} if np.isfinite(outcome.announced_s) else {}
    return {**announced_metric, "round/closed_s": float(outcome.train_s)}


def spread_signal(signal: str, values: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return the columns of a signal by name: `signal_<name>`, or `signal_<name>.0`, `.1`, ... if values are [n, d].

    There are none if d is above `MAX_SIGNAL_COLUMNS`, as a compressed gradient can be as long as the model. A signal of
    pairs of clients has as many columns as the round has clients; the columns of larger rounds are null here.
    """
    if values.ndim == 1:
        return {f"signal_{signal}": values}
    if values.shape[1] > MAX_SIGNAL_COLUMNS:
        return {}
    return {f"signal_{signal}.{i}": column for i, column in enumerate(values.T)}


def list_registered(components: Components, populations: Populations) -> ClientFacts:
    """Return the signals that clients sent when they registered, as columns."""
    table: dict[str, np.ndarray] = {}
    for name in sorted(components.selector.needs):
        if isinstance(signal := find_signal(name), Static):
            table |= spread_signal(name, populations.read_reported(name, signal).astype(np.float64))
    return ClientFacts.from_columns(table)


def measure_data(federation: Federation, arrivals: Arrivals | None, is_attacker: np.ndarray) -> Mapping[str, float]:
    """Return metrics of the federation's data before the first round, and of the clients that arrived after a round.

    Args:
        federation: data of the run.
        arrivals: the updates that arrived; None before the first round.
        is_attacker: which clients lie, bool [n_clients].
    """
    if arrivals is None:
        return {f"skew/{name}": value for name, value in federation.skew.items()}
    metric_values = {}
    if federation.targets.single and len(arrivals.clients):
        metric_values["select/class_imbalance"] = class_imbalance(federation.label_counts[arrivals.clients].sum(0))
    # Relative to the sum of all weights, which is not 1 for some aggregators (q-FFL).
    if is_attacker.any() and (weight_sum := float(arrivals.weights.sum())) > 0:
        arrived_attackers = is_attacker[arrivals.clients]
        metric_values["attack/weight"] = float(arrivals.weights[arrived_attackers].sum()) / weight_sum
        metric_values["attack/share"] = float(arrived_attackers.mean())
    return metric_values


def measure_progress(
    step: int, round_end: RoundEnd | None, arrivals: Arrivals | None, state: ServerState
) -> Mapping[str, float]:
    """Return the metrics of the run's costs and of the round's selection, by name."""
    metrics = state.spent.metrics()
    if round_end is None or arrivals is None:
        return metrics
    if not math.isnan(arrivals.relative_variance):
        metrics |= {"update/relative_variance": arrivals.relative_variance}
    return metrics | {
        "round/cohort": float(len(round_end.selection.clients)),
        "round/arrived": float(len(arrivals.clients)),
        "round/waited_s": round_end.dispatch.wait_s,
        "round/dropped_nonfinite": float(len(arrivals.dropped_ids)),
        "round/dropped_step": float(arrivals.step_dropped),
        "select/share_max": float(state.times_selected.max() / step),
        "select/share_min": float(state.times_selected.min() / step),
        **measure_deadline(round_end),
        **(measure_lateness(round_end) if round_end.carries_jobs else {}),
        **state.uniform.metrics(state.times_selected),
    }
