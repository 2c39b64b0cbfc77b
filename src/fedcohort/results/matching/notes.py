"""Notes on the runs of a comparison: missing seeds, early ends, divergence, oracles and commits."""

import math
from collections import Counter
from collections.abc import Mapping

from fedcohort import units
from fedcohort.record.tags import DONE, FORCED, ORACLE, ROUNDS
from fedcohort.results.matching.cells import Cell, spell
from fedcohort.results.matching.run import Run, commit, label

CLOCK = "time/virtual_s"
Cells = Mapping[Cell, Mapping[int, Run]]


def describe_runs(cells: Cells, metric: str) -> list[str]:
    """Return one line for each note; cells: runs by cell and seed."""
    runs = [run for by_seed in cells.values() for run in by_seed.values()]
    seeds, notes = {run.seed for run in runs}, []
    for cell, by_seed in cells.items():
        if missing := sorted(seeds - set(by_seed)):
            notes.append(f"missing: {spell(cell)} has no run of seed {', '.join(map(str, missing))}")
    notes += _describe_early_ends([run for run in runs if run.ended_early])
    for run in runs:
        if not math.isfinite(run.metrics[metric]):
            notes.append(f"diverged: {label(run)} ended with {metric}={run.metrics[metric]}")
    oracles = find_oracles(cells)
    for fact in dict.fromkeys(oracles.values()):
        names = ", ".join(spell(cell) for cell in oracles if oracles[cell] == fact)
        notes.append(f"oracles, not methods: {names} read {fact}, which no server can know")
    commits = Counter(map(commit, runs))
    if len(commits) == 1:
        notes.append(f"all runs are of commit {next(iter(commits))}")
    else:
        counts = ", ".join(f"{name} ({n})" for name, n in commits.items())
        notes.append(f"the runs are of several commits: {counts}")
    return notes + [f"resumed by force: {label(run)} {run.tags[FORCED]}" for run in runs if FORCED in run.tags]


def _describe_early_ends(runs: list[Run]) -> list[str]:
    """Describe runs that a callback or a budget ended before their last round. They finished, so they count."""
    stopped = [f"{label(run)} ({run.tags[DONE]} of {run.params[ROUNDS]} rounds)" for run in runs if not run.ended_by]
    lines = [f"ended early: {', '.join(stopped)}"] if stopped else []
    by_budget: dict[str, list[Run]] = {}
    for run in (run for run in runs if run.ended_by):
        budget = ", ".join(f"{name}={run.params.get(name, '?')}" for name in run.ended_by)
        by_budget.setdefault(budget, []).append(run)
    for budget, ended in by_budget.items():
        clock = sorted(run.metrics[CLOCK] for run in ended if CLOCK in run.metrics and "virtual_s" in budget)
        ends = f"{units.seconds(clock[0])} to {units.seconds(clock[-1])}" if clock else ""
        span = f", the last round of each after {ends}" if clock else ""
        rounds = sorted({int(run.tags[DONE]) for run in ended})
        after = str(rounds[0]) if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
        lines.append(f"ended by {budget}: {len(ended)} run{'s' if len(ended) > 1 else ''}, after {after} rounds{span}")
    return lines


def find_oracles(cells: Cells) -> dict[Cell, str]:
    """Return the cells of oracles with the information that they read and no server can know."""
    tags = {cell: [run.tags.get(ORACLE) for run in by_seed.values()] for cell, by_seed in cells.items()}
    return {cell: fact for cell, values in tags.items() if (fact := next(filter(None, values), None))}
