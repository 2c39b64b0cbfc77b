"""Match runs for a comparison: put them into cells, and report runs that do not fit.

A run belongs to the cell of its row and its column. The runs of a cell may differ only in their seed. Options that
differ from cell to cell, other than the compared ones and their options, are reported next to the table.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fedcohort.errors import TrackingError
from fedcohort.ranges import refuse
from fedcohort.record.tags import BUDGET, ROUNDS
from fedcohort.results.matching.cells import (
    NO_COLUMN,
    Cell,
    find_minorities,
    follows_from_choice,
    natural,
    spell,
    spell_values,
)
from fedcohort.results.matching.notes import describe_runs, find_oracles
from fedcohort.results.matching.run import SEED, Run, differences, label, settings

ALL = ""  # prefix of every option
STANDS_FOR = {  # prefixes of options that a group or option may set in addition to its own: reported, but comparable
    "heterogeneity": ("partition", "label_noise", "feature_noise"),
    "agg": ("server", "objective", "regulariser", "deadline", "client"),
    "experiment": (ALL,),
    "model": ("n_params",),
    "dataset": ("n_params", "n_clients", "clients"),
    "clients": ("n_clients",),
}
ENDS = frozenset(BUDGET) - {ROUNDS}  # options that may end a run before its last round

Settings = tuple[tuple[str, str], ...]  # name, value
# Groups and options that decide the clients and their data.
FEDERATION = frozenset(
    ("dataset", "partition", "label_noise", "feature_noise", "split", "clients", "data_seed", "device", "availability")
)


@dataclass(frozen=True)
class Matched:
    """Runs in their cells.

    Attributes:
        cells: runs by cell and seed, in the order of rows and columns.
        notes: runs that were left out, with the reason, and options that also differ.
        odd: cells that differ from most cells of their column in more than their row.
        oracles: cells whose runs read what no server can know.
        federations: options that decide each cell's clients and data, without those that are compared. Equal seeds form
            no pairs between cells that differ in them.
    """

    rows: Sequence[str]
    cols: Sequence[str]
    cells: Mapping[Cell, Mapping[int, Run]]
    notes: Sequence[str]
    odd: frozenset[Cell] = frozenset()
    oracles: frozenset[Cell] = frozenset()
    federations: Mapping[Cell, Settings] = field(default_factory=dict)


@dataclass
class _Matcher:
    rows: str
    cols: str | None
    metric: str
    left_out: dict[str, list[str]] = field(default_factory=dict)  # by reason
    differences: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """The runs that were left out, with the reason, and the options that also differ."""
        return [f"left out: {', '.join(runs)}: {why}" for why, runs in self.left_out.items()] + self.differences

    def assign(self, runs: Iterable[Run]) -> dict[Cell, list[Run]]:
        """Return the usable runs by cell, and note the runs that are left out."""
        cells: dict[Cell, list[Run]] = {}
        for run in runs:
            row, column = run.fact(self.rows), NO_COLUMN if self.cols is None else run.fact(self.cols)
            lacking = [str(name) for name, value in ((self.rows, row), (self.cols, column)) if value is None]
            if run.status != "finished":
                self.leave_out(run, f"it is {run.status}")
            elif lacking or SEED not in run.params:
                self.leave_out(run, f"it has no {', '.join(lacking) or SEED}")
            elif self.metric not in run.metrics:
                self.leave_out(run, f"it has no {self.metric}")
            elif row is not None and column is not None:
                cells.setdefault((row, column), []).append(run)
        return cells

    def leave_out(self, run: Run, why: str) -> None:
        """Note that a run is left out."""
        self.left_out.setdefault(why, []).append(label(run))

    @property
    def compared(self) -> list[str]:
        """The parameters and tags that are compared."""
        return [name for name in (self.rows, self.cols) if name]

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Prefixes of the options of the compared groups, which may differ."""
        return tuple(f"{name}." for name in self.compared)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """Prefixes of the options that the compared groups may set in addition to their options."""
        return tuple(prefix for name in self.compared for prefix in STANDS_FOR.get(name, ()))

    def federation(self, run: Run) -> Settings:
        """Return the options that decide the clients and data, without compared ones; () if a name is compared."""
        options = settings(run)
        if ALL in self.stand_ins or not set(self.compared) <= {name for name, _ in options}:
            return ()
        groups = FEDERATION - {*self.compared, *self.stand_ins}
        return tuple(
            (name, value) for name, value in options if name.partition(".")[0] in groups and name not in self.compared
        )

    def choose(self, cell: Cell, runs: Sequence[Run], common: Mapping[Settings, int]) -> dict[int, Run]:
        """Return one run for each seed, all with the options that most runs of the cell have; among equals the newest.

        A federation that more runs of all cells have comes first, so that cells can be compared. If every seed has one
        run, the runs may differ in their budgets (such as the time that another run of the seed took).

        Args:
            cell: cell of the runs.
            runs: oldest first.
            common: number of (run, seed) of each federation over all cells.
        """
        one_per_seed = len({run.seed for run in runs}) == len(runs)
        ignored = ENDS if one_per_seed else frozenset()
        options = {run.id: tuple(pair for pair in settings(run) if pair[0] not in ignored) for run in runs}
        counts = Counter(options.values())
        newest = {options[run.id]: i for i, run in enumerate(runs)}
        shared = {options[run.id]: common[self.federation(run)] for run in runs}
        usual = max(counts, key=lambda group: (shared[group], counts[group], newest[group]))
        chosen: dict[int, Run] = {}
        for run in runs:
            if options[run.id] != usual:
                differ = "; ".join(f"{name}={a} (others {b})" for name, a, b in differences(options[run.id], usual))
                self.leave_out(run, f"it differs from the other runs of {spell(cell)}: {differ}")
                continue
            if run.seed in chosen:
                self.leave_out(chosen[run.seed], "a newer run has the same settings and seed")
            chosen[run.seed] = run
        return dict(sorted(chosen.items()))

    def find_odd(self, cells: Mapping[Cell, Mapping[int, Run]]) -> frozenset[Cell]:
        """Note options that differ from cell to cell and are not compared, and return the odd cells."""
        firsts = {cell: next(iter(runs.values())) for cell, runs in cells.items()}
        names = {name for run in firsts.values() for name, _ in settings(run)}
        odd: set[Cell] = set()
        values = {name: _values(name, firsts) for name in sorted(names)}
        by_seed = {
            name
            for name in ENDS
            if any(len({_value(name, run) for run in runs.values()}) > 1 for runs in cells.values())
        }
        for name, by_cell in values.items():
            is_compared = name in self.compared or name.startswith(self.prefixes)
            if name in by_seed or len(set(by_cell.values())) == 1 or is_compared or follows_from_choice(name, values):
                continue
            self.differences.append(f"also differs: {name} is {spell_values(by_cell)}")
            if not name.startswith(self.stand_ins):
                odd |= find_minorities(by_cell)
        for name in sorted(by_seed - set(self.compared)):
            odd |= self._find_odd_by_seed(name, cells)
        return frozenset(odd)

    def _find_odd_by_seed(self, name: str, cells: Mapping[Cell, Mapping[int, Run]]) -> set[Cell]:
        """Note budgets that differ on a seed, if the runs of a cell differ in them, and return the odd cells."""
        odd: set[Cell] = set()
        differ: dict[str, list[str]] = {}
        for seed in sorted({seed for runs in cells.values() for seed in runs}):
            values = _values(name, {cell: runs[seed] for cell, runs in cells.items() if seed in runs})
            if len(set(values.values())) > 1:
                differ.setdefault(spell_values(values), []).append(str(seed))
                odd |= find_minorities(values)
        self.differences += [
            f"also differs: {name} on seed {', '.join(seeds)} is {spelled}" for spelled, seeds in differ.items()
        ]
        return set() if name.startswith(self.stand_ins) else odd


