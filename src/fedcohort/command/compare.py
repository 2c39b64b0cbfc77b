"""Compare runs that MLflow knows: fedcohort compare rows=selector cols=agg baseline=random

rows=selector            a parameter or tag of the runs, down the table
cols=null                another one across it, null for a single column
metric=test/acc          what is compared: a run's last value of it
baseline=null            a value of rows (or cols) to which paired differences are taken
better=auto              high, low, or auto: by the metric's name
experiment=fedcohort     MLflow's experiment
sweep=null               the runs of one sweep, by the name of its folder in logs/sweeps
filter=null              the runs of a filter in MLflow's language: filter="params.dataset = 'digits'";
                         for rounds tags.rounds, which an extended run keeps current
target=null              which is faster to it? A number (target=0.84), or best_of:<values of rows or of cols>: on each
                         seed the best of their runs' last values (target=best_of:random,oort)
axis=virtual_s           what time to target is measured in: virtual_s, bytes (down and up), client_flops, rounds
tracking_uri=sqlite:///logs/mlflow.db
out=logs/compare         the folder for table.md, table.tex, table.csv, means.png, curves.png, with a baseline
                         forest.png, and with a target target.md, target.tex and target.csv
curves=true              false leaves out curves.png; that and a target ask for the history of every run

Runs that never reach the target aren't dropped: they count as later than their end. A time is then "> t", a speed-up
a bound without an interval.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError, TrackingError
from fedcohort.observe.comparison import draw, fetch, render, render_target, runs, series, target, verdict
from fedcohort.observe.comparison.series import AXES
from fedcohort.observe.comparison.table import sign_of, tabulate
from fedcohort.observe.tracking import server
from fedcohort.record.folder import write_atomically
from fedcohort.startup.options import folder, unknown


@dataclass(frozen=True)
class Options:
    """The options of the command, as the module explains them; None stands for null."""

    rows: str = "selector"
    cols: str | None = None
    metric: str = "test/acc"
    baseline: str | None = None
    better: str = "auto"
    experiment: str = "fedcohort"
    sweep: str | None = None
    filter: str | None = None
    target: str | None = None
    axis: str = "virtual_s"
    tracking_uri: str = "sqlite:///logs/mlflow.db"
    out: str = "logs/compare"
    curves: str = "true"

    def __post_init__(self) -> None:
        for name in ("rows", "metric", "experiment", "tracking_uri"):
            ranges.text(name, getattr(self, name))
        for name in ("cols", "baseline", "sweep", "filter", "target"):
            ranges.text(name, getattr(self, name), optional=True)
        ranges.choice("better", self.better, "auto", "high", "low")
        ranges.choice("curves", self.curves, "true", "false")
        ranges.choice("axis", self.axis, *AXES)
        if self.target is not None:
            target.parse(self.target)
        if self.cols == self.rows:
            raise ranges.refuse("cols", f"another parameter than rows={self.rows}, or null", self.cols)
        folder("out", self.out)


def parse(words: Sequence[str]) -> Options:
    """The options that were typed. Raises `OptionError`."""
    known = [each.name for each in fields(Options)]
    typed: dict[str, str | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise OptionError(f"can't read {word!r}: type name=value, where name is one of {', '.join(known)}")
        if name not in known:
            raise unknown("", name, known)
        typed[name] = None if value == "null" else value
    values: Any = typed  # a null where a text is needed is refused below
    return Options(**values)


def compare(options: Options) -> tuple[str, list[Path]]:
    """The table in Markdown, and the files that were written. Raises `OptionError`, `TrackingError`."""
    query = fetch.Query(options.tracking_uri, options.experiment, options.sweep, options.filter)
    try:
        client = fetch.connect(query)
        found = runs.sort(fetch.fetch(client, query), options.rows, options.cols, options.metric)
        table = tabulate(found, options.rows, options.cols, options.metric, options.baseline, options.better)
        by_round = options.curves == "true" or options.target is not None
        histories = series.fetch(client, found, options.metric) if by_round else {}
    except server.failures() as error:
        raise TrackingError(f"MLflow at {options.tracking_uri} can't be read ({server.reason(error)})") from error
    times = _times(options, found, histories)
    out = Path(options.out).absolute()
    out.mkdir(parents=True, exist_ok=True)
    texts: dict[str, Callable[[], str]] = {
        "table.md": lambda: render.markdown(table),
        "table.tex": lambda: render.latex(table),
        "table.csv": lambda: render.render_csv(table),
    }
    goal: float | None = None
    if times is not None and options.target is not None:
        texts |= {
            "target.md": lambda: render_target.markdown(times, found.notes),
            "target.tex": lambda: render_target.latex(times, found.notes),
            "target.csv": lambda: render_target.render_csv(times),
        }
        wanted = target.parse(options.target)
        goal = wanted if isinstance(wanted, float) else None
    for name, text in texts.items():
        write_atomically(out / name, text())
    draw.intervals(table, found, out / "means.png")
    paths = [*texts, "means.png"]
    if verdict.list_gaps(table):
        draw.forest(table, found, out / "forest.png")
        paths.append("forest.png")
    if options.curves == "true":
        draw.curves(histories, found, options.metric, out / "curves.png", goal)
        paths.append("curves.png")
    first = f"{render_target.markdown(times)}\n" if times is not None else ""
    return first + texts["table.md"](), [out / name for name in paths]


def _times(
    options: Options, found: runs.Sorted, histories: Mapping[runs.Cell, Mapping[int, series.Series]]
) -> target.TargetTable | None:
    """The times to the target, None where there is none."""
    if options.target is None:
        return None
    names = (options.rows, options.cols, options.metric)
    sign = sign_of(options.better, options.metric)
    return target.tabulate(found, histories, names, options.target, options.axis, options.baseline, sign)


def main(words: Sequence[str]) -> int:
    """The command; raises what `in_one_line` puts in one line."""
    text, files = compare(parse(words))
    sys.stdout.write(text + "\n" + "".join(f"{file}\n" for file in files))
    return 0
