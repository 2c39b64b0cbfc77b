"""The runs that a study lacks, and those of another configuration than its present one."""

from collections.abc import Sequence

from fedcohort.study.definition import BOUND, Study
from fedcohort.study.formats import count
from fedcohort.study.results import Results
from fedcohort.study.verdict import Verdict


def list_missing(study: Study, verdict: Verdict) -> list[str]:
    """Return what the study asks for and hasn't got, a line a reason to run it again."""
    lacks: dict[str, dict[int, list[str]]] = {}
    for (cell, row), n in verdict.missing.items():
        lacks.setdefault(row, {}).setdefault(n, []).append(cell)
    rows: dict[str, list[str]] = {}
    for row, of in lacks.items():
        whole = sum(row.removeprefix(BOUND) in cell.bounds for cell in study.cells.values())
        whole = whole if row.startswith(BOUND) else sum(study.asks(cell, row) for cell in study.cells)
        asked = len(study.seeds_of(row))
        what = "; ".join(_lack(n, cells, whole, asked) for n, cells in sorted(of.items(), reverse=True))
        rows.setdefault(what, []).append(row.replace(BOUND, "bound "))
    return [f"{what}: {', '.join(names)}" for what, names in rows.items()]


def _lack(n: int, cells: Sequence[str], whole: int, seeds: int) -> str:
    where = "each of its settings" if len(cells) == whole else ", ".join(cells)
    return f"{'all' if n == seeds else n} of {seeds} seeds in {where}"


def list_changed(study: Study, found: Results) -> list[str]:
    """Say which runs are left out as their config is another one now; none or one line."""
    if not found.changed:
        return []
    cells: dict[str, list[str]] = {}
    for cell, row in dict.fromkeys((cell, row) for cell, row, _ in sorted(found.changed)):
        cells.setdefault(row.replace(BOUND, "bound "), []).append(cell)
    rows: dict[tuple[str, ...], list[str]] = {}
    for row, where in cells.items():
        rows.setdefault(tuple(where), []).append(row)
    what = "; ".join(
        f"{', '.join(names)} in {'all settings' if len(where) == len(study.cells) else ', '.join(where)}"
        for where, names in rows.items()
    )
    own = [row for row in cells if row not in study.words and not row.startswith("bound ")]
    more = f", with `selectors={','.join(own)}` those of your own" if own else ""
    return [
        f"{count(len(found.changed), 'run')} left out, since the configuration has changed or is rejected now: {what}; "
        f"`fedcohort study run {study.name}` runs them again{more}"
    ]
