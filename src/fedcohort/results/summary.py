"""The content of `summary.json`: the results, costs and provenance of a run."""

import time
from typing import Any

import numpy as np

from fedcohort.record import metadata
from fedcohort.record.history import MAIN_METRIC, History, wall_s
from fedcohort.record.observer import RunInfo
from fedcohort.record.provenance import describe_forced
from fedcohort.results.frame import EVALUATIONS
from fedcohort.results.run_warnings import list_rounds_with_update, list_warnings
from fedcohort.results.target import find_crossing
from fedcohort.round.budget import Spent

BEST_METRICS = (MAIN_METRIC, "server_val/acc", "clients/acc_mean", "clients/acc_worst5")
MEAN_METRICS = ("attack/weight", "attack/share")  # metrics whose mean over the rounds is reported
CLOCK, DOWN, UP = "time/virtual_s", "comm/down_bytes", "comm/up_bytes"
SHARES = (0.8, 0.9, 0.95)  # shares of the best accuracy


def summarise(info: RunInfo, history: History, status: str, now_ms: int | None = None) -> dict[str, Any]:
    """Return the content of `summary.json`.

    `final` has the last value of each metric that was measured. `earlier` has the round of each evaluation that the
    last round did not make. `means` has the mean of a few metrics over all rounds.

    Args:
        info: the run.
        history: its rounds.
        status: how the run ended.
        now_ms: when the run ended, milliseconds since 1970; None for now.
    """
    final = history.final
    last = {name: steps[-1] for name, steps in history.measured.items() if name.startswith(EVALUATIONS)}
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    spent = Spent().after_round(history.steps[-1] if history.steps else 0, final)
    return {
        "status": status,
        "name": info.name,
        "folder": str(info.folder),
        "rounds": history.steps[-1] if history.steps else 0,
        "rounds_asked": info.rounds,
        "ended_by": info.budget.list_reached(spent) if status == "finished" else [],
        "end": info.budget.describe_reached(spent) if status == "finished" else "",
        "rounds_without_update": sum(step > 0 for step in history.steps) - len(list_rounds_with_update(history)),
        "warnings": list_warnings(info, history),
        "final": final,
        "means": {name: float(history.metrics[name].mean()) for name in MEAN_METRICS if name in final},
        "earlier": {name: step for name, step in last.items() if step < history.steps[-1]},
        "best": {name: best for name in BEST_METRICS if (best := _best(history, name))},
        "reached": shares_of_best(history),
        "fingerprint": history.fingerprints[-1] if history.fingerprints else None,
        "wall_s": wall_s(metadata.read_start_times(info.folder), [*history.times, now]),
        "virtual_s": final.get("time/virtual_s"),
        "bytes": {way: final.get(f"comm/{way}_bytes") for way in ("down", "up", "probe")},
        "client_flops": final.get("comp/client_flops"),
        "server_flops": final.get("comp/server_flops"),
        "choices": dict(info.choices),
        "tags": {key: value for key, value in info.tags.items() if key != "tracking"},
        "seed": info.seed,
        "config_hash": info.config_hash,
        "commit": info.commit,
        "dirty": info.dirty,
        "versions": dict(info.versions),
        "starts": [dict(start) for start in info.starts],
        "forced": describe_forced(info.starts),
    }


def _best(history: History, name: str) -> dict[str, float] | None:
    """Return the highest value of an accuracy and the first round that reached it; None if it was not measured."""
    if name not in history.metrics or history.metrics[name].isna().all():
        return None
    values = history.metrics[name].to_numpy()
    index = int(np.nanargmax(values))
    return {"value": float(values[index]), "round": history.steps[index]}


def shares_of_best(history: History) -> list[dict[str, Any]]:
    """Return, for each of `SHARES`, the first round with that share of the run's best test accuracy, and its cost.

    The list is empty if the test accuracy was never measured. `virtual_s` is None if no time passes in the run, and
    `bytes` is None if they were not logged.
    """
    metrics = history.metrics
    values = metrics[MAIN_METRIC].to_numpy() if MAIN_METRIC in metrics else np.empty(0)
    if not np.isfinite(values).any() or np.nanmax(values) <= 0:
        return []
    timed = CLOCK in metrics and bool((metrics[CLOCK] > 0).any())
    reached = []
    for share in SHARES:
        target = share * float(np.nanmax(values))
        index = find_crossing(history.steps, values, target)
        if index is None:  # the untrained model, which never counts, is the best
            continue
        row = metrics.iloc[index]
        traffic = float(row[DOWN] + row[UP]) if {DOWN, UP} <= set(metrics.columns) else float("nan")
        clock = float(row[CLOCK]) if timed else float("nan")
        cost = {"virtual_s": clock, "bytes": traffic}
        finite = {name: value if np.isfinite(value) else None for name, value in cost.items()}
        reached.append({"share": share, "target": target, "round": history.steps[index], **finite})
    return reached
