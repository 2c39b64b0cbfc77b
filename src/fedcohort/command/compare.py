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
from dataclasses import fields
from pathlib import Path

from fedcohort.api.comparison import Options, make_options
from fedcohort.errors import OptionError
from fedcohort.report.comparison import page
from fedcohort.startup.comparison import publish, read_answer


def compare(options: Options) -> tuple[str, list[Path]]:
    """Return the tables in Markdown, and the files that were written. Raises `OptionError`, `TrackingError`."""
    answer = read_answer(options.query, options.question, float(options.wait_s))
    text, paths = page.write(answer, Path(options.out).absolute(), curves=options.curves == "true")
    if options.report == "true":
        text += f"\nMLflow: {publish(answer, options.query, paths, float(options.wait_s))}\n"
    return text, paths


def parse(words: Sequence[str]) -> Options:
    """Return the options that were typed. Raises `OptionError`."""
    typed: dict[str, str | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            known = ", ".join(field.name for field in fields(Options))
            raise OptionError(f"can't read {word!r}: type name=value, where name is one of {known}")
        typed[name] = None if value == "null" else value
    return make_options(typed)


def main(words: Sequence[str]) -> int:
    """Print the page's path first, then the tables and the other files. Raises `OptionError`, `TrackingError`."""
    text, (first, *others) = compare(parse(words))
    sys.stdout.write(f"{first}\n\n{text}\n" + "".join(f"{file}\n" for file in others))
    return 0
