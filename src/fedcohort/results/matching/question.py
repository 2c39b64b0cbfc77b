"""Compare tracked runs: options (`ComparisonQuestion`) and results (`ComparisonAnswer`) for tables, figures, pages."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fedcohort.ranges import range_error
from fedcohort.record.tags import BUDGET_TAGS, RUN_FOLDER_TAG
from fedcohort.results.compare import Cell, Comparison, Options, compare_conditions
from fedcohort.results.compare_cost import CostComparison, TotalCost, compare_cost, sum_costs
from fedcohort.results.frame import CLOCK_LIMIT_COLUMN, COST_COLUMNS, METRICS_BY_COST, RunFrames
from fedcohort.results.matching import tracked_run
from fedcohort.results.matching.match import ANY_OPTION_PREFIX, IMPLIED_OPTION_PREFIXES, Matching
from fedcohort.results.metric import choose_rules, find_metric_sign
from fedcohort.results.run import ResultKind
from fedcohort.results.target import Target

if TYPE_CHECKING:
    import pandas as pd

FIRST_NAMED_OPTIONS = (*BUDGET_TAGS, "deadline")  # named before other options: they decide where a run and a round end


@dataclass(frozen=True)
class ComparisonQuestion:
    """The options of a comparison of tracked runs.

    Attributes:
        rows: the parameter or tag whose values are the rows of the table.
        cols: the parameter or tag whose values are the columns; None for a single column.
        metrics: names of the metrics; verdicts are on the first one, and the table shows all.
        baseline: a value of rows or of cols, None without one.
        better: whether `high` or `low` values of the first metric are better, or `auto` by its name.
        result: result of a run: `late` for the mean of the last sixth, or the `last` or the `best` evaluation.
        horizon: last round whose evaluations count; None for the end of each run.
        target: value that runs have to reach in a comparison of costs, None for no such comparison.
        axis: the cost that the main verdicts on a target compare, as `virtual_s`.
        source_text: describes which runs are compared.
    """

    rows: str = "selector"
    cols: str | None = None
    metrics: Sequence[str] = ("test/acc",)
    baseline: str | None = None
    better: str = "auto"
    result: ResultKind = "late"
    horizon: int | None = None
    target: Target | None = None
    axis: str = "virtual_s"
    source_text: str = "all runs"


@dataclass(frozen=True)
class ComparisonAnswer:
    """The result of a comparison of tracked runs. A cell is (setting, condition).

    Attributes:
        question: the options of the comparison.
        matching: the runs in their cells, and the runs that were left out.
        frames: the runs that are compared, and their evaluations.
        tables: a comparison for each metric; verdicts are on the first one.
        costs: total cost of the runs, by name of the cost and cell.
        target_costs: costs to the target, None without one.
        differing_options: options, other than the compared one, in which a cell differs from its baseline's cell.
        newest_sweep: newest sweep of the runs, None if one sweep has all of them.
        notes: runs that were left out, options that also differ, and cells that cannot be compared.
    """

    question: ComparisonQuestion
    matching: Matching
    frames: RunFrames
    tables: Sequence[Comparison]
    costs: Mapping[str, Mapping[Cell, TotalCost]]
    target_costs: CostComparison | None = None
    differing_options: Mapping[Cell, Sequence[str]] = field(default_factory=dict)
    newest_sweep: str | None = None
    notes: Sequence[str] = ()

    @property
    def headline(self) -> Comparison:
        """The comparison of the first metric, which the verdicts are about."""
        return self.tables[0]

    @property
    def has_one_seed(self) -> bool:
        """Whether no condition has more than one seed, so that nothing has an interval."""
        return all(cell_result.mean.n < 2 for cell_result in self.headline.results.values())


def answer_comparison_question(
    question: ComparisonQuestion, matching: Matching, curves: "pd.DataFrame"
) -> ComparisonAnswer:
    """Compare matched runs with the baseline, and collect notes on them.

    Args:
        question: the options of the comparison.
        matching: runs in their cells, (setting, condition).
        curves: evaluations of these runs, in the form that `results.frame` describes.

    Raises:
        OptionError: a target that names an unknown condition or lacks a baseline, or an axis that a run did not log.
            It is also raised for a horizon outside the evaluated rounds.
    """
    q, frames = question, RunFrames(_make_run_frame(matching), curves)
    if q.horizon is not None:
        _check_horizon(q.horizon, q.metrics, curves)
        frames = RunFrames(_cut_costs_at_horizon(frames, q.horizon), curves)
    unpaired_cells = {  # cells whose seeds give other clients or data than the baseline's
        cell
        for cell, federation in matching.federations.items()
        if q.baseline is not None and federation != matching.federations.get((cell[0], q.baseline), federation)
    }
    tables = []
    for i, metric in enumerate(q.metrics):
        metric_sign = find_metric_sign(metric, q.better if i == 0 else "auto")
        options = Options(metric, q.baseline, metric_sign, q.result, q.horizon, choose_rules(metric), unpaired_cells)
        tables.append(compare_conditions(frames, options))
    differing_options, notes = {}, list(matching.notes)
    for cell in matching.cells if q.baseline is not None else ():
        baseline_cell = (cell[0], str(q.baseline))
        if baseline_cell not in matching.cells:
            notes.append(f"no baseline: there are no runs of {tracked_run.format_cell(baseline_cell)}")
        elif baseline_cell != cell and cell not in unpaired_cells:
            differing_options[cell] = list_differing_options(cell, baseline_cell, matching)
    if unpaired_cells:
        cell_names = ", ".join(tracked_run.format_cell(cell) for cell in matching.cells if cell in unpaired_cells)
        notes.append(f"not compared with {q.baseline}: {cell_names}, as clients or data differ (see `also differs`)")
    return ComparisonAnswer(
        q,
        matching,
        frames,
        tables,
        costs=sum_costs(frames, tables[0].options),
        target_costs=compare_cost(frames, tables[0].options, q.target, q.axis) if q.target else None,
        differing_options=differing_options,
        newest_sweep=find_newest_sweep(matching),
        notes=list(dict.fromkeys(notes)),
    )


def _make_run_frame(matching: Matching) -> "pd.DataFrame":
    """Return the frame of the runs of `matching` (`results.frame`), in the order of their cells."""
    import pandas as pd

    run_rows = []
    for (setting, condition), run_by_seed in matching.cells.items():
        is_oracle = (setting, condition) in matching.oracles
        for seed, run in run_by_seed.items():
            clock_limit = run.params.get("until.virtual_s", "null")
            clock_s = math.nan if clock_limit == "null" else float(clock_limit)
            run_row = {"run": run.id, "setting": setting, "condition": condition, "seed": seed, "oracle": is_oracle}
            run_row |= {"folder": run.tags.get(RUN_FOLDER_TAG, ""), CLOCK_LIMIT_COLUMN: clock_s}
            run_row |= {
                cost: sum(run.metrics.get(metric, math.nan) for metric in METRICS_BY_COST[cost])
                for cost in COST_COLUMNS
            }
            run_rows.append(run_row)
    return pd.DataFrame(run_rows)


def _check_horizon(horizon: int, metrics: Sequence[str], curves: "pd.DataFrame") -> None:
    """Raise `OptionError` for a `horizon` before the first evaluation of a run, or after the last one of all runs.

    `curves` are the evaluations of `metrics`. A run that ends before the horizon counts up to its last evaluation.
    """
    for metric in metrics:
        rounds_by_run = curves[curves[metric].notna() & (curves["round"] > 0)].groupby("run")["round"]
        first_round, last_round = rounds_by_run.min().max(), rounds_by_run.max().max()
        if horizon < first_round or horizon > last_round:
            interval_text = f"[{first_round}, {last_round}], where {metric} is evaluated"
            raise range_error("horizon", f"an integer in {interval_text}, or null for the end of each run", horizon)


def _cut_costs_at_horizon(frames: RunFrames, horizon: int) -> "pd.DataFrame":
    """Return the frame of runs with their costs up to the last evaluation that is not after round `horizon`."""
    counted_rows = frames.curves[frames.curves["round"] <= horizon].sort_values("round").groupby("run").last()
    costs = counted_rows.reindex(frames.runs["run"], columns=[c for c in COST_COLUMNS if c in counted_rows])
    return frames.runs.assign(**costs.reset_index(drop=True))


def list_differing_options(cell: Cell, baseline_cell: Cell, matching: Matching) -> tuple[str, ...]:
    """Return the options in which runs of two cells differ on a common seed, although they are not compared.

    A verdict on runs of 50 rounds against runs of 500 says nothing about the selector. The options of a choice that
    differs itself are left out, and so are the options that the compared choice may set. If the cells differ in an
    experiment or in a name that a user gave, any option may differ. Then only the budgets are returned.

    Args:
        cell: setting and condition of the cell.
        baseline_cell: cell of the baseline in the same setting.
        matching: runs of all cells.
    """
    compared_option = matching.condition
    runs, baseline_runs = matching.cells.get(cell, {}), matching.cells.get(baseline_cell, {})
    implied_options = IMPLIED_OPTION_PREFIXES.get(compared_option, ())
    differing_names: set[str] = set()
    for seed in set(runs) & set(baseline_runs):
        options, base_options = map(tracked_run.result_options, (runs[seed], baseline_runs[seed]))
        differences = tracked_run.list_differences(options, base_options)
        values_by_option = {name: {cell: a, baseline_cell: b} for name, a, b in differences}
        compares_budgets_only = ANY_OPTION_PREFIX in implied_options or compared_option not in {
            **dict(options),
            **dict(base_options),
        }
        differing_names |= {
            name
            for name in values_by_option
            if name != compared_option
            and not name.startswith(f"{compared_option}.")
            and not tracked_run.is_implied_by_group(name, values_by_option)
            and (name in BUDGET_TAGS if compares_budgets_only else not name.startswith(implied_options))
        }
    option_names = [
        name for name in differing_names if not any(name.startswith(f"{option}.") for option in differing_names)
    ]
    return tuple(
        sorted(
            option_names,
            key=lambda name: (
                FIRST_NAMED_OPTIONS.index(name) if name in FIRST_NAMED_OPTIONS else len(FIRST_NAMED_OPTIONS),
                name,
            ),
        )
    )


def find_newest_sweep(matching: Matching) -> str | None:
    """Return the id of the newest sweep of the runs; None if one sweep has all of them, or none belongs to any.

    `matching` holds the runs by cell and seed.
    """
    common_sweeps = set.intersection(*(set(run.sweep_ids) for run in matching.runs))
    return None if common_sweeps else tracked_run.name_newest_sweep(matching.runs)
