"""What `fedcohort study report` writes of a leaderboard: a page as a study has it, with ranks over all regimes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from fedcohort.report.sheet import NONE, Sheet
from fedcohort.results.metric import MetricUnit
from fedcohort.results.verdict import judge_difference, sign_of
from fedcohort.study import answer, cautions, ranking, sheets
from fedcohort.study.definition import Study
from fedcohort.study.judge import judge
from fedcohort.study.leaderboard import Leaderboard
from fedcohort.study.missing import list_changed
from fedcohort.study.ranking import Ranks, Span
from fedcohort.study.report import Page, commits_of, draw, hours_of, save
from fedcohort.study.results import list_runs
from fedcohort.study.verdict import Verdict
from fedcohort.study.wording import count, points, tell_power, unit_of_study


def write(known: Leaderboard) -> list[Path]:
    """Write all files into the leaderboard's folder, and return them."""
    study, found = known.whole, known.found
    late = ranking.late_of(study, found)
    rows, few = ranking.split_rows(study, late)
    main = ranking.rank(study, late, rows, known.groups)
    verdict = judge(study, found)
    verdict = replace(verdict, ranks=main)
    u = unit_of_study(next(iter(known.studies.values())).metric)
    own = {row: ranking.rank(study, late, [*rows, row], known.groups) for row in few}
    tables = [sheet_of_board(known, main, verdict, u)] if main else []
    placed = {row: each for row, each in own.items() if each is not None}
    if named := {row: each for row, each in placed.items() if row in study.words}:
        tables.append(sheet_of_others(study, named, verdict, u))
    tables += [sheet_of_own(study, each, row, verdict, u) for row, each in placed.items() if row not in named]
    for name, of in known.studies.items():
        cells = {cell: each for cell, each in verdict.cells.items() if known.groups[cell] == name}
        if not cells:
            continue
        if main and set(cells) & set(main.by_setting):
            ranked = [each for cell, each in cells.items() if cell in main.by_setting]
            shown = sheet_of_places(study, main, [cell.cell for cell in ranked], name, of.title)
            tables.append(replace(shown, note=tell_power(study, ranked, u)))
        shown = sheets.sheet_of_differences(study, replace(verdict, cells=cells), u)
        tables.append(replace(shown, name=f"differences_{name}", title=f"{shown.title}: {of.title}"))
    tables.append(sheets.sheet_of_cells(study, verdict, u))
    page = Page(
        study=study,
        opening=_open(study, verdict, main, u),
        pictures=draw(study, verdict, u),
        overview=tables,
        cells=(),
        cautions=[
            *_cautions(study, verdict, u),
            *cautions.tell_early(study, found),
            *dict.fromkeys(note for of in known.studies.values() for note in of.notes),
        ],
        missing=_list_missing(known, verdict, main, own),
        refused=(),
        origin=_origin(known),
    )
    metrics = {cell: known.studies[name].metric for cell, name in known.groups.items()}
    return save(page, {"numbers": sheets.numbers_csv(study, verdict, metrics)})


def sheet_of_board(known: Leaderboard, main: Ranks, verdict: Verdict, u: MetricUnit) -> Sheet:
    """The leaderboard itself: a line a method, best first, with its mean rank in each study where there are several."""
    study = known.whole
    groups: dict[str, list[str]] = {}
    for cell in main.by_setting:
        groups.setdefault(known.groups[cell], []).append(cell)
    groups = groups if len(groups) > 1 else {}
    rows, places = [], main.places()
    for row, mean in main.mean.items():
        means = [fmean(main.by_setting[cell][row] for cell in cells) for cells in groups.values()]
        rows.append(
            (
                f"{places[row]}. {row}",
                spell_rank(mean, main.spread[row]),
                sheets.spell_contest(study, main, row, u),
                *map(_spell_place, means),
                *_count_wins(study, row, main, verdict, u),
            )
        )
    columns = (f"{known.called[name]} ({len(cells)})" for name, cells in groups.items())
    head = ("selector", "mean rank [95 %]", sheets.MEAN_DIFFERENCE, *columns, *_head_of_wins(study))
    strong = frozenset(i for i, row in enumerate(main.mean) if row == study.baseline)
    title = f"leaderboard: mean ranks over {count(len(main.by_setting), 'regime')}"
    return Sheet(
        "leaderboard",
        title,
        head,
        rows,
        strong,
        tell_power(study, [verdict.cells[cell] for cell in main.by_setting], u),
    )


