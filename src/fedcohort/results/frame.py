"""Two tidy frames that every reader of results makes: one of runs, one of curves.

Runs have one row a run. A reader leaves out what its source does not hold.

    run             id that joins both frames: name of the folder, MLflow's run id, or study/setting/condition/seed.
    study           name of the study; "" for none.
    setting         partition, cohort size, noise and so on; "" where the source does not group its runs.
    condition       method, or a variant of one; the choice of `selector` where the source names none.
    seed            integer.
    folder          of the run; "" for none.
    status          finished, refused, failed, or what `status.json` says of a run that did not end.
    commit, dirty   code of the last start.
    config_hash     of the options that decide results, apart from the seed.
    budget          where the run ends, in words.
    oracle          whether the method reads what no server can know.
    rounds          that are done.
    virtual_s, bytes, probe_bytes, client_flops, server_flops   cumulative cost at the end of the run.
    wall_s          seconds of this machine.
    choice.<group>  choice of each config group.

Curves have one row an evaluation (a round that measured a metric), ordered by run and round.

    run, round      round 0 is the untrained model.
    virtual_s, bytes, client_flops   cumulative cost by then; bytes are down and up, of all clients.
    <metric>        one column for each metric. Names are the journal's; NaN where the round did not measure it.

Readers of run folders and of a study's Parquet files are here; that of MLflow lives where MLflow is imported.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.record import card, folder, history, manifest, provenance

if TYPE_CHECKING:
    import pandas as pd

COSTS = {  # the metrics of the journal whose sum each cost is
    "virtual_s": ("time/virtual_s",),
    "bytes": ("comm/down_bytes", "comm/up_bytes"),
    "probe_bytes": ("comm/probe_bytes",),
    "client_flops": ("comp/client_flops",),
    "server_flops": ("comp/server_flops",),
}
AXES = ("virtual_s", "bytes", "client_flops")  # costs that curves have
EVALUATIONS = ("test/", "server_val/", "clients/")  # prefixes of metrics that some rounds measure
FINISHED = "finished"
STUDY_FILES = ("results.parquet", "curves.parquet")
OF_STUDY = {"cell": "setting", "selector": "condition", "step": "round"}


@dataclass(frozen=True)
class Frames:
    """The frames of the module.

    Attributes:
        runs: one row a run.
        curves: one row an evaluation.
    """

    runs: "pd.DataFrame"
    curves: "pd.DataFrame"


def read_folders(folders: Iterable[Path], metrics: Sequence[str] | None = None) -> Frames:
    """Read run folders: card, journal, starts and status. metrics: columns of the curves, None for all evaluations.

    Raises `CheckpointError` for a folder that holds no run.
    """
    import pandas as pd

    runs, curves = [], []
    for path in folders:
        info, journal = card.load(path), history.read(path)
        starts, status = provenance.starts(path), folder.status_of(path)
        runs.append(
            {
                "run": path.name,
                "study": "",
                "setting": "",
                "condition": info.choices.get("selector", ""),
                "seed": info.seed,
                "folder": str(path),
                "status": status.get("status", "running"),
                "commit": starts[-1]["commit"] if starts else info.commit,
                "dirty": bool(starts[-1]["dirty"]) if starts else info.dirty,
                "config_hash": info.config_hash,
                "budget": str(info.budget),
                "oracle": bool(info.tags.get("yardstick")),
                "rounds": journal.steps[-1] if journal.steps else 0,
                **{cost: sum(journal.final.get(name, 0.0) for name in names) for cost, names in COSTS.items()},
                "wall_s": history.wall_s(card.starts_ms(path), journal.times),
                **{f"choice.{group}": choice for group, choice in info.choices.items()},
            }
        )
        curves.append(read_curve(journal, path.name, metrics))
    return Frames(pd.DataFrame(runs), pd.concat(curves, ignore_index=True) if curves else pd.DataFrame())


def read_curve(journal: history.History, run: str, metrics: Sequence[str] | None = None) -> "pd.DataFrame":
    """Return the rows of the curves' frame of one run: the rounds that measured one of the metrics."""
    import pandas as pd

    selected = [name for name in journal.measured if name.startswith(EVALUATIONS)] if metrics is None else metrics
    names = [name for name in selected if name in journal.measured]
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


def read_study(path: Path) -> Frames:
    """Read a study's results: `results.parquet` and `curves.parquet`, whose runs have one metric.

    Raises `DamagedFile` for a file that its manifest does not know, and `FileNotFoundError` without results.
    """
    import pandas as pd

    for name in STUDY_FILES:
        manifest.check(path / name)
    runs, curves = (pd.read_parquet(path / name).rename(columns=OF_STUDY) for name in STUDY_FILES)
    metrics = sorted(set(runs["metric"]))
    for frame in (runs, curves):
        frame.insert(
            0, "run", f"{path.name}/" + frame["setting"] + "/" + frame["condition"] + "/" + _text(frame["seed"])
        )
    runs = runs.assign(
        study=path.name,
        folder="",
        status=runs["status"].replace("done", FINISHED),
        oracle=runs["yardstick"].fillna("") != "" if "yardstick" in runs else False,
    )
    of_run = runs.set_index("run")["metric"]
    for metric in metrics:
        curves[metric] = curves["value"].where(curves["run"].map(of_run) == metric)
    head = ["run", "study", "setting", "condition", "seed", "folder", "status"]
    facts = ["commit", "dirty", "config_hash", "budget", "oracle", "rounds", *COSTS, "wall_s"]
    columns = [name for name in (*head, *facts) if name in runs]
    axes = [name for name in AXES if name in curves]
    return Frames(runs[columns], curves[["run", "round", *axes, *metrics]])


def _text(seeds: "pd.Series[int]") -> "pd.Series[str]":
    return seeds.astype(str)