def match(runs: Sequence[Run], rows: str, cols: str | None, *metrics: str) -> Matched:
    """Return the runs in their cells.

    Args:
        runs: all runs that may be compared, oldest first.
        rows: the parameter or tag whose values are the rows of the table.
        cols: the parameter or tag whose values are the columns; None for a single column.
        metrics: a run without the first one is left out.

    Raises:
        OptionError: no run has the parameter, tag or metric.
        TrackingError: no run can be compared.
    """
    if not runs:
        raise TrackingError("there is no finished run to compare")
    for option, name in (("rows", rows), ("cols", cols)):
        if name is not None and all(run.fact(name) is None for run in runs):
            values: dict[str, set[str]] = {}
            for key, value in (item for run in runs for item in run.params.items()):
                values.setdefault(key, set()).add(value)
            names = sorted(key for key in values if len(values[key]) > 1) or sorted(values)
            raise refuse(option, f"a parameter or tag of the runs ({', '.join(names)} and more)", name)
    logged = sorted({key for run in runs for key in run.metrics})
    for metric in metrics:
        if metric not in logged:
            raise refuse("metric", f"one of {', '.join(logged) or 'none (the runs have no metrics)'}", metric)
    matcher = _Matcher(rows, cols, metrics[0])
    assigned = matcher.assign(runs)
    if not assigned:
        raise TrackingError(f"none of the {len(runs)} runs can be compared: " + "; ".join(matcher.notes[:3]))
    common = Counter(
        federation
        for cell_runs in assigned.values()
        for federation, _ in {(matcher.federation(run), run.seed) for run in cell_runs}
    )
    cells = {cell: matcher.choose(cell, assigned[cell], common) for cell in sorted(assigned, key=natural)}
    federations = {cell: matcher.federation(next(iter(by_seed.values()))) for cell, by_seed in cells.items()}
    odd = matcher.find_odd(cells)
    row_values, col_values = (
        sorted({cell[i] for cell in cells}, key=lambda value: natural((value,))) for i in range(2)
    )
    notes = [*matcher.notes, *describe_runs(cells, metrics[0])]
    return Matched(row_values, col_values, cells, notes, odd, frozenset(find_oracles(cells)), federations)


def _values(name: str, runs: Mapping[Cell, Run]) -> dict[Cell, str]:
    """Return the value of an option in one run of each cell."""
    return {cell: _value(name, run) for cell, run in runs.items()}


def _value(name: str, run: Run) -> str:
    return run.params.get(name, "none")
