"""A study's committed results as the frames that `fedcohort compare` reads."""

from pathlib import Path

import pandas as pd

from fedcohort.results.frame import AXES, CLOCK_COLUMN, Frames, clock_of_budget


def read_study(path: Path) -> Frames:
    """Return `results.parquet` and `curves.parquet` of the study's folder; its runs have one metric."""
    names = {"cell": "setting", "selector": "condition", "step": "round"}
    runs, curves = (pd.read_parquet(path / f"{name}.parquet").rename(columns=names) for name in ("results", "curves"))
    (metric,) = set(runs["metric"])
    for frame in (runs, curves):
        frame["run"] = frame["setting"] + "/" + frame["condition"] + "/" + frame["seed"].astype(str)
    runs = runs.assign(
        folder="", oracle=runs["yardstick"].fillna("") != "", **{CLOCK_COLUMN: runs["budget"].map(clock_of_budget)}
    )
    axes = [name for name in AXES if name in curves]
    return Frames(runs, curves.rename(columns={"value": metric})[["run", "round", *axes, metric]])
