"""The answer of a study in words: where selection pays, what there is to win, who wins it, what isn't known."""

import math
from collections.abc import Mapping, Sequence

from fedcohort.results.difference import Mean
from fedcohort.results.metric import MetricUnit
from fedcohort.study.definition import BESIDE, BOUND, LIMIT, YARDSTICK, Study
from fedcohort.study.ranking import Ranks
from fedcohort.study.sheets import spell_share
from fedcohort.study.verdict import CellVerdict, RowVerdict, Verdict, over_of
from fedcohort.study.wording import count, points, spell_mean, spell_p, spell_worth

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
        count_regimes(study, verdict, u) + _so_far(study, cells),
        "\n".join(lines),
        *rank_methods(study, verdict, u),
    ]


def sort_regimes(study: Study, cells: Sequence[CellVerdict]) -> dict[str, list[CellVerdict]]:
    """Return the cells of each kind."""
    return {kind: [cell for cell in cells if kind_of(study, cell) == kind] for kind in KINDS}


def kind_of(study: Study, cell: CellVerdict) -> str:
    """Which of KINDS the cell is; nothing: no interval of a yardstick reaches beyond what a difference is worth."""
    if cell.winners():
        return WON
    if cell.headroom.pays:
        return UNUSED
    known = [over_of(cell.rows[row]) for row in cell.headroom.oracles]
    # one that is the baseline on every seed has no interval
    most = [over.high if math.isfinite(over.half) else over.mean for over in known]
    return NOTHING if known and all(each <= study.worth for each in most) else OPEN


def _of_cell(study: Study, kind: str, cell: CellVerdict, u: MetricUnit) -> str:
    label = _label(study, cell)
    if kind == WON:
        return f"**{label}**: {_gap(cell, u)}; {_winners(cell, u)}"
    if kind == UNUSED:
        return f"**{label}**: {_gap(cell, u)}; no method is shown to beat {study.baseline}"
    if cell.headroom.difference is None:
        return f"{label}: not known, as {_why_no_gap(study, cell)}{_bound(cell, u)}"
    gap = f"{spell_mean(cell.headroom.difference, u, sign=True)}, {cell.headroom.oracle}"
    worth = spell_worth(study, u)
    if kind == NOTHING:
        return f"{label}: the yardsticks win nothing here, or less than {worth} ({gap}){_beyond(study, cell, u)}"
    need = f"; to show that a method wins {worth} takes {cell.seeds}" if cell.seeds else ""
    n = cell.headroom.difference.n
    return f"{label}: not settled by {n} seed{'s' if n > 1 else ''} ({gap}){need}"


def _why_no_gap(study: Study, cell: CellVerdict) -> str:
    """Say why no yardstick has a difference to the baseline: none was run, or runs diverged."""
    rows = [row for row in cell.rows.values() if row.role == YARDSTICK and row.over is not None]
    if not rows:
        return f"no yardstick was run beside {study.baseline}"
    who = [row for row in (cell.rows[study.baseline], *rows) if row.diverged]
    return "; ".join(f"{row.row} diverged on {row.diverged} of {count(row.value.n, 'seed')}" for row in who)


def _so_far(study: Study, cells: Sequence[CellVerdict]) -> str:
    """Say that there are fewer seeds than are asked for."""
    rows = [row for cell in cells for row in cell.rows.values() if study.asks(cell.cell, row.row)]
    if all(row.value.n >= len(study.seeds_of(row.row)) for row in rows):
        return ""
    counts = sorted(row.value.n for row in rows if row.row not in study.few or row.value.n < study.few[row.row])
    span = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else f"{counts[0]}"
    return f" So far {span} of {len(study.seeds)} seeds have been run."


def _label(study: Study, cell: CellVerdict) -> str:
    return study.cells[cell.cell].label


def count_regimes(study: Study, verdict: Verdict, u: MetricUnit) -> str:
    """Count the regimes of each kind."""
    by_kind = sort_regimes(study, list(verdict.cells.values()))
    counts = {kind: len(found) for kind, found in by_kind.items()}
    n, base = sum(counts.values()), study.baseline
    if n == 1:
        return _of_one(next(kind for kind, found in by_kind.items() if found), study, verdict, u)
    if counts[WON]:
        left = sum(cell.wins_after_all(study.alpha) for cell in by_kind[WON])
        parts = [
            f"**A method is significantly better than {base} in {left} of {n} regimes** after one Holm correction over "
            f"all {verdict.tests} tests ({counts[WON]} after Holm over the methods of each regime)."
        ]
    else:
        parts = [f"**In none of the {n} regimes a method is shown to beat {base}.**"]
    if counts[UNUSED]:
        parts.append(f"In {counts[UNUSED]} a yardstick beats it, and no method does: there is something to win there.")
    if counts[NOTHING]:
        parts.append(f"In {counts[NOTHING]} the yardsticks win nothing, or less than {spell_worth(study, u)}.")
    if counts[OPEN]:
        parts.append(f"In {counts[OPEN]} the seeds don't settle it.")
    return " ".join(parts)


def _of_one(kind: str, study: Study, verdict: Verdict, u: MetricUnit) -> str:
    if kind == WON:
        (cell,) = verdict.cells.values()
        left = "also" if cell.wins_after_all(study.alpha) else "but none does"
        more = f", {left} after Holm over all {verdict.tests} tests" if verdict.tests > 1 else ""
        return f"**A method beats {study.baseline}**{more}."
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


