"""The content of `summary.json`: the results, costs and provenance of a run, and warnings about it.

A warning says that the numbers say little about the method: no update moved the model, or training diverged.
"""

import math
import time
from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Float64

from fedcohort.record import metadata
from fedcohort.record.history import MAIN_METRIC, History, wall_s
from fedcohort.record.observer import RunInfo
from fedcohort.record.provenance import list_forced_starts
from fedcohort.results.frame import EVALUATION_PREFIXES, list_evaluations, read_curve
from fedcohort.results.target import find_costs_to_target
from fedcohort.round.budget import BudgetUse

BEST_METRICS = (MAIN_METRIC, "server_val/acc", "clients/acc_mean", "clients/acc_worst5")
MEAN_METRICS = ("attack/weight", "attack/share")  # metrics whose mean over the rounds is reported
CLOCK_METRIC, DOWN_METRIC, UP_METRIC = "time/virtual_s", "comm/down_bytes", "comm/up_bytes"
ACCURACY_SHARES = (0.8, 0.9, 0.95)  # shares of the best accuracy
LOSS_RISE_FACTOR = 10  # factor over the untrained model's loss above which a warning is given
MIN_SELECTIONS = 3  # selections without an arrival after which a client is reported
MAX_NAMED_CLIENTS = 3  # clients that the warning names
LOSS_METRICS = ("test/loss", "server_val/loss", "clients/loss_mean")


def summarise_run(info: RunInfo, history: History, status: str, now_ms: int | None = None) -> dict[str, Any]:
    """Return the content of `summary.json`.

    `final` has the last value of each metric that was measured. `earlier` has the round of this value, for metrics that
    the last round did not measure. `means` has the mean of a few metrics over all rounds. `clients` has the
    number of all clients, and of those that were selected at least once. `warnings` has one line for each reason why
    the numbers say little about the method.

    Args:
        info: metadata of the run.
        history: metrics of the run's rounds.
        status: how the run ended, such as "finished".
        now_ms: time at which the run ended, in milliseconds since 1970; None for the current time.
    """
    final_metrics = history.last_metrics
    last_rounds = {name: steps[-1] for name, steps in history.measured.items() if name.startswith(EVALUATION_PREFIXES)}
    current_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    budget_use = BudgetUse().add_round_metrics(history.steps[-1] if history.steps else 0, final_metrics)
    return {
        "status": status,
        "name": info.name,
        "folder": str(info.folder),
        "rounds": history.steps[-1] if history.steps else 0,
        "rounds_asked": info.rounds,
        "ended_by": info.budget.list_reached_limits(budget_use) if status == "finished" else [],
        "end": info.budget.describe_reached_limits(budget_use) if status == "finished" else "",
        "clients": {"all": len(info.n_train), "selected": len(set().union(*history.cohorts))},
        "rounds_without_update": sum(r > 0 for r in history.steps) - len(list_rounds_with_update(history)),
        "warnings": [
            *(_warn_no_update(info, history) or _warn_never_arrived(info, history)),
            *(_warn_diverged(history) or _warn_loss_rose(history)),
        ],
        "final": final_metrics,
        "means": {name: _average_numbers(history.values[name]) for name in MEAN_METRICS if name in final_metrics},
        "earlier": {name: r for name, r in last_rounds.items() if r < history.steps[-1]},
        "best": {name: best_value for name in BEST_METRICS if (best_value := _find_best_value(history, name))},
        "reached": list_reached_shares(history),
        "fingerprint": history.fingerprints[-1] if history.fingerprints else None,
        "wall_s": wall_s(metadata.read_start_times(info.folder), [*history.times, current_ms]),
        "virtual_s": final_metrics.get("time/virtual_s"),
        "bytes": {traffic: final_metrics.get(f"comm/{traffic}_bytes") for traffic in ("down", "up", "probe")},
        "client_flops": final_metrics.get("comp/client_flops"),
        "server_flops": final_metrics.get("comp/server_flops"),
        "choices": dict(info.choices),
        "tags": {tag_name: value for tag_name, value in info.tags.items() if tag_name != "tracking"},
        "seed": info.seed,
        "config_hash": info.config_hash,
        "commit": info.commit,
        "dirty": info.dirty,
        "versions": dict(info.versions),
        "starts": [dict(process_start) for process_start in info.starts],
        "forced": list_forced_starts(info.starts),
    }


def _find_best_value(history: History, metric_name: str) -> dict[str, float] | None:
    """Return `value` and `round` of the first maximum of the metric `metric_name` in `history`; None without values."""
    values = history.values.get(metric_name, np.array([]))
    best = None if np.isnan(values).all() else int(np.nanargmax(values))
    return None if best is None else {"value": float(values[best]), "round": history.steps[best]}


def _average_numbers(values: Float64[np.ndarray, "steps"]) -> float:
    """Return the mean of the `values` that are numbers; NaN if none is."""
    n_numbers = np.count_nonzero(~np.isnan(values))
    return float(np.nansum(values) / n_numbers) if n_numbers else math.nan


