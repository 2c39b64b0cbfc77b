"""Rows of a user's own methods: kept outside the study's folder, so that git stays clean, and ranked on the terminal.

`study.yaml` does not name these methods. Their results are in `logs/studies/<name>`, which git ignores, and are merged
with the study's for status and reports.
"""

from collections.abc import Sequence

import numpy as np

from fedcohort.results.metric import lower_is_better
from fedcohort.study.definition import BASELINE, BOUND, METHOD, Study
from fedcohort.study.results import Results


def is_own(study: Study, row: str) -> bool:
    """Return whether the row is a user's own method, which `study.yaml` does not name."""
    return not row.startswith(BOUND) and row not in study.roles


def list_own(study: Study, found: Results) -> list[str]:
    """Return the methods with runs that `study.yaml` does not name."""
    return sorted({row for _, row, _ in found.rows if is_own(study, row)})


def describe_ranks(study: Study, found: Results) -> list[str]:
    """Return a line for each of the user's methods: its mean rank among the methods that ran on the same seeds."""
    return [line for row in list_own(study, found) if (line := _describe_rank(study, found, row))]


def _describe_rank(study: Study, found: Results, row: str) -> str:
    late: dict[str, dict[str, dict[int, float]]] = {}
    for (cell, method, seed), facts in found.done():
        if study.role_of(method) in (METHOD, BASELINE):
            late.setdefault(cell, {}).setdefault(method, {})[seed] = facts["late"]
    cells = {cell: set(methods[row]) for cell, methods in late.items() if row in methods}
    common = [late[cell] for cell in cells]
    methods = [name for name in (common[0] if common else ()) if all(name in of for of in common)]
    methods = [name for name in methods if all(cells[cell] <= set(late[cell][name]) for cell in cells)]
    if len(methods) < 2:
        return ""
    sign = 1.0 if lower_is_better(study.metric) else -1.0
    ranks = []
    for cell, seeds in cells.items():
        means = {name: sign * np.mean([late[cell][name][seed] for seed in seeds]) for name in methods}
        ranks.append(1 + sum(mean < means[row] for mean in means.values()))
    return (
        f"{row}: mean rank {np.mean(ranks):.1f} of {len(methods)} methods by {study.metric}, "
        f"{_count(cells, 'setting')}, {_count(set.union(*cells.values()), 'seed')}"
    )


def _count(things: Sequence[object] | set[int] | dict[str, set[int]], name: str) -> str:
    return f"{len(things)} {name}{'s' if len(things) > 1 else ''}"
