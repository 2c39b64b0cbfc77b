"""The tables of a study's page: what they say once, shown as Markdown, HTML, LaTeX and CSV."""

import math
from collections.abc import Mapping
from dataclasses import replace

from fedcohort import units
from fedcohort.report.sheet import NONE, Sheet, exact, write_csv
from fedcohort.results.difference import Mean
from fedcohort.results.headroom import ShareClosed
from fedcohort.results.metric import MetricUnit
from fedcohort.study.definition import BOUND, YARDSTICK, Study
from fedcohort.study.ranking import Ranks
from fedcohort.study.verdict import COSTS, TO_TARGET, CellVerdict, RowVerdict, Verdict, over_of
from fedcohort.study.wording import count, spell_gap, spell_mean, spell_p, spell_win, tell_power

HEAD = ("selector", "late mean", "difference", "Holm's p", "gap closed", "rank", "virtual time", "bytes", "to target")
MEAN_DIFFERENCE = "mean difference [95 %]"  # the heading of what `spell_contest` says
WORST = "worst tenth"  # the heading of what `spell_worst` says
MARK = {1: "▲", -1: "▼", 0: ""}
OTHER_CODE = "§"


def sheet_of_cells(study: Study, verdict: Verdict, u: MetricUnit) -> Sheet:
    """A line a cell: what there is to win, who wins it, and how many seeds a small difference needs."""
    rows = []
    for cell in verdict.cells.values():
        base = cell.rows.get(study.baseline)
        unclear = cell.headroom.difference is not None and not cell.headroom.pays
        bounds = [
            f"{spell_mean(over_of(each), u, sign=True)} ({each.row.removeprefix(BOUND)})"
            for each in cell.rows.values()
            if each.row.startswith(BOUND)
        ]
        won = ", ".join(spell_win(each, u) for each in cell.winners()) or "nobody"
        rows.append(
            (
                study.cells[cell.cell].label,
                spell_mean(base.value, u) if base else NONE,
                f"{spell_gap(cell, u)}{', not clear of 0' if unclear else ''}",
                "; ".join(bounds) or NONE,
                won,
                str(cell.seeds) if cell.seeds else NONE,
            )
        )
    head = (
        "regime",
        study.baseline,
        "gap: best yardstick",
        "bound",
        f"beats {study.baseline}",
        f"seeds for {study.worth * u.factor:g}",
    )
    strong = frozenset(i for i, cell in enumerate(verdict.cells.values()) if cell.winners())
    note = tell_power(study, list(verdict.cells.values()), u)
    return Sheet("regimes", "what there is to win in each regime", head, rows, strong, note)


def sheet_of_differences(study: Study, verdict: Verdict, u: MetricUnit) -> Sheet:
    """All differences beside each other, selectors down, cells across."""
    names = list(
        dict.fromkeys(row for cell in verdict.cells.values() for row in cell.rows if not row.startswith(BOUND))
    )
    rows = []
    for name in names:
        if name == study.baseline:
            continue
        found = (_short(cell, name, study.baseline, u) for cell in verdict.cells.values())
        rows.append((call_row(study, name), *found))
    labels = [study.cells[cell].label for cell in verdict.cells]
    power = [str(cell.seeds) if cell.seeds else NONE for cell in verdict.cells.values()]
    rows.append((f"seeds that {study.worth * u.factor:g} needs", *power))
    note = tell_power(study, list(verdict.cells.values()), u)
    return Sheet("differences", f"difference to {study.baseline}", ("selector", *labels), rows, note=note)


def _short(cell: CellVerdict, name: str, baseline: str, u: MetricUnit) -> str:
    """`+1.2▲`, of fewer seeds than the baseline has `+1.2 (n=3)`."""
    row = cell.rows.get(name)
    if row is None or row.over is None:
        return NONE
    if not math.isfinite(over_of(row).mean):
        return "diverged" if row.diverged else NONE
    marks = MARK[row.sign] + OTHER_CODE * (row.other_code > 0)
    return f"{over_of(row).mean * u.factor:+.1f}{marks}{spell_few(over_of(row).n, cell, baseline)}"


def spell_few(n: int, cell: CellVerdict, baseline: str) -> str:
    """` (n=3)`, where the baseline has more seeds; else ""."""
    return f" (n={n})" if n < cell.rows[baseline].value.n else ""


def _difference(study: Study, row: RowVerdict, u: MetricUnit) -> str:
    """`+1.2 [+0.3, +2.1]`, or on how many seeds there is none."""
    if row.over is not None and row.diverged:
        return f"diverged on {row.diverged}"
    return _spell(study, over_of(row), u, sign=True)


def _spell(study: Study, value: Mean, u: MetricUnit, *, sign: bool = False) -> str:
    """The mean, with its interval where there are win.seeds seeds: of two it reaches beyond all that is possible."""
    return spell_mean(value if value.n >= study.enough else replace(value, half=math.nan), u, sign=sign)


def call_row(study: Study, name: str) -> str:
    """A row's name, and a mark of one that is no method."""
    return f"{name} ‡" if study.role_of(name) == YARDSTICK else name


