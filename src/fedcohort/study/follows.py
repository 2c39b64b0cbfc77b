"""The table of what the scores and rewards of learning methods follow, by what the bench knows of the clients."""

import json
from collections.abc import Mapping

import numpy as np

from fedcohort.report.sheet import NONE, Sheet
from fedcohort.round.score_correlation import FACTS
from fedcohort.study.definition import Study
from fedcohort.study.results import Results

PARTS = {"score": "score", "exploit": "exploitation", "reward": "reward"}
CALLED = {"noise": "wrong labels", "skew": "class imbalance", "seconds": "seconds", "samples": "samples"}


def list_sheets(study: Study, found: Results) -> list[Sheet]:
    """Return the table, in a list; none where no run has told what its rewards follow.

    Rows without a reward are left out here, and are in `results.parquet`, column `follows`.
    """
    means = _means(study, found)
    known = {name for of in means.values() for name in of}
    shown = [(part, fact) for part in PARTS for fact in FACTS if f"{part}_{fact}" in known]
    if not shown:
        return []
    head = ("regime", "selector", *(f"{PARTS[part]}: {CALLED[fact]}" for part, fact in shown))
    rows = [
        (study.cells[cell].label, row, *(_spell(of.get(f"{part}_{fact}")) for part, fact in shown))
        for (cell, row), of in means.items()
    ]
    note = (
        "Rank correlation over the clients, mean over rounds and seeds: of what a method chose by, of the part of it "
        "that it had learned, and of the reward that it was paid, with each client's rate of wrong labels, class "
        "imbalance, expected seconds and number of samples. A dash: clients don't differ in it. Runs of an earlier "
        "version, which kept none, are in no line."
    )
    return [Sheet("follows", "what scores and rewards follow", head, rows, note=note)]


def _means(study: Study, found: Results) -> dict[tuple[str, str], Mapping[str, float]]:
    """Return the means over seeds by cell and row, in the study's order, of rows whose rewards are known."""
    told: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for (cell, row, _), facts in found.done():
        of = json.loads(facts["follows"] or "{}")
        if any(name.startswith("reward_") for name in of):
            told.setdefault((cell, row), []).append(of)
    order = [*study.words, *sorted({row for _, row in told} - set(study.words))]
    places = [(cell, row) for cell in study.cells for row in order if (cell, row) in told]
    return {place: _average(told[place]) for place in places}


def _average(runs: list[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for of in runs for name in of)
    return {name: float(np.mean([of[name] for of in runs if name in of])) for name in names}


def _spell(rho: float | None) -> str:
    return NONE if rho is None else f"{rho:+.2f}"