def list_reached_shares(history: History) -> list[dict[str, Any]]:
    """Return the first round that reached each of the `ACCURACY_SHARES` of the best test accuracy, and its cost.

    The list is empty if the test accuracy was never measured, or never above 0. A share that only the untrained model
    reached is left out. `history` is the run's journal.

    Returns:
        Dictionaries with the keys `share`, `target` (the accuracy), `round`, `virtual_s` and `bytes`. `virtual_s` is
        None if no virtual time passes in the run, and `bytes` is None if bytes were not logged.
    """
    if MAIN_METRIC not in history.measured:
        return []
    run = list_evaluations(read_curve(history, [MAIN_METRIC]), MAIN_METRIC, ("round", "virtual_s", "bytes"))
    best_accuracy = float(np.nanmax(run.values, initial=0.0))
    reached_shares = []
    for share in ACCURACY_SHARES if best_accuracy > 0 else ():
        costs = find_costs_to_target(run, share * best_accuracy)
        if costs["round"].is_met:  # not if the untrained model, which never counts, is the best
            reached_shares.append(
                {
                    "share": share,
                    "target": share * best_accuracy,
                    "round": int(costs["round"].value),
                    "virtual_s": costs["virtual_s"].value if run.costs["virtual_s"].any() else None,
                    "bytes": costs["bytes"].value if DOWN_METRIC in history.values else None,
                }
            )
    return reached_shares


def _warn_never_arrived(info: RunInfo, history: History) -> list[str]:
    """Return a warning on clients that were selected three times or more and never arrived; [] without any.

    `info` has the options of the run, and `history` its journal.
    """
    selection_counts = Counter(client for cohort in history.cohorts for client in cohort)
    arrivals = {client for clients in history.arrived for client in clients}
    clients = sorted(client for client, n in selection_counts.items() if n >= MIN_SELECTIONS and client not in arrivals)
    if not clients:
        return []
    names = f"{', '.join(map(str, clients[:MAX_NAMED_CLIENTS]))}{', ...' if len(clients) > MAX_NAMED_CLIENTS else ''}"
    reason = f"they were late (deadline={info.choices.get('deadline', '?')})"
    reason += ", or their updates were dropped" if _has_dropped_updates(history) else ""
    return [
        f"{len(clients)} of {len(info.n_train)} clients were selected {MIN_SELECTIONS} times or more and never arrived "
        f"({names}): {reason}; the model has learned nothing from their data"
    ]


def _warn_diverged(history: History) -> list[str]:
    """Return a warning on a last loss in `history` that is not finite, as after divergence; [] if all are finite."""
    for metric in LOSS_METRICS:
        if not math.isfinite(loss := history.last_metrics.get(metric, 0.0)):
            finite_rounds = np.array(history.steps)[np.isfinite(history.values[metric])]
            since_text = f"last finite at round {finite_rounds[-1]}" if len(finite_rounds) else "never finite"
            return [f"the model has diverged: {metric} is {loss} at round {history.measured[metric][-1]}, {since_text}"]
    return []


def _warn_loss_rose(history: History) -> list[str]:
    """Return a warning on a last loss in `history` above ten times the untrained model's; [] without one."""
    for metric in LOSS_METRICS:
        if metric in history.last_metrics and (rounds := history.measured[metric])[0] == 0:
            initial_loss, final_loss = float(history.values[metric][0]), history.last_metrics[metric]
            if final_loss > LOSS_RISE_FACTOR * initial_loss > 0:
                loss_rise_text = (
                    f"{metric} is {final_loss:.3g} at round {rounds[-1]}, {final_loss / initial_loss:.0f} times"
                )
                advice_text = "standardised inputs (with dataset=folder: dataset.standardise=train)"
                return [f"{loss_rise_text} the untrained model's: a smaller client.lr may help, or {advice_text}"]
    return []


def _warn_no_update(info: RunInfo, history: History) -> list[str]:
    """Return a warning on a run in which no update changed the model, with the reasons; [] for other runs.

    `info` has the options of the run, and `history` its journal.
    """
    rounds = [r for r in history.steps if r]
    if not rounds:
        return []
    if list_rounds_with_update(history):
        weight_hashes = {fingerprint.rpartition(":")[2] for fingerprint in history.fingerprints}
        is_model_unchanged = len(weight_hashes) == 1 and len(history.steps) > len(rounds)  # step 0 is among them
        return ["the model is still the initial model: no update changed it"] if is_model_unchanged else []
    choices = {group: f"{group}={info.choices.get(group, '?')}" for group in ("availability", "selector", "deadline")}
    no_arrival_text = f"no selected client finished in time ({choices['deadline']})"
    has_dropped_updates = _has_dropped_updates(history)
    applies_by_cause = {
        "clients' updates were dropped because they were not finite or longer than update_limit": has_dropped_updates,
        "the server's steps were dropped because they were not finite or longer than update_limit (a smaller server.lr "
        "may help)": any(map(len, history.arrived)),
    }
    cause_texts = [cause_text for cause_text, is_cause in applies_by_cause.items() if is_cause] or [no_arrival_text]
    if not any(map(len, history.cohorts)):
        cause_texts = [f"no client was selected ({choices['availability']}, {choices['selector']})"]
    return [
        f"no update was applied in {'the only round' if len(rounds) == 1 else f'any of the {len(rounds)} rounds'}, "
        f"the model is the untrained one: {', and '.join(cause_texts)}"
    ]


def _has_dropped_updates(history: History) -> bool:
    """Return whether, by the journal `history`, the update of some client was dropped in some round."""
    return bool(np.nansum(history.values.get("round/dropped_nonfinite", np.array([]))) > 0)


def list_rounds_with_update(history: History) -> list[int]:
    """Return the rounds of `history` in which an update arrived and the server's step was applied."""
    dropped_steps = history.values.get("round/dropped_step", np.zeros(len(history.steps)))
    arrivals = zip(history.steps, history.arrived, dropped_steps, strict=True)
    return [r for r, arrived_clients, n_dropped in arrivals if r and len(arrived_clients) and not n_dropped > 0]
