"""Runs with a journal and a summary, and the content of their summary.json."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from fedcohort.console.summary import Summary
from fedcohort.record.journal import Journal
from fedcohort.record.observer import Observer, RunInfo
from record.example_run import make_report


def make_observers() -> list[Observer]:
    return [Journal(), Summary(full=True)]


def read_summary(folder: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return dict(json.loads((folder / "summary.json").read_text(), parse_constant=refuse))


def play_metrics(facts: RunInfo, *rounds: dict[str, float]) -> dict[str, Any]:
    """Return the summary of a run with these metrics in rounds 0, 1, ..."""
    journal, summary = make_observers()
    for watcher in (journal, summary):
        watcher.start(facts)
    for step, metrics in enumerate(rounds):
        journal.observe(dataclasses.replace(make_report(step), metrics=metrics))
    for watcher in (journal, summary):
        watcher.finish("finished")
    return read_summary(facts.folder)
