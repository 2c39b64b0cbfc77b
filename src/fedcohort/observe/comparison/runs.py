"""Which runs are compared: they are put into cells, and those that don't belong there are named.

A run belongs to the cell of its row and its column. Inside a cell runs may differ in their seed alone; a parameter that
differs from cell to cell and is neither the row's nor the column's own is said beside the table.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fedcohort import units
from fedcohort.errors import TrackingError
from fedcohort.observe.comparison.cells import ONE, Cell, comes_along, find_minorities, spell, spell_values
from fedcohort.observe.comparison.order import natural
from fedcohort.observe.comparison.tracked import SEED, Run, commit, differences, label, settings
from fedcohort.observe.reached import CLOCK
from fedcohort.ranges import refuse
from fedcohort.tracking.record import ASKED, BUDGET, DONE, FORCED, YARDSTICK

ALL = ""  # how every setting begins
STANDS_FOR = {  # what a word may set beside its own options: said, but no reason against a comparison
    "heterogeneity": ("partition", "label_noise", "feature_noise"),
    "agg": ("server", "objective", "regulariser", "deadline", "client"),
    "experiment": (ALL,),
    "model": ("n_params",),
    "dataset": ("n_params", "n_clients", "clients"),
    "clients": ("n_clients",),
}
ENDS = frozenset(BUDGET) - {ASKED}  # what may end a run before its last round

Settings = tuple[tuple[str, str], ...]  # name, value
# What decides who the clients are and what they hold.
FEDERATION = frozenset(
    ("dataset", "partition", "label_noise", "feature_noise", "split", "clients", "data_seed", "device", "availability")
)


@dataclass(frozen=True)
class Sorted:
    """Runs, sorted for a comparison.

    Attributes:
        cells: runs by seed, in the order of rows and columns.
        notes: what was left out and why, what else differs.
        odd: cells that differ from most of their column in more than their row.
        yardsticks: cells whose runs read what no server can know.
        federations: what decides each cell's clients and data, where that isn't what is compared: seeds of cells that
            differ in it aren't pairs.
    """

    rows: Sequence[str]
    cols: Sequence[str]
    cells: Mapping[Cell, Mapping[int, Run]]
    notes: Sequence[str]
    odd: frozenset[Cell] = frozenset()
    yardsticks: frozenset[Cell] = frozenset()
    federations: Mapping[Cell, Settings] = field(default_factory=dict)


@dataclass
class _Sorter:
    rows: str
    cols: str | None
    metric: str
    left_out: dict[str, list[str]] = field(default_factory=dict)  # by reason
    differences: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        return [f"left out: {', '.join(of)}: {why}" for why, of in self.left_out.items()] + self.differences

    def place(self, runs: Iterable[Run]) -> dict[Cell, list[Run]]:
        """The usable runs by cell; the others in the notes."""
        cells: dict[Cell, list[Run]] = {}
        for run in runs:
            row, col = run.fact(self.rows), ONE if self.cols is None else run.fact(self.cols)
            lacking = [str(name) for name, value in ((self.rows, row), (self.cols, col)) if value is None]
            if run.status != "finished":
                self.leave_out(run, f"it is {run.status}")
            elif lacking or SEED not in run.params:
                self.leave_out(run, f"it has no {', '.join(lacking) or SEED}")
            elif self.metric not in run.metrics:
                self.leave_out(run, f"it has no {self.metric}")
            elif row is not None and col is not None:
                cells.setdefault((row, col), []).append(run)
        return cells

    def leave_out(self, run: Run, why: str) -> None:
        self.left_out.setdefault(why, []).append(label(run))

    @property
    def compared(self) -> list[str]:
        """The settings that are compared."""
        return [name for name in (self.rows, self.cols) if name]

    @property
    def own(self) -> tuple[str, ...]:
        """How the options of what is compared begin, which may differ."""
        return tuple(f"{name}." for name in self.compared)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """How the settings begin that what is compared may set beside its own."""
        return tuple(other for name in self.compared for other in STANDS_FOR.get(name, ()))

    def federation(self, run: Run) -> Settings:
        """What decides the run's clients and data, but for what is compared. () where that is no setting, as a name."""
        known = settings(run)
        if ALL in self.stand_ins or not set(self.compared) <= {name for name, _ in known}:
            return ()
        groups = FEDERATION - {*self.compared, *self.stand_ins}
        mine = [(name, value) for name, value in known if name.partition(".")[0] in groups]
        return tuple((name, value) for name, value in mine if name not in self.compared)

    def alike(self, cell: Cell, runs: Sequence[Run], common: Mapping[Settings, int]) -> dict[int, Run]:
        """Keep one run a seed, all of the settings that most runs of the cell have; of equals the newest.

        Those of a federation that more runs of all cells have come first (`common`): cells are to be compared. Where
        every seed has one run, each may have a budget of its own (the time that another run of the seed took).
        """
        own_budgets = len({run.seed for run in runs}) == len(runs)
        kind = {run.id: _without_budget(settings(run)) if own_budgets else settings(run) for run in runs}
        kinds = Counter(kind.values())
        newest = {kind[run.id]: i for i, run in enumerate(runs)}
        shared = {kind[run.id]: common[self.federation(run)] for run in runs}
        usual = max(kinds, key=lambda each: (shared[each], kinds[each], newest[each]))
        chosen: dict[int, Run] = {}
        for run in runs:
            if kind[run.id] != usual:
                differ = "; ".join(f"{name}={a} (others {b})" for name, a, b in differences(kind[run.id], usual))
                self.leave_out(run, f"it differs from the other runs of {spell(cell)}: {differ}")
                continue
            if run.seed in chosen:
                self.leave_out(chosen[run.seed], "a newer run has the same settings and seed")
            chosen[run.seed] = run
        return dict(sorted(chosen.items()))

    def across(self, cells: Mapping[Cell, Mapping[int, Run]]) -> frozenset[Cell]:
        """Note settings that differ from cell to cell and aren't what is compared, and return the odd cells."""
        firsts = {cell: next(iter(runs.values())) for cell, runs in cells.items()}
        names = {name for run in firsts.values() for name, _ in settings(run)}
        odd: set[Cell] = set()
        every = {n: _values(n, firsts) for n in sorted(names)}
        own = {
            name for name in ENDS if any(len({_value(name, run) for run in of.values()}) > 1 for of in cells.values())
        }
        for name, values in every.items():
            if name in own or len(set(values.values())) == 1 or name in self.compared or name.startswith(self.own):
                continue
            if comes_along(name, every):
                continue
            self.differences.append(f"also differs: {name} is {spell_values(values)}")
            if not name.startswith(self.stand_ins):
                odd |= find_minorities(values)
        for name in sorted(own - set(self.compared)):
            odd |= self._by_seed(name, cells)
        return frozenset(odd)

    def _by_seed(self, name: str, cells: Mapping[Cell, Mapping[int, Run]]) -> set[Cell]:
        """Note where a budget that runs of a cell have each their own differs on a seed, and return the odd cells."""
        odd: set[Cell] = set()
        differ: dict[str, list[str]] = {}
        for seed in sorted({seed for of in cells.values() for seed in of}):
            values = _values(name, {cell: of[seed] for cell, of in cells.items() if seed in of})
            if len(set(values.values())) > 1:
                differ.setdefault(spell_values(values), []).append(str(seed))
                odd |= find_minorities(values)
        self.differences += [
            f"also differs: {name} on seed {', '.join(seeds)} is {spelled}" for spelled, seeds in differ.items()
        ]
        return set() if name.startswith(self.stand_ins) else odd

    def code(self, cells: Mapping[Cell, Mapping[int, Run]]) -> None:
        """Which commit the figures come from."""
        commits = Counter(commit(run) for of in cells.values() for run in of.values())
        if len(commits) > 1:
            named = ", ".join(f"{name} ({n})" for name, n in commits.items())
            self.differences.append(f"the runs are of several commits: {named}")
        else:
            self.differences += [f"all runs are of commit {name}" for name in commits]
        for run in (run for of in cells.values() for run in of.values() if FORCED in run.tags):
            self.differences.append(f"forced to go on: {label(run)} {run.tags[FORCED]}")

    def yardsticks(self, cells: Mapping[Cell, Mapping[int, Run]]) -> frozenset[Cell]:
        """Cells whose runs read what no server can know, as they said when they started."""
        read = {
            cell: next((run.tags[YARDSTICK] for run in of.values() if YARDSTICK in run.tags), "")
            for cell, of in cells.items()
        }
        for words in dict.fromkeys(filter(None, read.values())):
            where = ", ".join(spell(cell) for cell in cells if read[cell] == words)
            self.differences.append(f"yardsticks, no methods: {where} read {words}, which no server can know")
        return frozenset(cell for cell, words in read.items() if words)

    def check_config(self, cells: Mapping[Cell, Mapping[int, Run]]) -> None:
        for run in (run for of in cells.values() for run in of.values()):
            if not math.isfinite(value := run.metrics[self.metric]):
                self.differences.append(f"not finite: {label(run)} has {self.metric}={value}, and so has its cell")

    def short(self, cells: Mapping[Cell, Mapping[int, Run]]) -> None:
        """Runs that a callback or a budget ended count, since they have finished, but not unsaid."""
        found = [run for of in cells.values() for run in of.values() if run.early]
        stopped = [run for run in found if not run.ended_by]
        labels = [f"{label(run)} ({run.tags[DONE]} of {run.params[ASKED]} rounds)" for run in stopped]
        self.differences += [f"ended early: {', '.join(labels)}"] if labels else []
        ended: dict[str, list[Run]] = {}
        for run in (run for run in found if run.ended_by):
            why = ", ".join(f"{name}={run.params.get(name, '?')}" for name in run.ended_by)
            ended.setdefault(why, []).append(run)
        for why, of in ended.items():
            count = f"{len(of)} runs" if len(of) > 1 else "1 run"
            clock = sorted(run.metrics[CLOCK] for run in of if CLOCK in run.metrics and "virtual_s" in why)
            late = f", whose last ended at {units.seconds(clock[0])} to {units.seconds(clock[-1])}" if clock else ""
            after = _spell_range([int(run.tags[DONE]) for run in of])
            self.differences.append(f"ended by {why}: {count}, after {after} rounds{late}")

    def older(self, cells: Mapping[Cell, Mapping[int, Run]]) -> None:
        """Note where a metric's last value is older than the run's end, which its costs are of."""
        found = [run for of in cells.values() for run in of.values() if run.age_of(self.metric)]
        if found:
            ends = [int(run.tags[DONE]) for run in found]
            values = [end - run.age_of(self.metric) for end, run in zip(ends, found, strict=True)]
            count = f"{len(found)} runs" if len(found) > 1 else "1 run"
            where = f"in {count} that ended after {_spell_range(ends)}"
            self.differences.append(f"{self.metric} is of round {_spell_range(values)} {where}: costs are of the end")

    def seeds(self, cells: Mapping[Cell, Mapping[int, Run]]) -> None:
        everywhere = {seed for runs in cells.values() for seed in runs}
        for cell, runs in cells.items():
            if missing := sorted(everywhere - set(runs)):
                self.differences.append(f"missing: {spell(cell)} has no run of seed {', '.join(map(str, missing))}")