def sheet_of_others(study: Study, boards: Mapping[str, Ranks], verdict: Verdict, u: MetricUnit) -> Sheet:
    """Where rows that lack some of these regimes stand, each by itself among the main ones in those that it has."""
    rows = []
    for row, own in sorted(boards.items(), key=lambda each: each[1].mean[each[0]] / len(each[1].mean)):
        place, mean = own.places()[row], spell_rank(own.mean[row], own.spread[row])
        where = (f"{place} of {len(own.mean)}", mean, sheets.spell_contest(study, own, row, u))
        rows.append((row, *where, str(len(own.by_setting)), *_count_wins(study, row, own, verdict, u)))
    head = ("selector", "place", "mean rank [95 %]", sheets.MEAN_DIFFERENCE, "regimes", *_head_of_wins(study))
    cells = {cell for own in boards.values() for cell in own.by_setting}
    power = tell_power(study, [verdict.cells[cell] for cell in study.cells if cell in cells], u)
    return Sheet("others", "each of the others among them, in the regimes that it has", head, rows, note=power)


def _head_of_wins(study: Study) -> tuple[str, str, str]:
    return f"beats {study.baseline} in", "loses in", "worst tenth (worst regime)"


def _count_wins(study: Study, row: str, ranks: Ranks, verdict: Verdict, u: MetricUnit) -> tuple[str, str, str]:
    """Return in how many regimes a row is better and worse, corrected over these, and its worst tenth of regimes."""
    if row == study.baseline:
        return NONE, NONE, NONE
    there = [verdict.cells[cell].rows[row] for cell in ranks.by_setting]
    signs = [sign_of(judge_difference(each.over, each.ps.of_method, study.rules)) if each.over else 0 for each in there]
    label = study.cells[ranks.contests[row].worst_setting].label if row in ranks.contests else NONE
    worst = f"{sheets.spell_worst(ranks, row, u)} ({label})"
    return str(signs.count(1)), str(signs.count(-1)), worst


def sheet_of_own(study: Study, own: Ranks, row: str, verdict: Verdict, u: MetricUnit) -> Sheet:
    """Where a row that has fewer runs stands among the main ones, on its own seeds."""
    head = ("selector", "mean rank [95 %]", *(study.cells[cell].label for cell in own.by_setting))
    rows = [_place_line(own, name) for name in own.mean]
    seeds = sorted({seed for of in own.seeds.values() for seed in of})
    where = f"{count(len(own.by_setting), 'regime')}, {count(len(seeds), 'seed')}: {', '.join(map(str, seeds))}"
    strong = frozenset(i for i, name in enumerate(own.mean) if name == row)
    title = f"among the others: {row}, where it was run ({where})"
    power = tell_power(study, [verdict.cells[cell] for cell in own.by_setting], u)
    return Sheet(f"among_{row}", title, head, rows, strong, power)


def sheet_of_places(study: Study, main: Ranks, cells: Sequence[str], name: str, title: str) -> Sheet:
    """Ranks of each row in each regime of a study."""
    head = ("selector", *(study.cells[cell].label for cell in cells))
    rows = [(row, *(_spell_place(main.by_setting[cell][row]) for cell in cells)) for row in main.mean]
    return Sheet(f"ranks_{name}", f"rank in each regime: {title}", head, rows)


def spell_rank(rank: float, span: Span) -> str:
    """`3.2 [2.1, 4.5]`, without an interval where there is none."""
    middle, low, high = map(_spell_place, (rank, *span))
    return f"{middle} [{low}, {high}]" if math.isfinite(span[0]) else middle


def _spell_place(rank: float) -> str:
    return f"{rank:.1f}".removesuffix(".0")


def _place_line(own: Ranks, row: str) -> tuple[str, ...]:
    mean = spell_rank(own.mean[row], own.spread[row])
    return (row, mean, *(_spell_place(ranks[row]) for ranks in own.by_setting.values()))


def _open(study: Study, verdict: Verdict, main: Ranks | None, u: MetricUnit) -> list[str]:
    cells = list(verdict.cells.values())
    if not cells or main is None:
        return ["There is nothing to rank yet: the studies have no runs of two methods in one regime."]
    unbeaten = [study.cells[cell.cell].label for cell in cells if not cell.winners()]
    seeds = sorted({len(of) for of in main.seeds.values()})
    span = f"{seeds[0]} to {count(seeds[-1], 'seed')}" if len(seeds) > 1 else count(seeds[0], "seed")
    lines = [
        f"{count(len(main.mean), 'selector')}, {count(len(main.by_setting), 'regime')}, {span} in each.",
        *answer.rank_methods(study, verdict, u),
        answer.count_regimes(study, verdict, u),
    ]
    return (
        [*lines, f"**No method is shown to beat {study.baseline}** in: {'; '.join(unbeaten)}."] if unbeaten else lines
    )


