"""A run to compare, the cells of a comparison, (setting, condition), as text, and notes on their runs."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from fedcohort import units
from fedcohort.record import tags
from fedcohort.results.compare import Cell
from fedcohort.roles import OptionEffect, find_role

SEED_OPTION = "seed"
OptionValues = tuple[tuple[str, str], ...]  # name and value of each option, sorted by name

# Option that sets in which rounds a metric is measured. server_val/loss may be a signal, measured in all rounds.
INTERVAL_OPTION_BY_METRIC = {"test/": "eval.every", "server_val/acc": "eval.every", "clients/": "eval.clients_every"}
CLOCK_METRIC = "time/virtual_s"


@dataclass(frozen=True)
class Run:
    """A tracked run.

    Attributes:
        id: id in MLflow, or the path of the run folder.
        name: name of the run.
        status: "finished", or how far the run is.
        started_ms: start of the run, in milliseconds since 1970.
        params: every option by its dotted name; `rounds` is that of the last start.
        tags: tags of the run by name.
        metrics: the last value of each metric.
    """

    id: str
    name: str
    status: str
    started_ms: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]

    def find_value(self, name: str) -> str | None:
        """Return the parameter `name`, or else the tag of this name; None without either."""
        return self.params.get(name, self.tags.get(name))

    @property
    def seed(self) -> int:
        return int(self.params[SEED_OPTION])

    @property
    def has_ended_early(self) -> bool:
        """Whether the run has fewer rounds than its option `rounds`; False if either is not known."""
        n_done_rounds, n_requested_rounds = self.tags.get(tags.ROUNDS_DONE_TAG), self.params.get(tags.ROUNDS_TAG)
        return (
            n_done_rounds is not None
            and n_requested_rounds is not None
            and int(n_done_rounds) < int(n_requested_rounds)
        )

    @property
    def sweep_ids(self) -> list[str]:
        """Ids of the sweeps that the run belongs to, the earliest first."""
        return [name for name in self.tags.get(tags.SWEEPS_TAG, "").split(tags.TAG_SEPARATOR) if name]

    @property
    def reached_limits(self) -> list[str]:
        """The options of the budget that the run has reached; none if a callback ended it, or if they are not known."""
        return [name for name in self.tags.get(tags.ENDED_BY_TAG, "").split(tags.TAG_SEPARATOR) if name]


def result_options(run: Run) -> OptionValues:
    """Return name and value of each option that decides the result of `run`, without the seed."""
    option_names = {name for name in run.params if find_role(name).effect is OptionEffect.RESULTS} - {SEED_OPTION}
    return tuple((name, run.params[name]) for name in sorted(option_names))


def list_differences(a: Iterable[tuple[str, str]], b: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return (name, value in a, value in b) for each option that differs; the value of a missing option is "none".

    `a` and `b` are the options of two runs, as pairs of name and value.
    """
    values_in_a, values_in_b = dict(a), dict(b)
    option_names = sorted({*values_in_a, *values_in_b})
    differences = ((name, values_in_a.get(name, "none"), values_in_b.get(name, "none")) for name in option_names)
    return [difference for difference in differences if difference[1] != difference[2]]


def label_run(run: Run) -> str:
    """Return the name of the folder of `run`, or its name in MLflow if it has no folder.

    The name in MLflow lacks the hash of the config, which distinguishes two runs with the same choices.
    """
    return PurePath(run.tags.get(tags.RUN_FOLDER_TAG, "")).name or f"{run.name} (MLflow's {run.id[:8]})"


def describe_commit(run: Run) -> str:
    """Return the commit of the code of `run`; all commits if the run was resumed with other code."""
    if "," in (commit_text := run.tags.get(tags.COMMITS_TAG, "")):
        return commit_text.replace(", ", " then ")
    uncommitted_mark = " with uncommitted changes" if run.tags.get("dirty") == "true" else ""
    return (run.tags.get("commit", "")[:8] or "unknown") + uncommitted_mark


def name_newest_sweep(runs: Sequence[Run]) -> str | None:
    """Return the sweep with the newest of `runs`; of several, the one whose name sorts last; None without any."""
    dated_sweeps = [(run.started_ms, sweep) for run in runs for sweep in run.sweep_ids]
    return max(dated_sweeps)[1] if dated_sweeps else None


RunsByCell = Mapping[Cell, Mapping[int, Run]]  # runs by cell and seed


def natural_sort_key(sorted_text: str) -> tuple[int, float, str]:
    """Return a key of `sorted_text` that sorts 10 after 9, and texts after numbers."""
    try:
        return 0, float(sorted_text), sorted_text
    except ValueError:
        return 1, 0.0, sorted_text


def format_cell(cell: Cell) -> str:
    """Return `cell`, (setting, condition), as text, such as `ucb_cs + scaffold`; the condition alone in one setting."""
    setting, condition = cell
    return f"{condition} + {setting}" if setting else condition


def format_option_values(values: Mapping[Cell, str]) -> str:
    """Return text such as `0.5 for ucb; 0.1 for random` of `values`, the value of an option by cell."""
    return "; ".join(f"{value} for {', '.join(_name_cells(values, value))}" for value in dict.fromkeys(values.values()))


def _name_cells(values: Mapping[Cell, str], value: str) -> list[str]:
    """Return the names of the settings with `value`, or of the conditions, or else of the cells (setting, condition).

    The first of these kinds is taken that separates the values. `values` has the value of an option by cell.
    """
    equal_cells = [cell for cell in values if values[cell] == value]
    for key_index in (0, 1):
        cell_labels = {cell[key_index] for cell in values}
        if 1 < len(cell_labels) == len({(cell[key_index], cell_value) for cell, cell_value in values.items()}):
            return list(dict.fromkeys(cell[key_index] for cell in equal_cells))
    return [format_cell(cell) for cell in equal_cells]


