"""Compare runs that MLflow knows: fedcohort compare rows=selector cols=agg baseline=random

rows=selector            a parameter or tag of the runs, down the table
cols=null                another one across it, null for a single column
metric=test/acc          what is compared; of several (metric=test/acc,clients/acc_worst5) the verdict is about the
                         first, the others stand beside it
baseline=null            a value of rows (or cols) to which paired differences are taken
better=auto              high, low, or auto: by the (first) metric's name
result=late              the result of a run: late is the mean of the evaluations in the last sixth of its rounds, at
                         least three; last and best are single evaluations
horizon=null             a round: only evaluations up to it count
experiment=fedcohort     MLflow's experiment
sweep=null               the runs of one sweep, by the name of its folder in logs/sweeps; sweep=last is the newest sweep
filter=null              the runs of a filter in MLflow's language: filter="params.dataset = 'digits'";
                         for rounds tags.rounds, which an extended run keeps current
target=null              which is faster to it? A number (target=0.84), baseline, or best_of:<conditions>: on each seed
                         the best of their results (target=best_of:random,oort)
level=0.95               with target=baseline: share of the way to the baseline's mean result, in (0, 1]
crossing=window          when a run meets the target: the mean over as many evaluations as its result averages (window),
                         or its first evaluation that does (first)
axis=virtual_s           what the verdict on the target is about: virtual_s, bytes (down and up), client_flops, rounds
tracking_uri=sqlite:///logs/mlflow.db
out=logs/compare         the folder for report.html, table.md, table.tex, table.csv, with a target target.md, target.tex
                         and target.csv, and for figures as PNG, PDF and SVG
report=false             true: all of it becomes artifacts of a run in MLflow, too, with the tag report; the end of a
                         sweep does so (sweep.report)
wait_s=120               seconds that MLflow may take to send the runs, and to receive the report
curves=true              false leaves out the figures by round

Runs that never reach the target count as later than their end.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.command.words import read_number
from fedcohort.errors import OptionError
from fedcohort.report.comparison import page
from fedcohort.results.compare_cost import AXES, CROSSINGS, parse_target
from fedcohort.results.matching.question import Question
from fedcohort.results.metric import DIRECTIONS
from fedcohort.results.run import KINDS
from fedcohort.startup.comparison import publish, read_answer
from fedcohort.startup.options import folder, unknown
from fedcohort.tracking.runs import Query


@dataclass(frozen=True)
class Options:
    """The options of the command, as the module explains them; None stands for null."""

    rows: str = "selector"
    cols: str | None = None
    metric: str = "test/acc"
    baseline: str | None = None
    better: str = "auto"
    result: str = "late"
    horizon: str | None = None
    experiment: str = "fedcohort"
    sweep: str | None = None
    filter: str | None = None
    target: str | None = None
    level: str = "0.95"
    crossing: str = "window"
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
        choices = {"better": DIRECTIONS, "result": KINDS, "crossing": CROSSINGS, "axis": AXES}
        for name, known in {**choices, "curves": ("true", "false"), "report": ("true", "false")}.items():
            ranges.choice(name, getattr(self, name), *known)
        if self.cols == self.rows:
            raise ranges.refuse("cols", f"another parameter than rows={self.rows}, or null", self.cols)
        question_of(self)
        read_number("wait_s", self.wait_s, "(0, inf)")
        folder("out", self.out)


def split_metrics(text: str) -> list[str]:
    """Return the names between the commas. Raises `OptionError` where there is none, or one twice."""
    names = text.split(",")
    if not all(names) or len(set(names)) < len(names):
        raise ranges.refuse("metric", "a metric, or several of them, each once, as test/acc,clients/acc_worst5", text)
    return names


def parse(words: Sequence[str]) -> Options:
    """Return the options that were typed. Raises `OptionError`."""
    known = [each.name for each in fields(Options)]
    typed: dict[str, str | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise OptionError(f"can't read {word!r}: type name=value, where name is one of {', '.join(known)}")
        if name not in known:
            raise unknown("", name, known)
        typed[name] = None if value == "null" else value
    values: Any = typed  # the constructor rejects a null where a text is needed
    return Options(**values)


def question_of(options: Options) -> Question:
    """Return the question that the options ask. Raises `OptionError`."""
    o, metrics = options, split_metrics(options.metric)
    level = read_number("level", o.level, "(0, 1]")
    horizon = None if o.horizon is None else int(read_number("horizon", o.horizon, "[1, inf)"))
    target = None if o.target is None else parse_target(o.target, metrics[0], level, o.crossing)
    result: Any = o.result  # checked against the choices
    return Question(o.rows, o.cols, metrics, o.baseline, o.better, result, horizon, target, o.axis)


def query_of(options: Options) -> Query:
    """Return which runs the options ask about."""
    return Query(options.tracking_uri, options.experiment, options.sweep, options.filter)


def compare(options: Options) -> tuple[str, list[Path]]:
    """Return the tables in Markdown, and the files that were written. Raises `OptionError`, `TrackingError`."""
    query = query_of(options)
    answer = read_answer(query, question_of(options), float(options.wait_s))
    text, paths = page.write(answer, Path(options.out).absolute(), curves=options.curves == "true")
    if options.report == "true":
        text += f"\nMLflow: {publish(answer, query, paths, float(options.wait_s))}\n"
    return text, paths


def main(words: Sequence[str]) -> int:
    """Print the page's path first, then the tables and the other files; raises what `in_one_line` prints."""
    text, (first, *others) = compare(parse(words))
    sys.stdout.write(f"{first}\n\n{text}\n" + "".join(f"{file}\n" for file in others))
    return 0
