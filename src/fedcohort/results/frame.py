"""Two tidy frames, one of runs and one of curves, and the readers that make them.

The frame of runs has one row per run. A reader leaves out columns that its source does not hold.

    run             id that joins both frames: name of the folder, MLflow's run id, or study/setting/condition/seed.
    study           name of the study; "" without one.
    setting         partition, cohort size, noise and so on; "" if the source does not group its runs.
    condition       method, or a variant of one; the choice of `selector` if the source names none.
    seed            integer.
    folder          run folder; "" without one.
    status          finished, refused, failed, or the status in `status.json` of a run that did not end.
    commit, dirty   code of the last start.
    config_hash     hash of the options that decide results, without the seed.
    budget          text that describes where the run ends.
    clock_s         virtual seconds at which the budget ends the run; NaN without such a limit.
    oracle          whether the method reads what no server can know.
    rounds          number of completed rounds.
    virtual_s, bytes, probe_bytes, client_flops, server_flops   cumulative cost at the end of the run.
    wall_s          seconds on this machine.
    choice.<group>  choice of each config group.

The frame of curves has one row per evaluation (a round that measured a metric), ordered by run and round.

    run, round      round 0 is the untrained model.
    virtual_s, bytes, client_flops   cumulative cost until the round; bytes are down and up, over all clients.
    <metric>        one column for each metric, named as in the journal; NaN if the round did not measure it.

This module reads the curves of run folders, and a study's Parquet files. `matching/question.py` makes the frame of
runs in folders and in MLflow, and `tracking/curves.py` reads MLflow's curves.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.record import history, manifest
from fedcohort.results.oracles import reads_unknowable

if TYPE_CHECKING:
    import pandas as pd

COSTS = {  # each cost is the sum of these metrics of the journal
    "virtual_s": ("time/virtual_s",),
    "bytes": ("comm/down_bytes", "comm/up_bytes"),
    "probe_bytes": ("comm/probe_bytes",),
    "client_flops": ("comp/client_flops",),
    "server_flops": ("comp/server_flops",),
}
AXES = ("virtual_s", "bytes", "client_flops")  # cost columns of the curves
CLOCK = "clock_s"
CLOCK_OF_BUDGET = re.compile(r"\bvirtual_s=([\d.e+-]+)")
EVALUATIONS = ("test/", "server_val/", "clients/")  # prefixes of metrics that not every round measures
FINISHED = "finished"
STUDY_FILES = ("results.parquet", "curves.parquet")
OF_STUDY = {"cell": "setting", "selector": "condition", "step": "round"}


@dataclass(frozen=True)
class Frames:
    """A table of runs and a table of their evaluations; the module's docstring lists the columns.

    Attributes:
        runs: one row per run.
        curves: one row per evaluation.
    """

    runs: "pd.DataFrame"
    curves: "pd.DataFrame"


def read_curves(folders: Iterable[Path], metrics: Sequence[str]) -> "pd.DataFrame":
    """Return the frame of curves of the runs in `folders`, with these metrics.

    Raises `CheckpointError` for a folder that holds no run.
    """
    import pandas as pd

    curves = [read_curve(history.read(path), path.name, metrics) for path in folders]
    return pd.concat(curves, ignore_index=True) if curves else pd.DataFrame()


def read_curve(journal: history.History, run: str, metrics: Sequence[str]) -> "pd.DataFrame":
    """Return the rows of one run in the frame of curves: the rounds that measured one of the metrics."""
    import pandas as pd

    names = [name for name in metrics if name in journal.measured]
    measured = {step for name in names for step in journal.measured[name]}
    rows = journal.metrics[journal.metrics.index.isin(measured)]
    spent = {
        cost: sum((journal.metrics[name].ffill().fillna(0.0) for name in COSTS[cost] if name in journal.metrics), 0.0)
        for cost in AXES
    }
    costs = pd.DataFrame(spent, index=journal.metrics.index).loc[rows.index].reset_index(drop=True)
    values = rows[names].reset_index(drop=True)
    keys = pd.DataFrame({"run": run, "round": rows.index.to_numpy()})
    return pd.concat([keys, costs, values], axis=1)


def clock_of_budget(budget: str | None) -> float:
    """Return the virtual seconds at which a run with this budget, as text, ends; NaN where no clock ends it."""
    limit = CLOCK_OF_BUDGET.search(budget or "")
    return float(limit[1]) if limit else math.nan


def _is_oracle(words: str, condition: str, tag: str) -> bool:
    """Return whether a run is one of an oracle; runs of older versions, without a tag, are known by their selector."""
    selectors = [word.removeprefix("selector=") for word in words.split() if word.startswith("selector=")]
    return bool(tag) or reads_unknowable(selectors[-1] if selectors else condition)


def read_study(path: Path) -> Frames:
    """Read a study's results: `results.parquet` and `curves.parquet`, where each run has one metric.

    Raises `DamagedFile` for a file that differs from its manifest, and `FileNotFoundError` without results.
    """
    import pandas as pd

    for name in STUDY_FILES:
        manifest.check_file(path / name)
    runs, curves = (pd.read_parquet(path / name).rename(columns=OF_STUDY) for name in STUDY_FILES)
    metrics = sorted(set(runs["metric"]))
    for frame in (runs, curves):
        seeds = frame["seed"].astype(str)
        frame.insert(0, "run", f"{path.name}/" + frame["setting"] + "/" + frame["condition"] + "/" + seeds)
    words, budgets, tags = (
        runs[name].fillna("") if name in runs else pd.Series("", index=runs.index)
        for name in ("words", "budget", "yardstick")
    )
    runs = runs.assign(
        study=path.name,
        folder="",
        status=runs["status"].replace("done", FINISHED),
        oracle=[_is_oracle(*row) for row in zip(words, runs["condition"], tags, strict=True)],
        **{CLOCK: budgets.map(clock_of_budget)},
    )
    of_run = runs.set_index("run")["metric"]
    for metric in metrics:
        curves[metric] = curves["value"].where(curves["run"].map(of_run) == metric)
    head = ["run", "study", "setting", "condition", "seed", "folder", "status"]
    facts = ["commit", "dirty", "config_hash", "budget", CLOCK, "oracle", "rounds", *COSTS, "wall_s"]
    columns = [name for name in (*head, *facts) if name in runs]
    axes = [name for name in AXES if name in curves]
    return Frames(runs[columns], curves[["run", "round", *axes, *metrics]])