def _spell_range(values: Sequence[int]) -> str:
    """`5`, or `3 to 5`."""
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _without_budget(kind: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in kind if name not in ENDS)


def sort(runs: Sequence[Run], rows: str, cols: str | None, *metrics: str) -> Sorted:
    """Put `runs` into cells. Raises `OptionError` for a name that no run knows.

    metrics: the first is the headline, without which a run doesn't count.
    """
    for option, name in (("rows", rows), ("cols", cols)):
        if name is not None and all(run.fact(name) is None for run in runs):
            values: dict[str, set[str]] = {}
            for key, value in (item for run in runs for item in run.params.items()):
                values.setdefault(key, set()).add(value)
            known = sorted(key for key in values if len(values[key]) > 1) or sorted(values)
            raise refuse(option, f"a parameter or tag of the runs ({', '.join(known)} and more)", name)
    known = sorted({key for run in runs for key in run.metrics})
    for metric in metrics:
        if metric not in known:
            raise refuse("metric", f"one of {', '.join(known) or 'none (the runs have no metrics)'}", metric)
    sorter = _Sorter(rows, cols, metrics[0])
    placed = sorter.place(runs)
    if not placed:
        raise TrackingError(f"none of the {len(runs)} runs can be compared: " + "; ".join(sorter.notes[:3]))
    common = Counter(fed for of in placed.values() for fed, _ in {(sorter.federation(run), run.seed) for run in of})
    cells = {cell: sorter.alike(cell, placed[cell], common) for cell in sorted(placed, key=natural)}
    federations = {cell: sorter.federation(next(iter(of.values()))) for cell, of in cells.items()}
    odd = sorter.across(cells)
    yardsticks = sorter.yardsticks(cells)
    sorter.seeds(cells)
    sorter.short(cells)
    sorter.older(cells)
    sorter.check_config(cells)
    sorter.code(cells)
    row_values = sorted({row for row, _ in cells}, key=lambda value: natural((value,)))
    col_values = sorted({col for _, col in cells}, key=lambda value: natural((value,)))
    return Sorted(row_values, col_values, cells, sorter.notes, odd, yardsticks, federations)


def _values(name: str, runs: Mapping[Cell, Run]) -> dict[Cell, str]:
    """A setting's value in a run of each cell."""
    return {cell: _value(name, run) for cell, run in runs.items()}


def _value(name: str, run: Run) -> str:
    return run.params.get(name, "none")
