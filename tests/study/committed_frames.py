"""A study's committed results as the frames that `fedcohort compare` reads."""

from pathlib import Path

import pandas as pd

from fedcohort.results.frame import CLOCK_LIMIT_COLUMN, COST_COLUMNS, RunFrames, read_clock_limit


def read_study(path: Path) -> RunFrames:
    """Return `results.parquet` and `curves.parquet` of the study's folder; its runs have one metric."""
    names = {"cell": "setting", "selector": "condition", "step": "round"}
    runs, curves = (pd.read_parquet(path / f"{name}.parquet").rename(columns=names) for name in ("results", "curves"))
    (metric,) = set(runs["metric"])
    for frame in (runs, curves):
        frame["run"] = frame["setting"] + "/" + frame["condition"] + "/" + frame["seed"].astype(str)
    runs = runs.assign(
        folder="",
        oracle=runs["yardstick"].fillna("") != "",
        **{CLOCK_LIMIT_COLUMN: runs["budget"].map(read_clock_limit)},
    )
    axes = [name for name in COST_COLUMNS if name in curves]
    return RunFrames(runs, curves.rename(columns={"value": metric})[["run", "round", *axes, metric]])