def find_minority_cells(values: Mapping[Cell, str]) -> set[Cell]:
    """Return the cells whose value differs from the majority of their setting; all cells without a majority.

    `values` has the value of an option by cell, (setting, condition).
    """
    minority_cells = set()
    for setting in {setting for setting, _ in values}:
        values_of_setting = {cell: value for cell, value in values.items() if cell[0] == setting}
        value, n_equal_values = Counter(values_of_setting.values()).most_common(1)[0]
        has_majority = 2 * n_equal_values > len(values_of_setting)
        minority_cells |= {cell for cell, v in values_of_setting.items() if v != value or not has_majority}
    return minority_cells


def is_implied_by_group(name: str, values: Mapping[str, Mapping[Cell, str]]) -> bool:
    """Return whether a cell lacks an option because it has another choice of a group, which is reported anyway.

    Args:
        name: dotted name of the option.
        values: value by option and cell; "none" in a cell without the option.
    """
    name_parts = name.split(".")
    choices = [values.get(".".join(name_parts[:n]), {}) for n in range(1, len(name_parts))]
    return "none" in values[name].values() and any(len(set(value_by_cell.values())) > 1 for value_by_cell in choices)


def describe_matched_runs(runs_by_cell: RunsByCell, metric: str) -> list[str]:
    """Return one line for each note on runs: missing seeds, early ends, divergence, oracles, commits, forced resumes.

    Args:
        runs_by_cell: runs by cell, (setting, condition), and seed.
        metric: metric whose last value shows divergence.
    """
    runs = [run for run_by_seed in runs_by_cell.values() for run in run_by_seed.values()]
    seeds, notes = {run.seed for run in runs}, []
    for cell, run_by_seed in runs_by_cell.items():
        if missing_seeds := sorted(seeds - set(run_by_seed)):
            notes.append(f"missing: {format_cell(cell)} has no run of seed {', '.join(map(str, missing_seeds))}")
    notes += _describe_early_ends([run for run in runs if run.has_ended_early])
    for run in runs:
        if not math.isfinite(run.metrics[metric]):
            notes.append(f"diverged: {label_run(run)} ended with {metric}={run.metrics[metric]}")
    oracle_facts = find_oracles(runs_by_cell)
    for oracle_fact in dict.fromkeys(oracle_facts.values()):
        cell_names = ", ".join(format_cell(cell) for cell in oracle_facts if oracle_facts[cell] == oracle_fact)
        notes.append(f"oracles, not methods: {cell_names} read {oracle_fact}, which no server can know")
    runs_by_commit = Counter(map(describe_commit, runs))
    commit_counts = ", ".join(f"{commit_name} ({n})" for commit_name, n in runs_by_commit.items())
    notes.append(
        f"all runs are of commit {next(iter(runs_by_commit))}"
        if len(runs_by_commit) == 1
        else f"the runs are of several commits: {commit_counts}"
    )
    notes += [
        f"resumed by force: {label_run(run)} {run.tags[tags.FORCED_RESUMES_TAG]}"
        for run in runs
        if tags.FORCED_RESUMES_TAG in run.tags
    ]
    return notes


def _describe_early_ends(runs: list[Run]) -> list[str]:
    """Return notes on those of `runs` that a callback or a budget ended before their last round.

    The comparison includes them, because they are finished.
    """
    stopped_runs = [run for run in runs if not run.reached_limits]
    run_texts = [
        f"{label_run(r)} ({r.tags[tags.ROUNDS_DONE_TAG]} of "
        f"{units.format_count(int(r.params[tags.ROUNDS_TAG]), 'round')})"
        for r in stopped_runs
    ]
    note_lines = [f"ended early: {', '.join(run_texts)}"] if run_texts else []
    runs_by_budget: dict[str, list[Run]] = {}
    for run in (run for run in runs if run.reached_limits):
        budget = ", ".join(f"{limit_name}={run.params.get(limit_name, '?')}" for limit_name in run.reached_limits)
        runs_by_budget.setdefault(budget, []).append(run)
    for budget, budget_runs in runs_by_budget.items():
        timed_runs = [run for run in budget_runs if CLOCK_METRIC in run.metrics] if "virtual_s" in budget else []
        end_times = sorted(run.metrics[CLOCK_METRIC] for run in timed_runs)
        time_range = (
            f"{units.format_seconds(end_times[0])} to {units.format_seconds(end_times[-1])}" if end_times else ""
        )
        end_range_text = f", the last round of each after {time_range}" if end_times else ""
        round_counts = sorted({int(run.tags[tags.ROUNDS_DONE_TAG]) for run in budget_runs})
        first_rounds_text = f"{round_counts[0]} to " if len(round_counts) > 1 else ""
        rounds_text = f"{first_rounds_text}{units.format_count(round_counts[-1], 'round')}"
        runs_text = units.format_count(len(budget_runs), "run")
        note_lines.append(f"ended by {budget}: {runs_text}, after {rounds_text}{end_range_text}")
    return note_lines


def find_oracles(runs_by_cell: RunsByCell) -> dict[Cell, str]:
    """Return the cells of `runs_by_cell` whose method is an oracle, with a text on what no server could know."""
    facts_by_cell = {
        cell: [run.tags.get(tags.ORACLE_TAG) for run in run_by_seed.values()]
        for cell, run_by_seed in runs_by_cell.items()
    }
    return {cell: fact for cell, facts in facts_by_cell.items() if (fact := next(filter(None, facts), None))}
