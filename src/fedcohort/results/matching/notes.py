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
    return [
        *_missing_seeds(cells),
        *_early_ends([run for run in runs if run.ended_early]),
        *(
            f"diverged: {label(run)} ended with {metric}={run.metrics[metric]}"
            for run in runs
            if not math.isfinite(run.metrics[metric])
        ),
        *_oracles(cells),
        *_commits(runs),
        *(f"resumed by force: {label(run)} {run.tags[FORCED]}" for run in runs if FORCED in run.tags),
    ]


def _missing_seeds(cells: Cells) -> list[str]:
    all_seeds = {seed for by_seed in cells.values() for seed in by_seed}
    lines = []
    for cell, by_seed in cells.items():
        if missing := sorted(all_seeds - set(by_seed)):
            lines.append(f"missing: {spell(cell)} has no run of seed {', '.join(map(str, missing))}")
    return lines


def _early_ends(runs: list[Run]) -> list[str]:
    """Describe runs that a callback or a budget ended before their last round. They finished, so they count."""
    stopped = [f"{label(run)} ({run.tags[DONE]} of {run.params[ROUNDS]} rounds)" for run in runs if not run.ended_by]
    lines = [f"ended early: {', '.join(stopped)}"] if stopped else []
    by_budget: dict[str, list[Run]] = {}
    for run in (run for run in runs if run.ended_by):
        budget = ", ".join(f"{name}={run.params.get(name, '?')}" for name in run.ended_by)
        by_budget.setdefault(budget, []).append(run)
    for budget, ended in by_budget.items():
        clock = sorted(run.metrics[CLOCK] for run in ended if CLOCK in run.metrics and "virtual_s" in budget)
        span = (
            f", the last round of each after {units.seconds(clock[0])} to {units.seconds(clock[-1])}" if clock else ""
        )
        rounds = sorted({int(run.tags[DONE]) for run in ended})
        after = str(rounds[0]) if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
        lines.append(f"ended by {budget}: {len(ended)} run{'s' if len(ended) > 1 else ''}, after {after} rounds{span}")
    return lines


def find_oracles(cells: Cells) -> dict[Cell, str]:
    """Return the cells of oracles with the information that they read and no server can know."""
    tags = {cell: [run.tags.get(ORACLE) for run in by_seed.values()] for cell, by_seed in cells.items()}
    return {cell: fact for cell, values in tags.items() if (fact := next(filter(None, values), None))}


def _oracles(cells: Cells) -> list[str]:
    facts, lines = find_oracles(cells), []
    for fact in dict.fromkeys(facts.values()):
        names = ", ".join(spell(cell) for cell in facts if facts[cell] == fact)
        lines.append(f"oracles, not methods: {names} read {fact}, which no server can know")
    return lines


def _commits(runs: list[Run]) -> list[str]:
    counts = Counter(commit(run) for run in runs)
    if len(counts) == 1:
        return [f"all runs are of commit {next(iter(counts))}"]
    return ["the runs are of several commits: " + ", ".join(f"{name} ({n})" for name, n in counts.items())]
