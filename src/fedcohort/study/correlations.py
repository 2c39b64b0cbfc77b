"""The table of what scores and rewards of learning methods correlate with, of what is known of the clients."""

import json
from collections.abc import Mapping

import numpy as np

from fedcohort.report.table import Table
from fedcohort.round.score_correlation import FACTS
from fedcohort.study.definition import Study
from fedcohort.study.page_tables import make_table
from fedcohort.study.results import Results

PARTS = {"score": "score", "exploit": "exploitation", "reward": "reward"}
NAMES = {"noise": "label noise", "skew": "class imbalance", "seconds": "seconds", "samples": "samples"}


def correlation_table(study: Study, results: Results) -> Table | None:
    """Return what scores and rewards of learning methods correlate with; None where no run has a reward.

    Rows without a reward are left out here, and are in `results.parquet`, column `follows`.
    """
    by_place: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for (cell, row, _), facts in results.done():
        correlations = json.loads(facts["follows"] or "{}")
        if cell in study.cells and any(name.startswith("reward_") for name in correlations):
            by_place.setdefault((cell, row), []).append(correlations)
    measured = {name for runs in by_place.values() for run in runs for name in run}
    columns = [(part, fact) for part in PARTS for fact in FACTS if f"{part}_{fact}" in measured]
    order = [*study.words, *sorted({row for _, row in by_place} - set(study.words))]
    lines = []
    for cell, row in ((cell, row) for cell in study.cells for row in order if (cell, row) in by_place):
        line: dict[str, object] = {"setting": study.cells[cell].label, "method": row}
        for part, fact in columns:
            values = [run[f"{part}_{fact}"] for run in by_place[cell, row] if f"{part}_{fact}" in run]
            line[f"{PARTS[part]}: {NAMES[fact]}"] = f"{np.mean(values):+.2f}" if values else ""
        lines.append(line)
    return (
        make_table(lines, "Rank correlation of scores and rewards with what is known of the clients")
        if columns
        else None
    )
