"""What has to be known to read a study's page: data of the template `study_notes.md.j2`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort.study.behaviour import ROUNDS
from fedcohort.study.definition import BOUND, Study
from fedcohort.study.places import clock_of, is_early
from fedcohort.study.results import Results
from fedcohort.study.verdict import Verdict


@dataclass(frozen=True)
class Notes:
    """Facts on the runs of a page.

    Attributes:
        collapsing: worst difference of each method that collapses on some seeds, in the metric's own unit.
        partial: labels of the settings that ask for some of the rows only.
        early: by label of a setting, the rows whose rounds ended before the clock did, with (runs, all runs).
        other_code: runs of code that behaves differently.
        compared: commits with which the code was compared.
        rounds: first rounds that the comparison runs.
    """

    collapsing: Mapping[str, float]
    partial: Sequence[str]
    early: Mapping[str, Mapping[str, tuple[int, int]]]
    other_code: int
    compared: Sequence[str]
    rounds: int = ROUNDS


def find_notes(study: Study, results: Results, verdict: Verdict) -> Notes:
    """Return the facts on the runs of a page."""
    early: dict[str, dict[str, list[bool]]] = {}
    for (cell, row, _), facts in results.done():
        if cell in study.cells and clock_of(facts["words"].split()) is not None:
            of_setting = early.setdefault(study.cells[cell].label, {})
            of_setting.setdefault(row.replace(BOUND, "bound "), []).append(is_early(facts["words"], facts["virtual_s"]))
    counted = {
        label: {row: (sum(flags), len(flags)) for row, flags in rows.items() if any(flags)}
        for label, rows in sorted(early.items())
    }
    differing = [row for _, row in results.done() if row["differs"]]
    collapsing = {
        row: min(
            (over.worst for cell in verdict.cells.values() if row in cell.rows and (over := cell.rows[row].over)),
            default=0.0,
        )
        for row in sorted(verdict.collapsing)
    }
    return Notes(
        collapsing=collapsing,
        partial=[cell.label for cell in study.cells.values() if cell.rows is not None],
        early={label: rows for label, rows in counted.items() if rows},
        other_code=len(differing),
        compared=sorted({row["compared"][:10] for row in differing}),
    )
