"""Helpers for tests of studies: a tiny study that runs, and results with given numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from config_options import CONFIGS
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.results.run import Evaluations
from fedcohort.study.definition import Study, list_conditions
from fedcohort.study.definition_file import load_study
from fedcohort.study.result_files import DONE
from fedcohort.study.results import Results
from fedcohort.study.results import load_results as load_results
from fedcohort.study.runner import StudyRunner
from fedcohort.study.tasks import RunOutcome, RunTask, run_tasks

SMALL_STUDY: dict[str, Any] = {
    "title": "A tiny study",
    "question": "Does it run?",
    "common": ["dataset=digits", "clients=12", "cohort=4", "rounds=3", "model=logreg", "client.epochs=1"],
    "baseline": "random",
    "methods": ["round_robin"],
    "settings": {
        "equal": {"overrides": ["heterogeneity=iid"], "target": 0.5},
        "noisy": {"overrides": ["heterogeneity=noise_bimodal"], "bounds": {"clean": ["heterogeneity=iid"]}},
    },
    "seeds": [0, 1],
}
TUNING: dict[str, Any] = {
    "trials": 4,
    "seeds": [7, 8],
    "settings": ["equal"],
    "space": {"ucb_cs": {"selector.discount": {"low": 0.0, "high": 1.0}, "selector.tie": ["random", "id"]}},
}


def write_study(folder: Path, **changes: object) -> Study:
    """Write study.yaml of the tiny study with `changes`, and load it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump({**SMALL_STUDY, **changes}, sort_keys=False))
    return load_study(folder)


def run_study(study: Study, logs: Path, seeds: Sequence[int] | None = None, log: list[str] | None = None) -> Results:
    """Run the study like `fedcohort study run`; append its messages to `log`."""
    lines = [] if log is None else log
    work = StudyRunner(study, load_results(study), CONFIGS, logs, False, lines.append)
    work.run_conditions(list_conditions(study), seeds or study.seeds)
    return load_results(study)


def make_curve(steps: object, value: object, virtual_s: object, n_bytes: object) -> Evaluations:
    """Return the curve of a run from the columns of `curves.parquet`."""
    columns = [np.array(column, dtype=float) for column in (steps, value, virtual_s, n_bytes)]
    return Evaluations(columns[0], columns[1], {"virtual_s": columns[2], "bytes": columns[3]})


def make_results(study: Study, late_means: Mapping[str, Mapping[str, Sequence[float]]]) -> Results:
    """Return results of runs with given late means by setting, method and seed."""
    results = Results(study.folder)
    for cell, methods in late_means.items():
        for row, values in methods.items():
            for seed, value in enumerate(values):
                curve = make_curve([0, 1], [0.1, value], [0, 60], [0, 1e6])
                facts = {"cell": cell, "selector": row, "seed": seed, "status": DONE, "metric": study.metric}
                facts |= {"virtual_s": 60.0, "bytes": 1e6, "client_flops": 2.0, "wall_s": 3.0, "commit": "c0ffee"}
                facts |= {"probe_bytes": 500.0, "server_flops": 7.0, "config_hash": f"{study.name}/{cell}/{row}"}
                results.store_run(facts, curve)
        results.measure_setting(study, cell)
    return results


def run_task(task: RunTask) -> RunOutcome:
    """Run one task in this process."""
    ((_, outcome),) = run_tasks([task], LaunchOptions())
    return outcome
