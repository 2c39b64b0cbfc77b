"""Match runs for a comparison: put them into cells, and report those that do not fit.

A run belongs to the cell of its row and its column. Runs of a cell may differ in their seed only. An option that
differs from cell to cell, and is neither the row's nor the column's own, is reported beside the table.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fedcohort.errors import TrackingError
from fedcohort.ranges import refuse
from fedcohort.record.tags import ASKED, BUDGET
from fedcohort.results.matching.cells import ONE, Cell, comes_along, find_minorities, natural, spell, spell_values
from fedcohort.results.matching.notes import describe_runs, find_oracles
from fedcohort.results.matching.run import SEED, Run, differences, label, settings

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
class Matched:
    """Runs in their cells.

    Attributes:
        cells: runs by seed, in the order of rows and columns.
        notes: what was left out and why, what else differs.
        odd: cells that differ from most of their column in more than their row.
        oracles: cells whose runs read what no server can know.
        federations: options that decide each cell's clients and data, if they are not what is compared: seeds of
            cells that differ in them are not pairs.
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
        return [f"left out: {', '.join(of)}: {why}" for why, of in self.left_out.items()] + self.differences

    def assign(self, runs: Iterable[Run]) -> dict[Cell, list[Run]]:
        """Return the usable runs by cell, and note the others."""
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
        """The options that are compared."""
        return [name for name in (self.rows, self.cols) if name]

    @property
    def own(self) -> tuple[str, ...]:
        """Prefixes of the options of what is compared, which may differ."""
        return tuple(f"{name}." for name in self.compared)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """Prefixes of the options that what is compared may set beside its own."""
        return tuple(other for name in self.compared for other in STANDS_FOR.get(name, ()))

    def federation(self, run: Run) -> Settings:
        """Return the options that decide the clients and data, without what is compared; () if a name is compared."""
        known = settings(run)
        if ALL in self.stand_ins or not set(self.compared) <= {name for name, _ in known}:
            return ()
        groups = FEDERATION - {*self.compared, *self.stand_ins}
        mine = [(name, value) for name, value in known if name.partition(".")[0] in groups]
        return tuple((name, value) for name, value in mine if name not in self.compared)

    def alike(self, cell: Cell, runs: Sequence[Run], common: Mapping[Settings, int]) -> dict[int, Run]:
        """Return one run for each seed, all with the options that most runs of the cell have; of equals the newest.

        A federation that more runs of all cells have (`common`) comes first, so that cells can be compared. If every
        seed has one run, each run may have its own budget (the time that another run of the seed took).
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
        """Note options that differ from cell to cell and are not what is compared, and return the odd cells."""
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
        """Note budgets that differ on a seed, if each run of a cell has its own, and return the odd cells."""
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


def _without_budget(kind: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in kind if name not in ENDS)


def match(runs: Sequence[Run], rows: str, cols: str | None, *metrics: str) -> Matched:
    """Return `runs` in their cells. Raises `OptionError` for a name that no run knows.

    Args:
        runs: all that may be compared, oldest first.
        rows: the parameter or tag down the table.
        cols: another one across it; None for a single column.
        metrics: the first is the headline, without which a run does not count.
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
    matcher = _Matcher(rows, cols, metrics[0])
    assigned = matcher.assign(runs)
    if not assigned:
        raise TrackingError(f"none of the {len(runs)} runs can be compared: " + "; ".join(matcher.notes[:3]))
    common = Counter(fed for of in assigned.values() for fed, _ in {(matcher.federation(run), run.seed) for run in of})
    cells = {cell: matcher.alike(cell, assigned[cell], common) for cell in sorted(assigned, key=natural)}
    federations = {cell: matcher.federation(next(iter(of.values()))) for cell, of in cells.items()}
    odd = matcher.across(cells)
    row_values = sorted({row for row, _ in cells}, key=lambda value: natural((value,)))
    col_values = sorted({col for _, col in cells}, key=lambda value: natural((value,)))
    notes = [*matcher.notes, *describe_runs(cells, metrics[0])]
    return Matched(row_values, col_values, cells, notes, odd, frozenset(find_oracles(cells)), federations)


def _values(name: str, runs: Mapping[Cell, Run]) -> dict[Cell, str]:
    """Return an option's value in a run of each cell."""
    return {cell: _value(name, run) for cell, run in runs.items()}


def _value(name: str, run: Run) -> str:
    return run.params.get(name, "none")


def base_of(cell: Cell, baseline: str, matched: Matched) -> Cell:
    """Return the baseline's cell in the cell's column, or in its row if the baseline is a column."""
    return (baseline, cell[1]) if baseline in matched.rows else (cell[0], baseline)


def list_apart(matched: Matched, baseline: str | None) -> set[Cell]:
    """Return the cells that can't be paired with the baseline's: equal seeds give other clients or data there."""
    if baseline is None:
        return set()
    bases = {cell: base_of(cell, baseline, matched) for cell in matched.cells}
    federations = matched.federations
    return {c for c, base in bases.items() if base in matched.cells and federations.get(c) != federations.get(base)}
