"""The tables of a study's page."""

import math
from collections.abc import Mapping, Sequence

from fedcohort import units
from fedcohort.report.table import Table
from fedcohort.results.verdict import judge_difference, sign_of
from fedcohort.study.definition import BOUND, YARDSTICK, Study
from fedcohort.study.formats import EMPTY, SIGNS, Format, write_p, write_rank, write_share
from fedcohort.study.ranking import Ranks
from fedcohort.study.verdict import CellVerdict, RowVerdict, Verdict, over_of

WIDEST = 8  # columns of settings, beyond which a table can't be read on a page
ORACLE, OTHER_CODE = "‡", "§"
NAMED = 4  # methods that a cell names


def split_settings(study: Study, cells: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return settings in groups of at most `WIDEST`, whole axes together where they fit, each with a title."""
    axes: dict[str, list[str]] = {}
    for cell in cells:
        axes.setdefault(study.cells[cell].axis, []).append(cell)
    groups: list[tuple[list[str], list[str]]] = []
    for axis, members in axes.items():
        for start in range(0, len(members), WIDEST):
            chunk = members[start : start + WIDEST]
            if groups and len(groups[-1][1]) + len(chunk) <= WIDEST:
                groups[-1][0].append(axis)
                groups[-1][1].extend(chunk)
            else:
                groups.append(([axis], list(chunk)))
    if len(groups) < 2:
        return [("", list(cells))] if cells else []
    return [(", ".join(dict.fromkeys(filter(None, names))), members) for names, members in groups]


def name_row(study: Study, row: str) -> str:
    """Return a row's name on the page: a mark for an oracle, and `bound: iid` for a bound."""
    return f"{row} {ORACLE}" if study.role_of(row) == YARDSTICK else row.replace(BOUND, "bound: ")


def settings_table(study: Study, verdict: Verdict, show: Format) -> Table:
    """Return one line a setting: the headroom, the methods that are better, and what the seeds can show."""
    rows = []
    for cell in verdict.cells.values():
        base, gain = cell.rows.get(study.baseline), cell.headroom.difference
        bounds = [row for row in cell.rows.values() if row.row.startswith(BOUND)]
        better = cell.winners()
        more = f" and {len(better) - NAMED} more" if len(better) > NAMED else ""
        rows.append(
            {
                "setting": study.cells[cell.cell].label,
                study.baseline: show.mean(base.value) if base else "",
                "headroom (oracle)": f"{show.difference(gain)} ({cell.headroom.oracle})" if gain else "",
                "bound": "; ".join(
                    f"{show.difference(over_of(row))} ({row.row.removeprefix(BOUND)})" for row in bounds
                ),
                "better, Holm within the setting": ", ".join(
                    f"{row.row} {show.signed(over_of(row).mean)}" for row in better[:NAMED]
                )
                + more,
                "of these better, Holm over all": sum(row.ps.anywhere < study.alpha for row in better),
                f"seeds for {show.size(study.worth)}": cell.seeds,
                "these seeds show": f"{cell.shows * show.factor:.1f}" if math.isfinite(cell.shows) else "",
            }
        )
    return make_table(
        rows, f"Headroom and better methods in each setting, differences to {study.baseline} in {show.unit}"
    )


def difference_tables(study: Study, verdict: Verdict, show: Format) -> list[tuple[str, Table]]:
    """Return the mean differences of all rows, methods down, settings across, each table with the title of its part."""
    rows = dict.fromkeys(row for cell in verdict.cells.values() for row in cell.rows if not row.startswith(BOUND))
    tables = []
    for title, cells in split_settings(study, list(verdict.cells)):
        lines = [
            {
                "method": name_row(study, row),
                **{study.cells[cell].label: _short_difference(study, verdict.cells[cell], row, show) for cell in cells},
            }
            for row in rows
            if row != study.baseline
        ]
        caption = f"Mean difference to {study.baseline} in {show.unit}{f': {title}' if title else ''}"
        tables.append((title, make_table(lines, caption)))
    return tables


def _short_difference(study: Study, cell: CellVerdict, row: str, show: Format) -> str:
    """Return `+1.2▲`; `+1.2 (n=3)` for fewer seeds than the baseline has."""
    of_row = cell.rows.get(row)
    if of_row is None or of_row.over is None:
        return EMPTY
    if not math.isfinite(of_row.over.mean):
        return "diverged" if of_row.diverged else EMPTY
    marks = SIGNS[of_row.sign] + OTHER_CODE * (of_row.other_code > 0)
    return f"{show.signed(of_row.over.mean)}{marks}{write_few(of_row.over.n, cell, study.baseline)}"


def write_few(n: int, cell: CellVerdict, baseline: str) -> str:
    """Return ` (n=3)` for fewer seeds than the baseline has; else ""."""
    return f" (n={n})" if n < cell.rows[baseline].value.n else ""


def overall_row(study: Study, ranks: Ranks, row: str, verdict: Verdict, show: Format) -> dict[str, object]:
    """Return a method over the ranked settings: mean difference, worst tenth, share of settings and rank."""
    contest = ranks.contests.get(row)
    line: dict[str, object] = {"method": row}
    if contest is None:
        line |= dict.fromkeys(("over these settings", "p", "over settings like these", "p (families)"), "")
        line |= {"worst tenth (worst setting)": "", "better in": "", "worse in": ""}
    else:
        there = [verdict.cells[cell].rows[row] for cell in ranks.cells]
        # "in some settings" is a claim on the method, whose family is its settings
        signs = [sign_of(judge_difference(of.over, of.ps.of_method, study.rules)) if of.over else 0 for of in there]
        worst = study.cells[contest.worst_setting].label if contest.worst_setting else EMPTY
        line |= {
            "over these settings": show.difference(contest.seeds) + SIGNS[contest.sign(study)],
            "p": write_p(contest.seeds.p),
            "over settings like these": show.difference(contest.families) if contest.families else "",
            "p (families)": write_p(contest.families.p) if contest.families else "",
            "worst tenth (worst setting)": f"{show.signed(contest.worst_decile)} ({worst})",
            "better in": signs.count(1),
            "worse in": signs.count(-1),
        }
    low, high = ranks.spread[row]
    interval = f" [{write_rank(low)}, {write_rank(high)}]" if math.isfinite(low) else ""
    first = ranks.first[row]
    return line | {
        "mean rank [95 %]": write_rank(ranks.mean[row]) + interval,
        "P(rank 1)": f"{100 * first:.0f} %" if math.isfinite(first) else "",
    }


def overall_table(study: Study, verdict: Verdict, show: Format) -> Table | None:
    """Return the methods over all settings, best mean rank first; None where nothing can be ranked."""
    ranks = verdict.ranks
    if ranks is None:
        return None
    rows = [overall_row(study, ranks, row, verdict, show) for row in ranks.mean]
    return make_table(
        rows, f"Methods over {len(ranks.cells)} settings, mean differences to {study.baseline} in {show.unit}"
    )


def setting_table(study: Study, cell: CellVerdict, show: Format) -> Table:
    """Return every row of a setting."""
    base = cell.rows.get(study.baseline)
    lines = []
    for row in cell.rows.values():
        lost = f", {row.diverged} diverged" if row.diverged else ""
        other = f", {row.other_code}{OTHER_CODE}" if row.other_code else ""
        early = f", rounds ended {row.early} of {row.value.n}" if row.early else ""
        lines.append(
            {
                "method": f"{name_row(study, row.row)} {SIGNS[row.sign]}".strip(),
                "result": f"{show.mean(row.value)} (n={row.value.n}{lost}{other})",
                "difference": f"diverged on {row.diverged}"
                if row.over and row.diverged
                else show.difference(over_of(row)),
                "p": write_p(row.ps.in_setting),
                "verdict": row.verdict,
                "headroom closed": write_share(row.closed),
                "rank": write_rank(row.rank),
                "virtual time": units.seconds(row.costs["virtual_s"]) + _times(row, base, "virtual_s") + early,
                "bytes": units.bytes_(row.costs["bytes"]) + _times(row, base, "bytes"),
                "client FLOPs (ratio)": _times(row, base, "client_flops").strip(" ()"),
                "to target": write_target(row) if study.cells[cell.cell].target is not None else "",
            }
        )
    return make_table(
        lines, f"{study.cells[cell.cell].label}: results and differences to {study.baseline} in {show.unit}"
    )


def _times(row: RowVerdict, base: RowVerdict | None, cost: str) -> str:
    """Return ` (×3.07)`: a cost over the baseline's."""
    known = base is not None and base.costs[cost] > 0
    return f" (×{row.costs[cost] / base.costs[cost]:.2f})" if known and base and row.row != base.row else ""


def write_target(row: RowVerdict) -> str:
    """Return median rounds, time and bytes to the target; where half of the seeds never met it, how many did."""
    if not math.isfinite(row.target["rounds"]):
        return f"{row.reached} of {row.value.n}"
    seconds, size = units.seconds(row.target["virtual_s"]), units.bytes_(row.target["bytes"])
    return f"{row.target['rounds']:.0f} rounds, {seconds}, {size}"


def make_table(rows: Sequence[Mapping[str, object]], caption: str) -> Table:
    """Return a table of texts and numbers by their headings."""
    import pandas as pd

    return Table(pd.DataFrame(rows, dtype=object), caption)
