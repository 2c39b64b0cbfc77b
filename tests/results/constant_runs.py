"""Frames of runs whose metric is constant."""

from typing import Any

import pandas as pd

from fedcohort.results.frame import RunFrames

ACC = "test/acc"


def make_frames(results: dict[tuple[str, str], list[float]], rounds: int = 6, **columns: Any) -> RunFrames:
    """Return runs with a constant metric, one for each seed; results: results by (setting, condition)."""
    runs, curves = [], []
    for (setting, condition), values in results.items():
        for seed, value in enumerate(values):
            run = f"{setting}/{condition}/{seed}"
            facts = {"oracle": condition.startswith("oracle"), "virtual_s": 10.0, "bytes": 2.0, "client_flops": 0.0}
            runs.append({"run": run, "setting": setting, "condition": condition, "seed": seed, **facts, **columns})
            curves += [
                {"run": run, "round": step, "virtual_s": float(step), ACC: value if step else 0.1}
                for step in range(rounds + 1)
            ]
    return RunFrames(pd.DataFrame(runs), pd.DataFrame(curves))
