"""Measure a run for a study: the curve of its metric, its result, its costs and its origin."""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcohort.errors import OptionError
from fedcohort.record import metadata, provenance, tags
from fedcohort.record.history import History, read_history
from fedcohort.results.compare import Options
from fedcohort.results.compare_cost import measure_costs
from fedcohort.results.frame import METRICS_BY_COST, list_evaluations, read_curve
from fedcohort.results.run import Evaluations, result_of_run
from fedcohort.results.target import Cost, Target
from fedcohort.round.score_correlation import split_metric_name
from fedcohort.study.result_files import Row

N_COMPARED_ROUNDS = 8  # whose behaviour is compared by `compare_code.py`
LOSS_METRIC, ATTACK_METRIC, PRIVACY_METRIC = "server_val/loss", "attack/share", "privacy/epsilon"
CURVE_COSTS = ("virtual_s", "bytes")  # costs that `curves.parquet` has


def make_row(curve: Evaluations, options: Options, target: Target | None = None, target_value: float = math.nan) -> Row:
    """Return the columns of `results.parquet` that follow from a run's curve: results and cost to target.

    `late` is the result by the study's options, `last` and `best` are single evaluations. `<axis>_spent`, which is not
    written, is the cost at the horizon.

    Args:
        curve: the evaluations of the run.
        options: the study's rules of comparison, which define the result.
        target: the setting's target; None for no target.
        target_value: value of the target in the metric's unit; NaN if it is not known.
    """
    trained_values = curve.values[curve.steps > 0]
    row = {
        "late": result_of_run(curve, options.result, options.horizon, options.sign),
        "last": float((trained_values if len(trained_values) else curve.values)[-1]) if len(curve.values) else math.nan,
        "best": options.sign * float((options.sign * curve.values).max()) if len(curve.values) else math.nan,
        "target": target_value,
    }
    target_costs = measure_costs(curve, target_value, options, target or Target())
    for cost_name in ("rounds", "virtual_s", "bytes"):
        cost = target_costs.get(cost_name, Cost(math.nan, is_met=False))  # without an evaluation up to the horizon
        row |= {f"{cost_name}_to_target": cost.value if cost.is_met else math.nan, f"{cost_name}_spent": cost.value}
    return row


def measure_run_folder(run_folder: Path, metric: str) -> tuple[Row, Evaluations]:
    """Return columns of `results.parquet` for the run in `run_folder`, and its curve of `metric`.

    The columns are those of its costs and its origin, such as commit and versions.

    Raises `OptionError` if the run has no such metric, and `CheckpointError` if the folder holds no run.
    """
    history = read_history(run_folder)
    if metric not in history.measured:
        raise OptionError(f"metric must be one of {', '.join(history.measured)}, got {metric!r}")
    curve = list_evaluations(read_curve(history, [metric]), metric, CURVE_COSTS)
    start_record: Mapping[str, Any] = provenance.read_start_records(run_folder)[-1]
    run_facts = {
        "commit": start_record["commit"],
        "dirty": bool(start_record["dirty"]),
        "sources": start_record["sources"],
        "versions": json.dumps(start_record["versions"], sort_keys=True),
        "processor": start_record.get("processor", ""),
        "rounds": int(history.steps[-1]),
        "fingerprint": history.fingerprints[-1],
        "behaviour": compute_run_fingerprint(history),
        "yardstick": metadata.load_info(run_folder).tags.get(tags.ORACLE_TAG, ""),
        "follows": json.dumps(average_correlations(history), sort_keys=True),
        "attack_share": float(history.metrics[ATTACK_METRIC].mean()) if ATTACK_METRIC in history.metrics else math.nan,
        "epsilon": float(history.last_metrics.get(PRIVACY_METRIC, math.nan)),
        **{
            cost_name: sum(history.last_metrics.get(m, 0.0) for m in metrics)
            for cost_name, metrics in METRICS_BY_COST.items()
        },
    }
    return run_facts, curve


def average_correlations(history: History) -> dict[str, float]:
    """Return the means over rounds of the rank correlations of scores with facts of the clients, to four decimals.

    The keys are `<score>_<fact>`, as "reward_noise" (`round/score_correlation.py`). A selector without scores has none.
    `history` is the journal of a run.
    """
    names = {str(name): split_metric_name(str(name)) for name in history.metrics}
    means = {"_".join(parts): float(history.metrics[name].mean()) for name, parts in names.items() if parts is not None}
    return {name: round(rho, 4) for name, rho in means.items() if math.isfinite(rho)}


def compute_run_fingerprint(history: History) -> str:
    """Return the fingerprint of a run's first 8 rounds, by which versions of the code are compared.

    It is `<digest of cohorts and arrivals>:<losses>`: four digits of `server_val/loss` at each evaluation, that of
    round 0 included. `history` is the run's journal.
    """
    round_facts = zip(history.steps, history.cohorts, history.arrived, strict=True)
    behaviour_text = json.dumps(
        [[r, list(cohort), list(arrivals)] for r, cohort, arrivals in round_facts if 0 < r <= N_COMPARED_ROUNDS]
    )
    loss_rounds = [r for r in history.measured.get(LOSS_METRIC, ()) if r <= N_COMPARED_ROUNDS]
    losses_text = ",".join(f"{history.metrics[LOSS_METRIC].loc[r]:.4g}" for r in loss_rounds)
    return f"{hashlib.blake2b(behaviour_text.encode(), digest_size=6).hexdigest()}:{losses_text}"
