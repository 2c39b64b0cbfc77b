"""Compare runs that MLflow knows: fedcohort compare rows=selector cols=agg baseline=random

rows=selector            a parameter or tag of the runs, down the table.
cols=null                another parameter or tag, across the table; null for a single column.
metric=test/acc          metric that is compared. Of several (metric=test/acc,clients/acc_worst5) the verdict is about
                         the first; the table shows all.
baseline=null            a value of rows (or cols) to which paired differences are taken.
better=auto              high, low, or auto: by the name of the (first) metric.
result=late              the result of a run: late is the mean of the evaluations in the last sixth of its rounds, at
                         least three; last and best are single evaluations.
horizon=null             last round whose evaluations and costs count; null for all. It is not after the last evaluation
                         of all runs; a run that ended earlier counts up to its own.
experiment=fedcohort     MLflow's experiment.
sweep=null               the runs of one sweep, by the name of its folder in logs/sweeps; last is the newest sweep.
filter=null              runs that a filter in MLflow's language selects: filter="params.dataset = 'digits'". Use
                         tags.rounds for rounds, which an extended run keeps current.
target=null              compares the costs until a run reaches it: a number (target=0.84), baseline, or
                         best_of:<conditions>, on each seed the best of their results (target=best_of:random,oort).
level=0.95               with target=baseline: share of the baseline's mean result, in (0, 1]. For a loss it is the
                         share of the decrease from the untrained model's.
crossing=window          when a run meets the target: the mean over as many evaluations as its result averages (window),
                         or its first evaluation that does (first).
axis=virtual_s           cost that the verdict on the target is about: virtual_s, bytes (down and up), client_flops,
                         joules, rounds.
tracking_uri=sqlite:///logs/mlflow.db
out=logs/compare         folder for report.html, tables (.md, .tex, .csv) and figures (PNG, PDF, SVG).
report=false             true also stores the files in MLflow, in a run with the tag report. A sweep does so at its end
                         (sweep.report).
wait_s=120               seconds that MLflow may take to send the runs, and to receive the report.
curves=true              false leaves out the figures by round.

Runs that never reach the target count as later than their end.
"""

import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from fedcohort.api.comparison import Options, make_options
from fedcohort.command.arguments import read_options
from fedcohort.console.terminal import print_markdown
from fedcohort.report.comparison import page
from fedcohort.startup.comparison import compare_tracked_runs, publish_comparison


def compare_runs(options: Options) -> tuple[str, list[Path]]:
    """Compare the runs, and return the tables in Markdown, and the files that were written.

    Args:
        options: options of the command.

    Raises:
        OptionError: an option is invalid.
        TrackingError: MLflow does not answer.
    """
    wait_s = float(options.wait_s)
    comparison = compare_tracked_runs(options.query, options.question, wait_s)
    page_folder = Path(options.out).absolute()
    tables_text, written_paths = page.write_comparison_files(comparison, page_folder, curves=options.curves == "true")
    if options.report == "true":
        tables_text += f"\nMLflow: {publish_comparison(comparison, options.query, written_paths, wait_s)}\n"
    return tables_text, written_paths


def parse_options(arguments: Sequence[str]) -> Options:
    """Return the options of the command in `arguments`; raise `OptionError` for an invalid one."""
    option_texts = read_options(arguments, [f.name for f in fields(Options)])
    return make_options({k: None if v == "null" else v for k, v in option_texts.items()})


def main(arguments: Sequence[str]) -> int:
    """Compare the runs, and print the path of `report.html`, the tables and the paths of the other files.

    Raises `OptionError` for an invalid option in `arguments`, and `TrackingError` if MLflow does not answer.
    """
    tables_text, (page_path, *other_paths) = compare_runs(parse_options(arguments))
    sys.stdout.write(f"{page_path}\n\n")
    print_markdown(f"{tables_text}\n")
    sys.stdout.write("".join(f"{other_path}\n" for other_path in other_paths))
    return 0
