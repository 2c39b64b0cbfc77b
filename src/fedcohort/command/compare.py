"""Compare runs that MLflow knows: fedcohort compare rows=selector cols=agg baseline=random

rows=selector            a parameter or tag of the runs, down the table
cols=null                another one across it, null for a single column
metric=test/acc          what is compared: a run's last value of it; of several (metric=test/acc,clients/acc_worst5) the
                         verdict is about the first, the others stand beside it
baseline=null            a value of rows (or cols) to which paired differences are taken
better=auto              high, low, or auto: by the (first) metric's name
experiment=fedcohort     MLflow's experiment
sweep=null               the runs of one sweep, by the name of its folder in logs/sweeps; sweep=last is the newest sweep
filter=null              the runs of a filter in MLflow's language: filter="params.dataset = 'digits'";
                         for rounds tags.rounds, which an extended run keeps current
target=null              which is faster to it? A number (target=0.84), or best_of:<values of rows or of cols>: on each
                         seed the best of their runs' last values (target=best_of:random,oort)
axis=virtual_s           what time to target is measured in: virtual_s, bytes (down and up), client_flops, rounds
tracking_uri=sqlite:///logs/mlflow.db
out=logs/compare         the folder for report.html, table.md, table.tex, table.csv, costs.csv, means.png, curves.png,
                         with a baseline forest.png and differences.png, and with a target target.md, target.tex and
                         target.csv
report=false             true: all of it becomes artifacts of a run in MLflow, too, with the tag report; at a sweep's
                         end it does by itself (sweep.report)
wait_s=120               seconds that MLflow may take to send the runs, and to receive the report
curves=true              false leaves out curves.png and differences.png; they and a target ask for the history of
                         every run

The time of a row is by when half of its seeds have the target: of an even number the smaller of the middle two.
Runs that never reach the target aren't dropped: they count as later than their end. A time is then "> t", a speed-up
a bound without an interval.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from fedcohort import ranges
from fedcohort.command.words import read_number
from fedcohort.errors import OptionError, TrackingError
from fedcohort.host.time_limit import time_limit
from fedcohort.observe.comparison import fetch, files, goals
from fedcohort.observe.comparison.publish import publish
from fedcohort.observe.comparison.question import Question, answer
from fedcohort.observe.comparison.series import AXES
from fedcohort.startup.options import folder, unknown

T = TypeVar("T")


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
    report: str = "false"
    wait_s: str = "120"

    def __post_init__(self) -> None:
        for name in ("rows", "metric", "experiment", "tracking_uri"):
            ranges.text(name, getattr(self, name))
        for name in ("cols", "baseline", "sweep", "filter", "target"):
            ranges.text(name, getattr(self, name), optional=True)
        ranges.choice("better", self.better, "auto", "high", "low")
        ranges.choice("curves", self.curves, "true", "false")
        ranges.choice("report", self.report, "true", "false")
        ranges.choice("axis", self.axis, *AXES)
        read_number("wait_s", self.wait_s, "(0, inf)")
        first, *_ = split_metrics(self.metric)
        if self.target is not None:
            goals.parse(self.target, first)
        if self.cols == self.rows:
            raise ranges.refuse("cols", f"another parameter than rows={self.rows}, or null", self.cols)
        folder("out", self.out)


def split_metrics(text: str) -> list[str]:
    """The names between the commas. Raises `OptionError` where there is none, or one twice."""
    names = text.split(",")
    if not all(names) or len(set(names)) < len(names):
        raise ranges.refuse("metric", "a metric, or several of them, each once, as test/acc,clients/acc_worst5", text)
    return names


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


def question_of(options: Options) -> Question:
    """What the options ask."""
    given = {name: getattr(options, name) for name in ("rows", "cols", "baseline", "better", "target", "axis")}
    query = fetch.Query(options.tracking_uri, options.experiment, options.sweep, options.filter)
    return Question(query, metrics=split_metrics(options.metric), curves=options.curves == "true", **given)


def compare(options: Options) -> tuple[str, list[Path]]:
    """The tables in Markdown, and the files that were written. Raises `OptionError`, `TrackingError`."""
    found = _within(options, "send the runs", lambda: answer(question_of(options)))
    text, paths = files.write(found, Path(options.out).absolute())
    if options.report == "true":
        text += f"\nMLflow: {_within(options, 'receive the report', lambda: publish(found, paths))}\n"
    return text, paths


def _within(options: Options, what: str, action: Callable[[], T]) -> T:
    """Return what `action` returns. Raises `TrackingError` where MLflow takes longer than `wait_s` seconds."""
    try:
        with time_limit(float(options.wait_s), what):
            return action()
    except TimeoutError as error:
        limit = f"MLflow at {options.tracking_uri} did not {what} within wait_s={options.wait_s} seconds"
        raise TrackingError(f"{limit}: raise wait_s, or look whether the server answers in a browser") from error


def main(words: Sequence[str]) -> int:
    """The command; raises what `in_one_line` puts in one line."""
    text, files = compare(parse(words))
    sys.stdout.write(text + "\n" + "".join(f"{file}\n" for file in files))
    return 0
