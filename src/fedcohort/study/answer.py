"""The answer of a study in words: where selection pays, what there is to win, who wins it, what isn't known."""

import math
from collections.abc import Mapping, Sequence

from fedcohort.observe.comparison.shown import MetricUnit
from fedcohort.study.definition import BOUND, LIMIT, METHOD, YARDSTICK, Study
from fedcohort.study.judge import CellVerdict, RowVerdict, Verdict, over_of
from fedcohort.study.places import clock_of
from fedcohort.study.sheets import spell_mean

WON, UNUSED, NOTHING, OPEN = KINDS = ("won", "unused", "nothing", "open")


def answer(study: Study, verdict: Verdict, u: MetricUnit) -> list[str]:
    """Return the paragraphs that the page opens with."""
    cells = list(verdict.cells.values())
    if not cells:
        return [f"Nothing has been run yet: `fedcohort study run {study.name}`."]
    by_kind = sort_regimes(study, cells)
    lines = []
    for kind, found in by_kind.items():
        lines += [f"- {_of_cell(study, kind, cell, u)}{_losers(cell, study.baseline, u)}." for cell in found]
    return [
        count_regimes(study, by_kind, u) + _so_far(study, cells),
        "\n".join(lines),
        *rank_methods(study, verdict),
    ]


def sort_regimes(study: Study, cells: Sequence[CellVerdict]) -> dict[str, list[CellVerdict]]:
    """Return the cells of each kind."""
    return {kind: [cell for cell in cells if kind_of(study, cell) == kind] for kind in KINDS}


def kind_of(study: Study, cell: CellVerdict) -> str:
    """Which of KINDS the cell is; nothing to win: no yardstick's interval reaches beyond what a difference is worth."""
    if cell.winners():
        return WON
    if cell.pays:
        return UNUSED
    overs = [over_of(row) for row in cell.rows.values() if row.role == YARDSTICK]
    known = [over for over in overs if over.n >= study.enough]
    return NOTHING if known and all(over.high <= study.worth for over in known) else OPEN


def _of_cell(study: Study, kind: str, cell: CellVerdict, u: MetricUnit) -> str:
    label = _label(study, cell)
    if kind == WON:
        return f"**{label}**: {_gap(cell, u)}; {_winners(cell, u)}"
    if kind == UNUSED:
        return f"**{label}**: {_gap(cell, u)}; no method is shown to beat {study.baseline}"
    if cell.gap is None:
        return f"{label}: not known, as no yardstick was run beside {study.baseline}{_bound(cell, u)}"
    gap = f"{spell_mean(cell.gap.over, u, sign=True)}, {cell.best}"
    worth = spell_worth(study, u)
    if kind == NOTHING:
        return f"{label}: nothing to win here, or less than {worth} ({gap})"
    need = f"; to show that a method wins {worth} takes {cell.seeds}" if cell.seeds else ""
    n = cell.gap.over.n
    return f"{label}: not settled by {n} seed{'s' if n > 1 else ''} ({gap}){need}"


def _so_far(study: Study, cells: Sequence[CellVerdict]) -> str:
    """Say that there are fewer seeds than are asked for."""
    counts = sorted(row.value.n for cell in cells for row in cell.rows.values())
    if counts[0] >= len(study.seeds):
        return ""
    span = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else f"{counts[0]}"
    return f" So far {span} of {len(study.seeds)} seeds have been run."


def _label(study: Study, cell: CellVerdict) -> str:
    return study.cells[cell.cell].label


def spell_worth(study: Study, u: MetricUnit) -> str:
    """`1 point`: the difference that the number of seeds is told for."""
    return f"{study.worth * u.factor:g} {points(u, study.worth * u.factor)}"