def _cautions(study: Study, verdict: Verdict, u: MetricUnit) -> list[str]:
    least = study.least * u.factor
    return [
        "A rank is among the methods of a regime, of means over the last evaluated rounds"
        f"{cautions.tell_clock(study)}, and over the seeds that all of them have; 1 is best. The mean gives "
        "families of regimes equal weight. Its interval comes from drawing seeds and families with replacement "
        "(bootstrap, 2000 draws, seeds once for all regimes of a study): what other seeds and regimes like these would "
        "give, in 88 to 95 % of cases. There is none below six families.",
        *cautions.tell_regimes(study, verdict, u),
        f"▲ and ▼, beats and loses: a difference to {study.baseline} on the same seeds whose p, corrected by Holm for "
        f"the methods of the regime, is below {study.alpha:g}, of {least:g} {points(u, least)} or more, over "
        f"{study.enough} seeds or more. {cautions.warn_of_many(study, verdict)}",
        "‡ is a yardstick, no method: it reads what no server can know, and has no rank.",
        "Ranked are the methods and regimes of the largest table without a gap, with half of the baseline's seeds or "
        "more in each place. A method that lacks some of these regimes is placed by itself, among the others in those "
        "that it has, on its seeds; one that no study.yaml names has a table of its own, unless it lacks none. A mean "
        "over regimes weighs the studies by how many regimes they have, which says nothing of how often such clients "
        "are met: the columns of the studies are beside it.",
        *cautions.tell_variants(study),
        *cautions.tell_tuned(study),
    ]


def _list_missing(
    known: Leaderboard, verdict: Verdict, main: Ranks | None, own: Mapping[str, Ranks | None]
) -> list[str]:
    """List regimes that nobody was run in, those that have no ranks, and rows that could be placed nowhere."""
    found = []
    for name in known.studies:
        lacks = [cell for cell, study in known.groups.items() if study == name and cell not in verdict.cells]
        if lacks:
            found.append(f"{count(len(lacks), 'regime')} of {name}: `fedcohort study run {name}`")
    found += _list_unranked(known, verdict, main) if main else []
    found += _list_twice(known)
    for name, study in known.studies.items():
        found += [f"{name}: {line}" for line in list_changed(study, known.of[name])]
    return found + [f"{row}: no regime that it has in common with the others" for row in own if own[row] is None]


def _list_unranked(known: Leaderboard, verdict: Verdict, main: Ranks) -> list[str]:
    """Say of regimes with results that have no ranks whose runs they lack, a line for those that lack the same."""
    lacks: dict[str, list[str]] = {}
    for cell, of in verdict.cells.items():
        if cell not in main.by_setting:
            rows = [row for row in main.mean if row not in of.rows]
            who = f"no run of {', '.join(rows)}" if rows else "no seed that all methods have"
            lacks.setdefault(who, []).append(known.whole.cells[cell].label)
    return [f"no ranks in {'; '.join(labels)}: {who}" for who, labels in lacks.items()]


def _list_twice(known: Leaderboard) -> list[str]:
    """Say which regimes are left out as another study has them, a line a study."""
    lines: dict[str, list[str]] = {}
    for place, earlier in known.twice.items():
        name, _, cell = place.partition("/")
        lines.setdefault(f"of {name}, as {earlier.partition('/')[0]} has them", []).append(
            known.studies[name].cells[cell].label
        )
    return [f"{count(len(labels), 'regime')} {why}: {'; '.join(labels)}" for why, labels in lines.items()]


def _origin(known: Leaderboard) -> list[str]:
    runs = list_runs(row for key, row in known.found.done() if key[0] in known.groups)
    counts = Counter(known.groups[row["cell"]] for row in runs)
    own = ", ".join(f"{name} ({counts[name]} runs)" for name in known.studies)
    return [
        f"The results of {own}, {hours_of(runs):.1f} hours of one process; of commit {commits_of(runs)}.",
        f"`fedcohort study run {next(iter(known.studies))} selectors=mine` adds your own word of configs/selector, "
        f"`fedcohort study report {known.whole.name}` writes this page.",
    ]
