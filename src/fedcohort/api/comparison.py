"""`fedcohort.compare`: compare runs of a sweep, of folders or of MLflow, as `fedcohort compare` does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort import ranges
from fedcohort.api.run import RunResult, read_path
from fedcohort.api.sweep import SweepResult
from fedcohort.errors import OptionError
from fedcohort.report.comparison import page
from fedcohort.report.comparison.tables import make_result_frame
from fedcohort.results.compare_cost import COST_AXES
from fedcohort.results.matching.question import ComparisonAnswer, ComparisonQuestion
from fedcohort.results.metric import BETTER_CHOICES
from fedcohort.results.run import RESULT_KINDS
from fedcohort.results.target import CROSSING_RULES, parse_target
from fedcohort.startup import comparison
from fedcohort.startup.options import check_writable_folder, make_unknown_option_error
from fedcohort.tracking.runs import RunQuery

if TYPE_CHECKING:
    import pandas as pd

MLFLOW_OPTIONS = ("experiment", "sweep", "filter", "tracking_uri")  # options that choose runs among those of MLflow


@dataclass(frozen=True)
class Options:
    """The options of a comparison as they are typed; None stands for null.

    Attributes:
        rows: parameter or tag whose values are the rows of the table.
        cols: parameter or tag whose values are the columns.
        metric: metrics, separated by commas; verdicts are on the first one.
        baseline: value of `rows` or `cols` with which the others are compared.
        better: whether `high` or `low` values are better, or `auto`.
        result: result of a run: the mean of its last evaluations (`late`), its `last` or its `best` evaluation.
        horizon: last round whose evaluations count.
        experiment: experiment in MLflow.
        sweep: id of a sweep in MLflow, or `last`.
        filter: filter of runs in MLflow's syntax.
        target: value that runs have to reach, `baseline`, or `best_of:` and conditions.
        level: with target=baseline, share of the way from the untrained model to the baseline's mean result.
        crossing: what must reach the target: the mean over a `window` of evaluations, or any evaluation (`first`).
        axis: cost up to the target that verdicts compare, such as `virtual_s` or `rounds`.
        tracking_uri: address of MLflow's store.
        out: folder of the page.
        curves: whether curves are drawn, true or false.
        report: whether the page is stored in MLflow, true or false.
        wait_s: seconds to wait for the server.
    """

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
        for option_name in ("rows", "metric", "experiment", "tracking_uri"):
            ranges.text(option_name, getattr(self, option_name))
        for option_name in ("cols", "baseline", "sweep", "filter", "target"):
            ranges.text(option_name, getattr(self, option_name), allow_null=True)
        choices = {"better": BETTER_CHOICES, "result": RESULT_KINDS, "crossing": CROSSING_RULES, "axis": COST_AXES}
        for option_name, valid_choices in {**choices, "curves": ("true", "false"), "report": ("true", "false")}.items():
            ranges.choice(option_name, getattr(self, option_name), *valid_choices)
        if self.cols == self.rows:
            raise ranges.range_error("cols", f"another parameter than rows={self.rows}, or null", self.cols)
        _ = self.question
        ranges.parse_number("wait_s", self.wait_s, "(0, inf)")
        check_writable_folder("out", self.out)

    @property
    def question(self) -> ComparisonQuestion:
        """Return the rows, columns, baseline and metrics of the comparison that these options describe."""
        metrics = self.metric.split(",")
        if not all(metrics) or len(set(metrics)) < len(metrics):
            raise ranges.range_error(
                "metric", "a metric, or several different ones, as test/acc,clients/acc_worst5", self.metric
            )
        level = ranges.parse_number("level", self.level, "(0, 1]")
        horizon = None if self.horizon is None else ranges.parse_integer("horizon", self.horizon, "[1, inf)")
        target = None if self.target is None else parse_target(self.target, metrics[0], level, self.crossing)
        result: Any = self.result  # checked against the choices
        return ComparisonQuestion(
            self.rows, self.cols, metrics, self.baseline, self.better, result, horizon, target, self.axis
        )

    @property
    def query(self) -> RunQuery:
        """Return the query for the runs in MLflow that are compared."""
        return RunQuery(self.tracking_uri, self.experiment, self.sweep, self.filter)


@dataclass(frozen=True)
class Comparison:
    """A comparison of conditions over seeds.

    Attributes:
        answer: the compared runs with all statistics.
    """

    answer: ComparisonAnswer

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row per metric and condition (`rows` and `cols`), with mean, paired difference, interval, p and costs."""
        return make_result_frame(self.answer)

    @cached_property
    def verdicts(self) -> list[str]:
        """The conclusion of each condition in a sentence; none without a baseline."""
        return page.list_verdicts(self.answer)

    def write(self, out: str | Path) -> list[Path]:
        """Write report.html, tables and figures into the folder `out`; return their paths, the page first."""
        return page.write_comparison_files(self.answer, read_path("out", out).absolute())[1]

    def __repr__(self) -> str:
        return page.to_markdown(self.answer)

    def _repr_html_(self) -> str:
        return page.show_in_notebook(self.answer)


def compare(
    runs: SweepResult | Iterable[RunResult | str | Path] | RunResult | str | Path | None = None, **options: object
) -> Comparison:
    """Compare runs over seeds, with paired differences to a baseline.

        compare(fedcohort.sweep(selector=["random", "flash"], seed=range(3)))
        compare(["logs/runs/a", "logs/runs/b"], baseline="random")
        compare(sweep="last", rows="selector", cols="agg", baseline="random")

    Args:
        runs: the result of a sweep, or one or several results or folders of runs; None for runs that are in MLflow.
        options: options of `fedcohort compare`; see `fedcohort compare --help`. Rows, columns and baseline of a sweep
            follow from the options that it varies, unless they are passed.

    Raises:
        FedcohortError: with the message that the command prints.
    """
    option_texts = {k: None if v is None else ranges.format_option_value(v) for k, v in options.items()}
    if runs is None:
        settings = make_options(option_texts)
        return Comparison(comparison.compare_tracked_runs(settings.query, settings.question, float(settings.wait_s)))
    if unusable_option := next((k for k in options if k in MLFLOW_OPTIONS), None):
        raise OptionError(
            f"{unusable_option} chooses runs in MLflow, but runs were passed, too: leave out one of the two"
        )
    if isinstance(runs, SweepResult):
        compared_axes, fixed_options = runs.choose_axes()
        settings = make_options({**compared_axes, **option_texts})
        source_text, run_folders = f"sweep {runs.folder.name}", runs.folders
    else:
        settings, fixed_options, source_text = make_options(option_texts), {}, "the listed folders"
        run_sources = [runs] if isinstance(runs, RunResult | str | Path) or not isinstance(runs, Iterable) else [*runs]
        run_folders = [r.folder if isinstance(r, RunResult) else read_path("runs", r) for r in run_sources]
    question = replace(settings.question, source_text=source_text)
    return Comparison(comparison.compare_run_folders(run_folders, question, fixed_options))


def make_options(option_texts: Mapping[str, str | None]) -> Options:
    """Return the options of a comparison from texts by name; None stands for null.

    Raises `OptionError` for an unknown option, or a value outside its range.
    """
    option_names = [option_field.name for option_field in fields(Options)]
    if unknown_option := next((k for k in option_texts if k not in option_names), None):
        raise make_unknown_option_error("", unknown_option, option_names)
    option_values: Any = option_texts  # the constructor rejects a null where a text is needed
    return Options(**option_values)