def count_regimes(study: Study, by_kind: Mapping[str, Sequence[CellVerdict]], u: MetricUnit) -> str:
    """Count the regimes of each kind."""
    counts = {kind: len(found) for kind, found in by_kind.items()}
    n, base = sum(counts.values()), study.baseline
    if n == 1:
        return _of_one(next(kind for kind, count in counts.items() if count), study, u)
    if counts[WON]:
        parts = [f"**A method beats {base} in {counts[WON]} of {n} regimes.**"]
    else:
        parts = [f"**In none of the {n} regimes a method is shown to beat {base}.**"]
    if counts[UNUSED]:
        parts.append(f"In {counts[UNUSED]} a yardstick beats it, and no method does: there is something to win there.")
    if counts[NOTHING]:
        parts.append(f"In {counts[NOTHING]} the yardsticks win nothing, or less than {spell_worth(study, u)}.")
    if counts[OPEN]:
        parts.append(f"In {counts[OPEN]} the seeds don't settle it.")
    return " ".join(parts)


def _of_one(kind: str, study: Study, u: MetricUnit) -> str:
    if kind == WON:
        return f"**A method beats {study.baseline}.**"
    why = {
        UNUSED: "A yardstick beats it: there is something to win.",
        NOTHING: f"The yardsticks win nothing, or less than {spell_worth(study, u)}.",
        OPEN: "The seeds don't settle it.",
    }
    return f"**No method is shown to beat {study.baseline}.** {why[kind]}"


def _bound(cell: CellVerdict, u: MetricUnit) -> str:
    """Name the bound that is furthest away, where no yardstick says what there is to win."""
    bounds = [row for row in cell.rows.values() if row.role == LIMIT]
    if not bounds:
        return ""
    most = max(bounds, key=lambda row: over_of(row).mean)
    return f"; its bound, {most.row.removeprefix(BOUND)}, is {spell_mean(over_of(most), u, sign=True)}"


def _gap(cell: CellVerdict, u: MetricUnit) -> str:
    if cell.gap is None or cell.best is None:
        return f"what there is to win isn't known, as no yardstick was run{_bound(cell, u)}"
    if not cell.pays:
        return (
            f"the best yardstick, {cell.best}, isn't clear of 0 after Holm ({spell_mean(cell.gap.over, u, sign=True)})"
        )
    return f"there are {spell_mean(cell.gap.over, u, sign=True)} {points(u)} to win ({cell.best})"


def _winners(cell: CellVerdict, u: MetricUnit) -> str:
    return "won by " + ", ".join(_win(each, u) for each in cell.winners()[:4])


def _win(row: RowVerdict, u: MetricUnit) -> str:
    share = f", {100 * row.closed:.0f} % of it" if math.isfinite(row.closed) else ""
    return f"{row.row} ({over_of(row).mean * u.factor:+.1f}{share})"


def _losers(cell: CellVerdict, base: str, u: MetricUnit) -> str:
    lost = cell.losers()[:4]
    if not lost:
        return ""
    return f"; worse than {base}: " + ", ".join(f"{each.row} ({over_of(each).mean * u.factor:+.1f})" for each in lost)


def points(u: MetricUnit, count: float = 2) -> str:
    """How a difference of `count` is called: of percentages it is points."""
    name = "points" if u.name == "%" else u.name
    return name.removesuffix("s") if count == 1 and len(name) > 1 else name


def rank_methods(study: Study, verdict: Verdict) -> list[str]:
    """Say who ranks best over the regimes, and whether the baseline is beaten."""
    ranks, base = verdict.ranks, study.baseline
    if ranks is None or base not in ranks.mean:
        return []
    names = list(ranks.mean)
    where = f"Over {len(ranks.cells)} regimes"
    best = f"{base} itself has the best mean rank" if names[0] == base else f"{names[0]} has the best mean rank"
    if not ranks.p < study.alpha:
        test = f"p = {ranks.p:.2f}" if math.isfinite(ranks.p) else "no test"
        return [
            f"{where} {best}, but Friedman's test doesn't tell the methods apart ({test}): "
            f"**{base} isn't shown to be beaten**."
        ]
    better = [name for name in names if ranks.mean.get(base, 0.0) - ranks.mean[name] >= ranks.distance]
    if not better:
        far = f"no rank is better by the distance of {ranks.distance:.1f}"
        return [f"{where} {best}; **{base} isn't shown to be beaten**: {far}."]
    rank = "rank" if len(better) > 1 else "ranks"
    return [f"{where} {', '.join(better)} {rank} better than {base}, by {ranks.distance:.1f} or more."]


