"""Times to a target as text: Markdown, LaTeX, CSV."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedcohort import units
from fedcohort.observe.comparison.goals import BEST_OF
from fedcohort.observe.comparison.render import p_value, sheet_of, tabular
from fedcohort.observe.comparison.sheet import ODD, YARDSTICK, Sheet, exact, tex
from fedcohort.observe.comparison.shown import unit_of
from fedcohort.observe.comparison.target import SpeedUp, TargetEntry, TargetTable

NAMES = {
    "virtual_s": "virtual time",
    "bytes": "bytes down and up",
    "client_flops": "client computation",
    "rounds": "rounds",
}
SHOWN: dict[str, Callable[[float], str]] = {
    "virtual_s": units.seconds,
    "bytes": units.bytes_,
    "client_flops": units.flops,
    "rounds": lambda value: f"{value:.0f} rounds",
}


def title(table: TargetTable) -> str:
    """What the table shows, in words."""
    name = NAMES[table.axis]
    return f"{name[0].upper()}{name[1:]} until {goal(table)}: by when half of the seeds have it"


def goal(table: TargetTable) -> str:
    """`test/acc >= 84 %`, or the words of `best_of` with the range of what they came to."""
    u = unit_of(table.metric, 1.0)
    values = sorted(goal.value * u.factor for of in table.goals.values() for goal in of.values())
    shown = f"{values[0]:.4g}" if values else "–"
    if len(values) > 1 and values[-1] != values[0]:
        shown += f" to {values[-1]:.4g}"
    reached = f"{table.metric} is {shown}{f' {u.name}' if u.name else ''} or {'more' if table.sign > 0 else 'less'}"
    words = table.target.removeprefix(BEST_OF)
    return reached if words == table.target else f"{reached} (the best of {words} on each seed)"


def time_words(table: TargetTable, entry: TargetEntry) -> str:
    """`12 min 3 s (10 of 10 seeds)`, `> 30 min (not reached in 6 of 10 seeds)`."""
    n, show = len(entry.times), SHOWN[table.axis]
    if not n:
        return "no target"
    met = f"{n} of {n} seeds" if entry.met == n else f"not reached in {n - entry.met} of {n} seeds"
    if entry.high == entry.low:
        middle = show(entry.low)
    else:
        middle = f"> {show(entry.low)}" if math.isinf(entry.high) else f"{show(entry.low)} to {show(entry.high)}"
    return f"{middle} ({met})"


def ratio_words(found: SpeedUp | None) -> str:
    """`1.83 [1.20, 2.79], p = 0.012 (n=10)`, or the bound that is left where pairs are censored."""
    if found is None:
        return "–"
    pairs = f"n={found.n}"
    if found.logs is None:
        return f"{_bounds(found)} ({found.why}; {pairs})" if found.n else found.why
    if found.why:
        return f"{found.low:.2f} ({found.why}; {pairs})"
    over = found.logs.over
    return f"{found.low:.2f} [{math.exp(over.low):.2f}, {math.exp(over.high):.2f}], {p_value(found.logs.p)} ({pairs})"


def _bounds(found: SpeedUp) -> str:
    if found.low == 0 and math.isinf(found.high):
        return "unknown"
    if found.low == found.high:
        return f"median {found.low:.2f}"
    if found.low == 0:
        return f"median < {found.high:.2f}"
    return f"median > {found.low:.2f}" if math.isinf(found.high) else f"median {found.low:.2f} to {found.high:.2f}"


def sheets(table: TargetTable) -> list[Sheet]:
    """A table of times, and one of speed-ups over each of `_bases`."""
    times = sheet_of(table, "times", title(table), lambda entry: time_words(table, entry))
    return [times, *(sheet_of(table, *base.names, base.words) for base in _bases(table))]


def markdown(table: TargetTable, beside: Sequence[str] = ()) -> str:
    """A table of times, those of speed-ups, and the notes; beside: those on the runs."""
    out = [line for sheet in sheets(table) for line in (f"### {sheet.title}", "", sheet.markdown(), "")]
    out += [f"- {line}" for line in [*remarks(table), *beside]]
    return "\n".join(out).rstrip() + "\n"


@dataclass(frozen=True)
class Base:
    """What runs are so many times as fast as. names: of its sheet, and its title. word: of `baseline` in the CSV."""

    word: str
    names: tuple[str, str]
    of: Callable[[TargetEntry], SpeedUp | None]

    def words(self, entry: TargetEntry) -> str:
        return ratio_words(self.of(entry))

    def tex(self, entry: TargetEntry) -> str:
        return tex(self.words(entry))


def _bases(table: TargetTable) -> list[Base]:
    """The baseline, and the run that set the target on each seed."""
    how = "geometric mean over common seeds [95 % interval], paired t-test of logs"
    found = []
    if table.baseline is not None:
        names = ("speedups", f"Times as fast as {table.baseline}: {how}")
        found.append(Base(table.baseline, names, lambda entry: entry.speed_up))
    if (words := table.target.removeprefix(BEST_OF)) not in (table.target, table.baseline):
        names = ("over_best", f"Times as fast as the one of {words} that set the target on each seed: {how}")
        found.append(Base(table.target, names, lambda entry: entry.over_best))
    return found


def remarks(table: TargetTable) -> list[str]:
    """How to read it, then what doesn't fit."""
    censored = any(entry.met < len(entry.times) for entry in table.entries.values())
    legend = ["Seeds that never got there count as later than their end; > t: fewer than half of them all had it at t"]
    early = [
        f"{row if not col else f'{row} + {col}'} meets it on a seed before its first round"
        for (row, col), entry in table.entries.items()
        if any(time.met and time.low <= 0 for time in entry.times.values())
    ]
    marks = [f"{ODD} differs from others of its column in more than its {table.rows_name}, see below"]
    marks = marks if any(entry.odd for entry in table.entries.values()) else []
    if any(entry.yardstick for entry in table.entries.values()):
        marks.append(f"{YARDSTICK} is a yardstick, no method: it reads what no server can know, see below")
    return [*(legend if censored else []), *early, *marks, *table.notes]


