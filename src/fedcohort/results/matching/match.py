"""Match runs for a comparison: put them into cells, (setting, condition), and report runs that do not fit.

The rows of a comparison are its conditions and the columns its settings; with a baseline among the columns it is the
other way round. The runs of a cell may differ only in their seed. Options that differ from cell to cell, other than the
compared ones and their options, are reported next to the table.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fedcohort.errors import TrackingError
from fedcohort.ranges import range_error
from fedcohort.record.tags import BUDGET_TAGS, ROUNDS_TAG
from fedcohort.results.compare import Cell
from fedcohort.results.matching import tracked_run
from fedcohort.results.matching.tracked_run import SEED_OPTION, OptionValues, Run, RunsByCell, result_options

ANY_OPTION_PREFIX = ""  # prefix of every option
IMPLIED_OPTION_PREFIXES = {  # prefixes of options that a group or option may set, too: reported, but comparable
    "heterogeneity": ("partition", "label_noise", "feature_noise"),
    "agg": ("server", "objective", "regulariser", "deadline", "client"),
    "experiment": (ANY_OPTION_PREFIX,),
    "model": ("n_params",),
    "dataset": ("n_params", "n_clients", "clients"),
    "clients": ("n_clients",),
}
EARLY_END_OPTIONS = frozenset(BUDGET_TAGS) - {ROUNDS_TAG}  # options that may end a run before its last round
# Groups and options that decide the clients and their data.
FEDERATION_OPTIONS = frozenset(
    ("dataset", "partition", "label_noise", "feature_noise", "split", "clients", "data_seed", "device", "availability")
)


@dataclass(frozen=True)
class Matching:
    """The runs of a comparison by cell, (setting, condition), and seed.

    Attributes:
        condition: the parameter or tag whose values are the conditions.
        setting: the parameter or tag whose values are the settings; None if there is one setting, with the name "".
        cells: runs by cell and seed.
        notes: runs that were left out, with the reason, and options that also differ.
        atypical_cells: cells that differ from most cells of their setting in more than their condition.
        oracles: cells whose runs read what no server can know.
        federations: options that decide each cell's clients and data, without those that are compared. Equal seeds form
            no pairs between cells that differ in them.
    """

    condition: str
    setting: str | None
    cells: RunsByCell
    notes: Sequence[str]
    atypical_cells: frozenset[Cell] = frozenset()
    oracles: frozenset[Cell] = frozenset()
    federations: Mapping[Cell, OptionValues] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """All matched runs, in the order of their cells, (setting, condition)."""
        return [run for by_seed in self.cells.values() for run in by_seed.values()]


class _RunMatcher:
    """The assignment of runs to cells, with the runs that are left out and the options that differ.

    Attributes:
        rows, columns: the parameters or tags that are rows and columns of the table; `columns` is None for one column.
        metric: metric that a run must have.
        compared: `rows` and `columns` as a list.
        prefixes: prefixes of the options of the compared groups, which may differ.
        implied: prefixes of the options that the compared groups may set in addition to their options.
        left_out: labels of the runs that are left out, by reason.
        differences: one text for each option that differs from cell to cell.
    """

    def __init__(self, rows: str, columns: str | None, metric: str) -> None:
        self.rows, self.columns, self.metric = rows, columns, metric
        self.compared = [name for name in (rows, columns) if name]
        self.prefixes = tuple(f"{name}." for name in self.compared)
        self.implied = tuple(prefix for name in self.compared for prefix in IMPLIED_OPTION_PREFIXES.get(name, ()))
        self.left_out: dict[str, list[str]] = {}
        self.differences: list[str] = []

    @property
    def notes(self) -> list[str]:
        """The runs that were left out, with the reason, and the options that also differ."""
        return [f"left out: {', '.join(runs)}: {reason}" for reason, runs in self.left_out.items()] + self.differences

    def assign_runs(self, runs: Iterable[Run]) -> dict[tuple[str, str], list[Run]]:
        """Return the comparable ones of `runs` by row and column of the table; record why others are left out."""
        runs_by_cell: dict[tuple[str, str], list[Run]] = {}
        for run in runs:
            row, column = run.find_value(self.rows), "" if self.columns is None else run.find_value(self.columns)
            missing_options = [str(name) for name, value in ((self.rows, row), (self.columns, column)) if value is None]
            if run.status != "finished":
                self.exclude_run(run, f"it is {run.status}")
            elif missing_options or SEED_OPTION not in run.params:
                self.exclude_run(run, f"it has no {', '.join(missing_options) or SEED_OPTION}")
            elif self.metric not in run.metrics:
                self.exclude_run(run, f"it has no {self.metric}")
            elif row is not None and column is not None:
                runs_by_cell.setdefault((row, column), []).append(run)
        return runs_by_cell

    def exclude_run(self, run: Run, reason: str) -> None:
        """Record that `run` is left out, with the reason."""
        self.left_out.setdefault(reason, []).append(tracked_run.label_run(run))

    def federation(self, run: Run) -> OptionValues:
        """Return the options that decide the run's clients and data, without the options that are compared.

        The result is () if something other than options is compared, such as names, or experiments that set any option.
        """
        options = result_options(run)
        if ANY_OPTION_PREFIX in self.implied or not set(self.compared) <= dict(options).keys():
            return ()
        federation_groups = FEDERATION_OPTIONS - {*self.compared, *self.implied}
        return tuple(o for o in options if o[0].partition(".")[0] in federation_groups and o[0] not in self.compared)

    def choose_runs(
        self, compared_cell: Cell, runs: Sequence[Run], federation_counts: Mapping[OptionValues, int]
    ) -> dict[int, Run]:
        """Return the newest run of each seed, among the runs with the options that most runs of the cell have.

        Options with a federation that more runs of all cells have are preferred, so that cells can be compared. If
        every seed has one run, the runs may differ in their budgets (such as the time that another run took).
        `compared_cell` is (setting, condition), and `federation_counts` the number of (run, seed) of each federation.
        """
        has_one_run_per_seed = len({run.seed for run in runs}) == len(runs)
        ignored_options = EARLY_END_OPTIONS if has_one_run_per_seed else frozenset()
        options = {
            run.id: tuple(option for option in result_options(run) if option[0] not in ignored_options) for run in runs
        }
        counts = Counter(options.values())
        newest_position = {options[run.id]: i for i, run in enumerate(runs)}
        n_with_federation = {options[run.id]: federation_counts[self.federation(run)] for run in runs}
        majority_options = max(
            counts, key=lambda group: (n_with_federation[group], counts[group], newest_position[group])
        )
        chosen_runs: dict[int, Run] = {}
        for run in runs:
            if options[run.id] != majority_options:
                option_differences = tracked_run.list_differences(options[run.id], majority_options)
                differences_text = "; ".join(f"{name}={a} (others {b})" for name, a, b in option_differences)
                cell_name = tracked_run.format_cell(compared_cell)
                self.exclude_run(run, f"it differs from the other runs of {cell_name}: {differences_text}")
                continue
            if run.seed in chosen_runs:
                self.exclude_run(chosen_runs[run.seed], "a newer run has the same settings and seed")
            chosen_runs[run.seed] = run
        return dict(sorted(chosen_runs.items()))

    def find_atypical_cells(self, cells: RunsByCell) -> frozenset[Cell]:
        """Add options that differ between cells, but are not what is compared, to `differences`.

        Returns the cells in which such an option has another value than in most cells of their setting. A cell has the
        runs of one condition in one setting, by seed. Where its runs have different budgets, such as `until.bytes`,
        the budgets are compared seed by seed.
        """
        first_runs = {cell: next(iter(runs.values())) for cell, runs in cells.items()}
        option_names = sorted({name for run in first_runs.values() for name, _ in result_options(run)})
        values = {
            name: {cell: _find_option_text(name, run) for cell, run in first_runs.items()} for name in option_names
        }
        seeds = sorted({seed for runs in cells.values() for seed in runs})
        atypical_cells: set[Cell] = set()
        for name in option_names:
            is_compared_option = name in self.compared or name.startswith(self.prefixes)
            if is_compared_option or tracked_run.is_implied_by_group(name, values):
                continue
            values_by_label = {"": values[name]}
            if name in EARLY_END_OPTIONS and any(
                len({_find_option_text(name, r) for r in x.values()}) > 1 for x in cells.values()
            ):
                values_by_label = {
                    f" on seed {seed}": {
                        cell: _find_option_text(name, runs[seed]) for cell, runs in cells.items() if seed in runs
                    }
                    for seed in seeds
                }
            for seeds_text, options_by_cell in values_by_label.items():
                if len(set(options_by_cell.values())) > 1:
                    values_text = tracked_run.format_option_values(options_by_cell)
                    self.differences.append(f"also differs: {name}{seeds_text} is {values_text}")
                    if not name.startswith(self.implied):
                        atypical_cells |= tracked_run.find_minority_cells(options_by_cell)
        return frozenset(atypical_cells)


def match(runs: Sequence[Run], rows: str, columns: str | None, *metrics: str, baseline: str | None = None) -> Matching:
    """Assign runs to cells, (setting, condition), and choose one run for each seed.

    Args:
        runs: all runs that may be compared, oldest first.
        rows: the parameter or tag whose values are the rows of the table.
        columns: the parameter or tag whose values are the columns; None for a single column.
        metrics: metrics that some run must have; a run without the first one is left out.
        baseline: a value of `rows` or of `columns`. The values of the same parameter are then the conditions. If it is
            None, the values of `rows` are.

    Raises:
        OptionError: no run has the parameter, tag, metric or baseline.
        TrackingError: there are no runs, or all are left out.
    """
    if not runs:
        raise TrackingError("there is no finished run to compare: finish or resume one, or choose other runs")
    for option, name in (("rows", rows), ("cols", columns)):
        if name is not None and all(run.find_value(name) is None for run in runs):
            key_counts = Counter(key for key, _ in {parameter for run in runs for parameter in run.params.items()})
            parameter_names = sorted(key for key, n_values in key_counts.items() if n_values > 1) or sorted(key_counts)
            raise range_error(option, f"a parameter or tag of the runs ({', '.join(parameter_names)} and more)", name)
    all_metrics = sorted({key for run in runs for key in run.metrics})
    for metric in metrics:
        if metric not in all_metrics:
            raise range_error("metric", f"one of {', '.join(all_metrics) or 'none (the runs have no metrics)'}", metric)
    matcher = _RunMatcher(rows, columns, metrics[0])
    runs_by_position = matcher.assign_runs(runs)
    if not runs_by_position:
        raise TrackingError(f"choose other runs, none of {len(runs)} can be compared: " + "; ".join(matcher.notes[:3]))
    natural_key = tracked_run.natural_sort_key
    row_values, column_values = (sorted({key[i] for key in runs_by_position}, key=natural_key) for i in range(2))
    if baseline is not None and baseline not in (*row_values, *column_values):
        columns = f" or {columns} ({', '.join(column_values)})" if columns else ""
        raise range_error("baseline", f"a value of {rows} ({', '.join(row_values)}){columns}", baseline)
    federation_counts = Counter(
        federation
        for runs_at_position in runs_by_position.values()
        for federation, _ in {(matcher.federation(run), run.seed) for run in runs_at_position}
    )
    has_column_conditions = baseline is not None and baseline not in row_values
    runs_by_cell = {}
    for row, column in sorted(runs_by_position, key=lambda key: (natural_key(key[0]), natural_key(key[1]))):
        cell = (row, column) if has_column_conditions else (column, row)
        runs_by_cell[cell] = matcher.choose_runs(cell, runs_by_position[row, column], federation_counts)
    atypical_cells = matcher.find_atypical_cells(runs_by_cell)
    return Matching(
        *((str(columns), rows) if has_column_conditions else (rows, columns)),
        runs_by_cell,
        notes=[*matcher.notes, *tracked_run.describe_matched_runs(runs_by_cell, metrics[0])],
        atypical_cells=atypical_cells,
        oracles=frozenset(tracked_run.find_oracles(runs_by_cell)),
        federations={cell: matcher.federation(next(iter(by_seed.values()))) for cell, by_seed in runs_by_cell.items()},
    )


def _find_option_text(name: str, run: Run) -> str:
    return run.params.get(name, "none")