def cautions(study: Study, verdict: Verdict, u: MetricUnit) -> list[str]:
    """Return what has to be known to read the tables, a line each."""
    least = study.least * u.factor
    late = f"the mean of {study.metric} over the last {study.late} evaluated rounds of a run{tell_clock(study)}"
    return [
        f"A result is {late}; differences are to {study.baseline} on the same seed, which shares data, "
        "partition and first model, with 95 % intervals of the paired t.",
        f"▲ and ▼: a difference whose p, corrected by Holm for the row's regimes, is below {study.alpha:g}, "
        f"of {least:g} {points(u, least)} or more, over {study.enough} seeds or more. {warn_of_many(study, verdict)}",
        "‡ is a yardstick, no method: it reads what no server can know. The gap is that of the yardstick that did best "
        "on these very seeds, which flatters it a little.",
        "The greedy oracle is myopic and no upper bound: it takes who helps the next model most. Full participation, "
        "and the bound, the same federation without its heterogeneity, may lie well above it.",
        f"Seeds: how many show a true difference of {spell_worth(study, u)} with a chance of 80 %, from the median "
        f"spread of the methods' paired differences, in one test at {study.alpha:g}: a mark, which Holm corrects, "
        "takes more. The formula is in `maths/many_tests.py`.",
        "To target: median rounds and virtual time to the regime's target; where half of the seeds never met it, how "
        "many did.",
        *tell_tuned(study),
    ]


def tell_clock(study: Study) -> str:
    """Say what a result is where a clock ends runs; "" where none does."""
    if not any(clock_of((*study.common, *cell.words)) for cell in study.cells.values()):
        return ""
    return ", or, where a clock ends them (until.virtual_s), over the last sixth of its time, of the newest model"


def warn_of_many(study: Study, verdict: Verdict) -> str:
    """Say what the marks of many methods come to by chance; Holm's level holds for each row."""
    m = len({row.row for cell in verdict.cells.values() for row in cell.rows.values() if row.role == METHOD})
    return (
        f"Nothing is corrected for the number of methods: were all {m} like {study.baseline}, a mark by chance "
        f"somewhere would be expected of up to {m * study.alpha:.2g} of them."
    )


def tell_tuned(study: Study) -> list[str]:
    """Say who was tuned with what, a line each."""
    if not study.tuned:
        return ["Nobody was tuned: all methods have their default options."]
    lines = ["Tuned, each on seeds of its own; all others have their default options:"]
    for name, each in study.tuned.items():
        seeds, cells = ", ".join(map(str, each.seeds)), ", ".join(each.cells)
        lines.append(
            f"{name}: `{' '.join(each.words)}`, the best of {each.trials} trials (seeds {seeds} in {cells}; "
            f"{each.metric} {each.value:.4f}, {each.default:.4f} with its defaults; commit {each.commit})."
        )
    return lines


def missing(study: Study, verdict: Verdict) -> list[str]:
    """Return what the study asks for and hasn't got, a line a reason to run it again."""
    lacks: dict[str, dict[int, list[str]]] = {}
    for (cell, row), n in verdict.missing.items():
        lacks.setdefault(row, {}).setdefault(n, []).append(cell)
    rows: dict[str, list[str]] = {}
    for row, of in lacks.items():
        whole = sum(row.removeprefix(BOUND) in cell.bounds for cell in study.cells.values())
        whole = whole if row.startswith(BOUND) else len(study.cells)
        what = "; ".join(_lack(n, cells, whole, len(study.seeds)) for n, cells in sorted(of.items(), reverse=True))
        rows.setdefault(what, []).append(row.replace(BOUND, "bound "))
    return [f"{what}: {', '.join(names)}" for what, names in rows.items()]


def _lack(n: int, cells: Sequence[str], whole: int, seeds: int) -> str:
    where = "each of its regimes" if len(cells) == whole else ", ".join(cells)
    return f"{'all' if n == seeds else n} of {seeds} seeds in {where}"