def latex(table: TargetTable, beside: Sequence[str] = ()) -> str:
    """A `tabular` of the same, for booktabs; speed-ups in further ones, the notes below."""
    out = ["% needs \\usepackage{booktabs}"]
    out += tabular(table, lambda entry: tex(time_words(table, entry)), title(table))
    for base in _bases(table):
        out += ["", *tabular(table, base.tex, base.names[1])]
    out += ["", "\\par\\footnotesize", *(f"{tex(line)}\\\\" for line in [*remarks(table), *beside])]
    return "\n".join(out) + "\n"


def render_csv(table: TargetTable) -> str:
    """Render one line a cell and seed, then the cell's own with an empty seed: in seconds, bytes, operations or rounds.

    The cell's own line is there once for each baseline: best_of:a,b is whichever set the target.

    `low` and `high` are between what the time, or the speed-up, lies; high is empty where it has no bound.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = ["metric", "axis", "seed", "target", "reached", "n", "low", "high", "odd", "yardstick"]
    told = ["baseline", "speedup_low", "speedup_high", "ci95_low", "ci95_high", "p", "pairs", "censored_pairs"]
    writer.writerow([table.rows_name, table.cols_name or "column", *columns, *told])
    for (row, col), entry in table.entries.items():
        own = [row, col, table.metric, table.axis]
        marks = [str(entry.odd).lower(), str(entry.yardstick).lower()]
        for seed, time in entry.times.items():
            ends, wanted = exact(time.low, time.high), exact(table.goals[row, col][seed].value)
            writer.writerow([*own, seed, *wanted, int(time.met), 1, *ends, *marks, *[""] * 8])
        ends = exact(entry.low, entry.high)
        gained = [_gains(base, base.of(entry)) for base in _bases(table)]
        for gains in gained or [[""] * 8]:
            writer.writerow([*own, "", "", entry.met, len(entry.times), *ends, *marks, *gains])
    return out.getvalue()


def _gains(base: Base, found: SpeedUp | None) -> list[object]:
    if found is None:
        return [""] * 8
    over = found.logs.over if found.logs is not None else None
    interval = exact(math.exp(over.low), math.exp(over.high)) if over is not None else ["", ""]
    p = exact(found.logs.p) if found.logs is not None else [""]
    low = exact(found.low) if found.low > 0 else [""]
    return [base.word, *low, *exact(found.high), *interval, *p, found.n, found.censored]
