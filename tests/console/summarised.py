"""Runs with a journal and a summary, and what summary.json says of them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from fedcohort.console.summary import Summary
from fedcohort.record.journal import Journal
from fedcohort.record.observer import Observer, RunInfo
from record.made_up import report


def watchers() -> list[Observer]:
    return [Journal(), Summary(full=True)]


def written(folder: Path) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return dict(json.loads((folder / "summary.json").read_text(), parse_constant=refuse))


def play_metrics(facts: RunInfo, *rounds: dict[str, float]) -> dict[str, Any]:
    """The summary of a run whose rounds, from 0 on, measured these."""
    journal, summary = watchers()
    for watcher in (journal, summary):
        watcher.start(facts)
    for step, metrics in enumerate(rounds):
        journal.observe(dataclasses.replace(report(step), metrics=metrics))
    for watcher in (journal, summary):
        watcher.finish("finished")
    return written(facts.folder)