def sheet_of_ranks(study: Study, verdict: Verdict, u: MetricUnit) -> Sheet:
    """The leaderboard: mean ranks over the cells that have all of these rows."""
    if verdict.ranks is None:
        return Sheet("leaderboard", "mean ranks", ("selector", "mean rank"), [])
    known = verdict.ranks
    per_cell = {cell: verdict.cells[cell] for cell in verdict.ranks.cells}
    rows = [
        (
            name,
            f"{rank:.2f}",
            spell_contest(study, known, name, u),
            spell_worst(known, name, u),
            str(sum(cell.rows[name].sign > 0 for cell in per_cell.values())),
            str(sum(cell.rows[name].sign < 0 for cell in per_cell.values())),
        )
        for name, rank in known.mean.items()
    ]
    head = ("selector", "mean rank", MEAN_DIFFERENCE, WORST, "wins", "losses")
    title = f"mean ranks over {count(len(known.cells), 'regime')}"
    return Sheet("leaderboard", title, head, rows, note=tell_power(study, list(per_cell.values()), u))


def spell_contest(study: Study, ranks: Ranks, row: str, u: MetricUnit) -> str:
    """`+4.0▲ [+3.4, +4.6]`: a row's mean difference over the ranked regimes, marked where that is significant."""
    if row not in ranks.contests:
        return NONE
    contest = ranks.contests[row]
    return spell_mean(contest.seeds, u, sign=True) + MARK[contest.sign(study)]


def spell_worst(ranks: Ranks, row: str, u: MetricUnit) -> str:
    """Return `-9.9`, the mean of the lowest tenth of the settings' mean differences; a rank is never without it."""
    return f"{ranks.contests[row].worst_decile * u.factor:+.1f}" if row in ranks.contests else NONE


def sheet_of_cell(study: Study, cell: CellVerdict, u: MetricUnit) -> Sheet:
    """Every row of a cell."""
    rows = []
    for each in cell.rows.values():
        target = f"{each.target['rounds']:.0f} rounds, {units.seconds(each.target['virtual_s'])}, "
        target += units.bytes_(each.target["bytes"])
        met = target if math.isfinite(each.target["rounds"]) else f"{each.reached} of {each.value.n}"
        lost = f", {each.diverged} diverged" if each.diverged else ""
        other = f", {each.other_code}{OTHER_CODE}" if each.other_code else ""
        rows.append(
            (
                f"{call_row(study, each.row)} {MARK[each.sign]}".strip().replace(BOUND, "bound: "),
                f"{_spell(study, each.value, u)} (n={each.value.n}{lost}{other})",
                _difference(study, each, u),
                spell_p(each.ps.in_setting) if math.isfinite(each.ps.in_setting) else NONE,
                spell_share(each.closed),
                f"{each.rank:.1f}".removesuffix(".0") if math.isfinite(each.rank) else NONE,
                f"{units.seconds(each.costs['virtual_s'])}{_early(each)}",
                units.bytes_(each.costs["bytes"]),
                met if study.cells[cell.cell].target is not None else NONE,
            )
        )
    strong = frozenset(i for i, each in enumerate(cell.rows.values()) if each.sign > 0)
    note = tell_power(study, [cell], u)
    return Sheet(f"cell_{cell.cell}", study.cells[cell.cell].label, HEAD, rows, strong, note)


def _early(row: RowVerdict) -> str:
    """Say on how many seeds `rounds` ended the run, and not its clock; "" for none."""
    return f", rounds ended {row.early} of {row.value.n}" if row.early else ""


def spell_share(closed: ShareClosed | None) -> str:
    """Return `31 % [12, 45]`: a share of the headroom with its interval."""
    if closed is None:
        return NONE
    return f"{100 * closed.share:.0f} % [{100 * closed.low:.0f}, {100 * closed.high:.0f}]"


def numbers_csv(study: Study, verdict: Verdict, metrics: Mapping[str, str] | None = None) -> str:
    """All numbers with all digits, in the metric's own unit, a line a cell and row.

    metrics: of each cell, where they aren't all the study's.
    """
    head = [
        "cell",
        "selector",
        "role",
        "metric",
        "n",
        "late_mean",
        "late_std",
        "diff",
        "diff_ci95_low",
        "diff_ci95_high",
    ]
    head += [
        "diff_std",
        "diff_median",
        "diff_min",
        "diff_max",
        "diff_p",
        "diff_n",
        "holm_p",
        "holm_p_of_method",
        "holm_p_all",
        "verdict",
        "sign",
        "gap_closed",
        "gap_closed_ci95_low",
        "gap_closed_ci95_high",
        "rank",
        *COSTS,
        "last",
        *(f"{name}_to_target" for name in TO_TARGET),
        "reached",
        "ended_by_rounds",
        "other_code",
    ]
    lines: list[list[object]] = [list(head)]
    for cell in verdict.cells.values():
        for each in cell.rows.values():
            over = over_of(each)
            closed = each.closed or ShareClosed(math.nan, math.nan, math.nan)
            lines.append(
                [
                    *(cell.cell, each.row, each.role, (metrics or {}).get(cell.cell, study.metric), each.value.n),
                    *exact(each.value.mean, each.value.std, over.mean, over.low, over.high),
                    *exact(over.std, over.median, over.worst, over.best, over.p),
                    over.n,
                    *exact(each.ps.in_setting, each.ps.of_method, each.ps.anywhere),
                    each.verdict,
                    each.sign,
                    *exact(closed.share, closed.low, closed.high, each.rank),
                    *exact(*(each.costs[name] for name in COSTS), each.last),
                    *exact(*(each.target[name] for name in TO_TARGET)),
                    each.reached if study.cells[cell.cell].target is not None else "",
                    each.early,
                    each.other_code,
                ]
            )
    return write_csv(lines)