def _beyond(study: Study, cell: CellVerdict, u: MetricUnit) -> str:
    """Name the bounds and the rows beside that may lie further above the baseline than a difference is worth.

    Yardsticks of few seeds are among them: what they win isn't what the sentence says.
    """
    few = [row for row in cell.rows.values() if row.role == YARDSTICK and row.row not in cell.headroom.oracles]
    far = [*(row for row in cell.rows.values() if row.role in (LIMIT, BESIDE)), *few]
    far = [row for row in far if over_of(row).n >= study.enough]
    far = sorted((row for row in far if over_of(row).high > study.worth), key=lambda row: -over_of(row).mean)
    return "".join(f"; {row.row.replace(BOUND, 'bound ')} is {spell_mean(over_of(row), u, sign=True)}" for row in far)


def _gap(cell: CellVerdict, u: MetricUnit) -> str:
    headroom = cell.headroom
    if headroom.difference is None:
        return f"what there is to win isn't known, as no yardstick was run{_bound(cell, u)}"
    gain = spell_mean(headroom.difference, u, sign=True)
    if not headroom.pays:
        return f"the best yardstick, {headroom.oracle}, isn't clear of 0 ({gain})"
    return f"there are {gain} {points(u)} to win ({headroom.oracle})"


def _winners(cell: CellVerdict, u: MetricUnit) -> str:
    line = "won by " + ", ".join(_win(each, u) for each in cell.winners()[:4])
    if cell.winner is None or cell.winner[1].left_out is None:
        return line
    return f"{line}; choosing the best on other seeds brings {spell_mean(cell.winner[1].left_out, u, sign=True)}"


def _win(row: RowVerdict, u: MetricUnit) -> str:
    share = f", {spell_share(row.closed)} of it" if row.closed is not None else ""
    return f"{row.row} ({over_of(row).mean * u.factor:+.1f}{share})"


def _losers(cell: CellVerdict, base: str, u: MetricUnit) -> str:
    lost = [f"{each.row} ({over_of(each).mean * u.factor:+.1f})" for each in cell.losers()[:4]]
    lost += [f"{each.row} (diverged on {each.diverged} of {each.value.n})" for each in cell.lost(base)[:4]]
    return f"; worse than {base}: {', '.join(lost)}" if lost else ""


def rank_methods(study: Study, verdict: Verdict, u: MetricUnit) -> list[str]:
    """Say which method ranks best over the regimes, and which are better or worse than the baseline over them."""
    ranks, base = verdict.ranks, study.baseline
    if ranks is None or base not in ranks.mean or not ranks.contests:
        return []
    first = [f"{row} itself" if row == base else row for row, place in ranks.places().items() if place == 1]
    who = f"{first[0]} has" if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]} share"
    opening = f"Over {len(ranks.cells)} regimes {who} the best mean rank."
    return [" ".join([opening, *_tell_these(study, ranks, u), *_tell_others(study, ranks, u)])]


def _tell_these(study: Study, ranks: Ranks, u: MetricUnit) -> list[str]:
    """Say which methods are better or worse than the baseline over these regimes, by the mean of each seed."""
    base, contests = study.baseline, ranks.contests
    n = next(iter(contests.values())).seeds.n
    test = (
        f"paired t-test over {count(n, 'common seed')} of each seed's mean difference over the regimes, corrected by "
        f"Holm for {count(len(contests), 'method')}"
    )
    if n < study.enough:
        return [f"**No method is shown to be better than {base} over them**: {n} common seeds are too few for a test."]
    signs = {row: each.sign(study) for row, each in contests.items()}
    means = {row: each.seeds for row, each in contests.items()}
    better, worse = ([row for row in _sort(means) if signs[row] == side] for side in (1, -1))
    if better:
        lines = [f"**Better than {base} on average over these regimes: {_name(better, means, u)}** ({test})."]
    else:
        first = _sort(means)[0]
        p = f"p = {spell_p(contests[first].seeds.p)}".replace("= <", "<")
        p = p if math.isfinite(contests[first].seeds.p) else "no test"
        largest = f"; the largest mean difference is that of {_name([first], means, u)}, {p}"
        lines = [
            f"**No method is shown to be better than {base} on average over these regimes**"
            f"{largest if means[first].mean > 0 else ', and none has a larger mean'} ({test})."
        ]
    return [*lines, *([f"Worse on average: {_name(worse[::-1], means, u)}."] if worse else [])]


def _tell_others(study: Study, ranks: Ranks, u: MetricUnit) -> list[str]:
    """Say what these regimes show of others like them, by the mean of each family of regimes."""
    means = {row: each.families for row, each in ranks.contests.items() if each.families}
    if not means:
        return ["There are too few families of regimes to generalise from them."]
    both = {row: (each.sign(study), each.sign_elsewhere(study)) for row, each in ranks.contests.items()}
    better = [row for row in _sort(means) if both[row] == (1, 1)]
    test = f"t-test over {means[_sort(means)[0]].n} families of regimes, each one value, with the same correction"
    if better:
        return [f"In general, over regimes like these, better as well: {_name(better, means, u)} ({test})."]
    return [f"For regimes like these in general no method is shown to be better ({test})."]


def _sort(means: Mapping[str, Mean]) -> list[str]:
    """Return the rows by their mean differences, the largest first, those without one last."""
    return sorted(means, key=lambda row: -means[row].mean if math.isfinite(means[row].mean) else math.inf)


def _name(rows: Sequence[str], means: Mapping[str, Mean], u: MetricUnit) -> str:
    return ", ".join(f"{row} {spell_mean(means[row], u, sign=True)}" for row in rows)
