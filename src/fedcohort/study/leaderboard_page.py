"""What `fedcohort study report` writes of a leaderboard: several studies' methods over all of their settings."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from fedcohort.report.table import Table
from fedcohort.study import ranking, report
from fedcohort.study.formats import Format, count, format_of, write_rank
from fedcohort.study.judge import judge
from fedcohort.study.leaderboard import Leaderboard
from fedcohort.study.missing import list_changed
from fedcohort.study.notes import find_notes
from fedcohort.study.numbers import numbers_frame
from fedcohort.study.outcome import find_outcome
from fedcohort.study.page_tables import difference_tables, make_table, overall_row, settings_table
from fedcohort.study.ranking import Ranks
from fedcohort.study.results import list_runs
from fedcohort.study.verdict import Verdict


def write(known: Leaderboard) -> list[Path]:
    """Write all files into the leaderboard's folder, and return them, the page first."""
    study, results = known.whole, known.found
    late = ranking.late_of(study, results)
    rows, others = ranking.split_rows(study, late)
    ranks = ranking.rank(study, late, rows, known.groups)
    verdict = replace(judge(study, results), ranks=ranks)
    show = format_of(study, next(iter(known.studies.values())).metric)
    placed = {row: ranking.rank(study, late, [*rows, row], known.groups) for row in others}
    tables = {"settings": settings_table(study, verdict, show)}
    if ranks is not None:
        tables["overall"] = _ranked_table(known, ranks, verdict, show)
    if own := {row: of_row for row, of_row in placed.items() if of_row is not None}:
        tables["others"] = _others_table(known, own, verdict, show)
    differences = []
    for name, member in known.studies.items():
        cells = {cell: of for cell, of in verdict.cells.items() if known.groups[cell] == name}
        parts = difference_tables(study, replace(verdict, cells=cells), show)
        tables |= report.number_names(f"differences_{name}", [table for _, table in parts]) if parts else {}
        differences += [(f"{member.title}{f': {title}' if title else ''}", table) for title, table in parts]
    runs = list_runs(row for key, row in results.done() if key[0] in known.groups)
    data = report.page_data(study, verdict, show) | {
        "known": known,
        "ranks": ranks,
        "ranked_cells": [verdict.cells[cell] for cell in ranks.cells] if ranks else [],
        "outcome": replace(find_outcome(study, results, verdict, {}), so_far=""),  # each study says what it lacks
        "notes": find_notes(study, results, verdict),
        "figures": report.draw(study, verdict, show),
        "tables": tables,
        "differences": differences,
        "missing": _list_missing(known, verdict, ranks, placed),
        "runs_by_study": Counter(known.groups[row["cell"]] for row in runs),
        "origin": {"runs": len(runs), "hours": report.hours_of(runs), "commits": report.commits_of(runs)},
    }
    metrics = {cell: known.studies[name].metric for cell, name in known.groups.items()}
    csv = numbers_frame(study, verdict, metrics).to_csv(index=False, lineterminator="\n")
    return report.save(study, "leaderboard.md.j2", data, tables, {"numbers": csv})


def _ranked_table(known: Leaderboard, ranks: Ranks, verdict: Verdict, show: Format) -> Table:
    """Return the leaderboard itself, with the mean rank in each study where there are several."""
    groups: dict[str, list[str]] = {}
    for cell in ranks.cells:
        groups.setdefault(known.groups[cell], []).append(cell)
    lines, places = [], ranks.places()
    for row in ranks.mean:
        line = overall_row(known.whole, ranks, row, verdict, show) | {"method": f"{places[row]}. {row}"}
        if len(groups) > 1:
            for name, cells in groups.items():
                mean = fmean(ranks.by_setting[cell][row] for cell in cells)
                line[f"rank: {known.called[name]} ({len(cells)})"] = write_rank(mean)
        lines.append(line)
    return make_table(lines, f"Methods over {len(ranks.cells)} settings, differences in {show.unit}")


def _others_table(known: Leaderboard, placed: Mapping[str, Ranks], verdict: Verdict, show: Format) -> Table:
    """Return the methods that lack some settings, each among the ranked ones in the settings that it has."""
    lines = []
    for row, ranks in sorted(placed.items(), key=lambda named: named[1].mean[named[0]] / len(named[1].mean)):
        seeds = {seed for of_setting in ranks.seeds.values() for seed in of_setting}
        line = {"method": row, "place": f"{ranks.places()[row]} of {len(ranks.mean)}", "settings": len(ranks.cells)}
        lines.append({**line, "seeds": len(seeds), **overall_row(known.whole, ranks, row, verdict, show)})
    return make_table(lines, f"Methods that lack some of these settings, differences in {show.unit}")


def _list_missing(
    known: Leaderboard, verdict: Verdict, ranks: Ranks | None, placed: Mapping[str, Ranks | None]
) -> list[str]:
    """Return settings without runs, without ranks, or of an earlier study, and rows that could be placed nowhere."""
    lines: list[str] = []
    for name in known.studies:
        lacking = [cell for cell, study in known.groups.items() if study == name and cell not in verdict.cells]
        if lacking:
            lines.append(f"{count(len(lacking), 'setting')} of {name} without runs: `fedcohort study run {name}`")
    by_reason: dict[str, list[str]] = {}
    for cell, of_cell in verdict.cells.items() if ranks else ():
        if ranks and cell not in ranks.by_setting:
            rows = [row for row in ranks.mean if row not in of_cell.rows]
            reason = f"no run of {', '.join(rows)}" if rows else "no seed that all methods have"
            by_reason.setdefault(f"No ranks, {reason}", []).append(known.whole.cells[cell].label)
    for place, earlier in known.twice.items():
        name, _, cell = place.partition("/")
        reason = f"Settings of {name} left out, since {earlier.partition('/')[0]} has the same"
        by_reason.setdefault(reason, []).append(known.studies[name].cells[cell].label)
    lines += [f"{reason}: {'; '.join(labels)}" for reason, labels in by_reason.items()]
    for name, study in known.studies.items():
        lines += [f"{name}: {line}" for line in list_changed(study, known.of[name])]
    return lines + [f"{row}: no setting in common with the others" for row, of_row in placed.items() if of_row is None]
