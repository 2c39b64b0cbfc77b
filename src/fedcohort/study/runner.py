"""Run the missing runs of a study with a launcher, and store each result at once (`fedcohort study run`)."""

import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from fedcohort import units
from fedcohort.errors import FedcohortError, OptionError
from fedcohort.jobs import status
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.record import provenance, sweep_folder
from fedcohort.study import definition, progress, tasks
from fedcohort.study.config_digests import ConfigDigests
from fedcohort.study.definition import Condition, Overrides, RunKey, Study, find_option
from fedcohort.study.result_files import DONE, REFUSED, Row
from fedcohort.study.results import Results
from fedcohort.study.same_cost import resolve_conditions
from fedcohort.study.tasks import RunOutcome, RunTask, check_conditions, run_tasks

COMPOSITION_NOTE = "yaml files changed: composing the affected runs to see if their configuration changed (10 a second)"
PrintLine = Callable[[str], None]
Run = tuple[Condition, int]  # a condition and a seed


@dataclass
class StudyRunner:
    """A study with its results, and how its runs are started.

    Attributes:
        study: the study's definition.
        results: the stored results, which grow with each run.
        configs, logs: the folders of Hydra's groups, and of new run folders.
        keeps_run_folders: whether run folders are kept after their results are stored.
        print_line: function that prints a line.
        rerun_rule: which done runs are repeated. `true` repeats those of other commits and of uncommitted code,
            `changed` those that `compare_code.py` found different, and `false` none.
        launch: how jobs are started.
    """

    study: Study
    results: Results
    configs: Path
    logs: Path
    keeps_run_folders: bool
    print_line: PrintLine
    rerun_rule: str = "false"
    launch: LaunchOptions = field(default_factory=LaunchOptions)

    def __post_init__(self) -> None:
        self.digests = ConfigDigests(self.configs)

    def run_conditions(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> None:
        """Do the missing runs of `conditions` with `seeds`, and store each result at once.

        Raises `OptionError` before the first run: for unknown options, for jobs of an earlier command that a cluster
        still has, and for `again=true` with uncommitted code, whose runs could not be recognised.
        """
        if self.rerun_rule == "true" and provenance.current_commit()[1]:
            raise OptionError(
                "again=true repeats runs of other commits, but this code has uncommitted changes: commit them first"
            )
        if sweep_status_lines := self.collect_ended_jobs(conditions, seeds):
            raise OptionError(
                "\n".join([*sweep_status_lines, "wait for these jobs, or cancel them, before more are started"])
            )
        cost_limited_conditions = [condition for condition in conditions if condition.method in self.study.same_cost]
        other_conditions = [condition for condition in conditions if condition not in cost_limited_conditions]
        if other_conditions or not cost_limited_conditions:
            self._do_missing_runs(other_conditions, seeds, cost_limited_conditions)
        if cost_limited_conditions:  # their limits are known now
            self._do_missing_runs(cost_limited_conditions, seeds)

    def _do_missing_runs(
        self, conditions: Sequence[Condition], seeds: Sequence[int], later_conditions: Sequence[Condition] = ()
    ) -> None:
        """Do the missing runs of `conditions` with `seeds`; before the first, check `later_conditions`, too."""
        run_progress = self.find_progress(conditions, seeds)
        self._update_config_digests(run_progress)
        runs_to_do = {
            key: (condition, seed)
            for condition, seed in run_progress.runs
            if (
                run_progress.states[key := condition.key(seed)] in progress.UNFINISHED_STATES
                and not condition.awaited_method
            )
            or (run_progress.states[key] == DONE and self._needs_rerun(self.results.rows[key]))
        }
        methods = {condition.method for condition, _ in runs_to_do.values()}
        unfinished_conditions = [condition for condition in conditions if condition.method in methods]
        check_conditions(self.study, [*unfinished_conditions, *(later_conditions if runs_to_do else ())], self.configs)
        n_runs, time_left = len(runs_to_do), progress.estimate_time_left(self.results)
        n_done_runs = run_progress.count_runs(DONE) - sum(run_progress.states[key] == DONE for key in runs_to_do)
        runs_text = f"{len(run_progress.runs)} {'run is' if len(run_progress.runs) == 1 else 'runs are'}"
        self.print_line(f"{n_done_runs} of {runs_text} done, {n_runs} to do")
        for method in dict.fromkeys(c.awaited_method for c, _ in run_progress.runs if c.awaited_method):
            self.print_line(f"references of same_cost start after the runs of {method}, whose cost they spend")
        # an error or a signal ends the processes first
        with closing(self._yield_run_outcomes(list(runs_to_do.values()))) as outcomes:
            for run_number, ((condition, seed), outcome) in enumerate(outcomes, 1):
                row = self._store_run_outcome(condition, seed, outcome)
                del runs_to_do[condition.key(seed)]
                if row["status"] == DONE and outcome.equal_run is None:
                    time_left.add_run((condition.setting, condition.method), row["wall_s"])
                remaining_seconds = time_left.estimate_seconds([key[:2] for key in runs_to_do]) / self.launch.n_jobs
                time_left_text = f", {units.format_rough_seconds(remaining_seconds)} left" if remaining_seconds else ""
                self.print_line(f"[{run_number}/{n_runs}] {_describe_outcome(row, outcome.equal_run)}{time_left_text}")

    def find_progress(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> progress.StudyProgress:
        """Return the runs of `conditions` and `seeds` with their states, sorted by seed."""
        runs, states = [], dict[RunKey, str]()
        conditions = resolve_conditions(self.study, conditions, seeds, self.results.rows)
        for seed in seeds:
            for condition in conditions:
                if condition.seeds is None or seed in condition.seeds:
                    runs.append((condition, seed))
                    digest = self.digests.find_digest(condition.overrides)
                    row = None if condition.awaited_method else self.results.rows.get(condition.key(seed))
                    states[condition.key(seed)] = progress.find_run_state(row, digest)
        if progress.CHANGED in states.values():  # the overrides or yaml files; the configuration may still be the same
            self.print_line(COMPOSITION_NOTE)
        identity_by_overrides = dict[Overrides, dict[str, str]]()
        for condition, seed in runs:
            if states[run_key := condition.key(seed)] == progress.CHANGED:
                if condition.overrides not in identity_by_overrides:
                    identity_by_overrides[condition.overrides] = self._identify_config(condition)
                if identity_by_overrides[condition.overrides].items() <= self.results.rows[run_key].items():
                    states[run_key] = DONE
        return progress.StudyProgress(runs, states)

    def mark_changed_runs(self) -> Results:
        """Mark the done runs whose configuration has changed since, or is now rejected; return the results."""
        conditions = definition.list_conditions(self.study, methods=list(self.study.overrides))  # in all settings
        states = self.find_progress(conditions, sorted({run_key[2] for run_key, _ in self.results.done_runs()})).states
        self.results.changed = frozenset(run_key for run_key in states if states[run_key] == progress.CHANGED)
        for setting in {setting for setting, _, _ in self.results.changed}:
            self.results.measure_setting(self.study, setting)  # the target may be a level of the baseline's other runs
        return self.results

    def collect_ended_jobs(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> list[str]:
        """Store results of an earlier command's jobs, remove its ended sweeps, and return the status of the others."""
        sweep_status_lines = []
        resolved_conditions = resolve_conditions(self.study, conditions, seeds, self.results.rows)
        # of equal conditions the first has the run
        startable_conditions = [c for c in reversed(resolved_conditions) if not c.awaited_method]
        runs = {_format_run(c.overrides, seed): (c, seed) for c in startable_conditions for seed in c.seeds or seeds}
        for plan_file in sorted((self.logs / tasks.SWEEPS_FOLDER).glob(f"*/{sweep_folder.SWEEP_PLAN_FILE}")):
            sweep_path = plan_file.parent
            for job in sweep_folder.read_job_records(sweep_path).values():
                overrides = [o for o in job.words if find_option(o) not in ("resume", "paths.logs")]
                has_new_result = job.folder is not None and job.folder.exists() and job.how in ("done", "skipped")
                if has_new_result and (seeded_condition := runs.get(" ".join(overrides))) is not None:
                    outcome = tasks.read_run_outcome(job, self.make_task(*seeded_condition))
                    self.print_line(_describe_outcome(self._store_run_outcome(*seeded_condition, outcome), None))
                    tasks.discard_run_folder(outcome, self.make_task(*seeded_condition))
            sweep_plan = sweep_folder.read_plan(sweep_path)
            sweep_status = status.read_sweep_status(sweep_path, sweep_plan) if sweep_plan is not None else None
            if sweep_status is not None and sweep_status.is_live:
                cancel_command = f"fedcohort sweep cancel {sweep_path.name} logs={self.logs}"
                sweep_status_lines.append(f"{status.describe_sweep(sweep_path.name, sweep_status)}\n  {cancel_command}")
            else:
                shutil.rmtree(sweep_path, ignore_errors=True)
        return sweep_status_lines

    def make_task(self, condition: Condition, seed: int) -> RunTask:
        """Return the task that runs `condition` with `seed`."""
        resumes_run, metric = self.rerun_rule == "false", self.study.metric
        return RunTask(condition.overrides, seed, self.configs, self.logs, metric, self.keeps_run_folders, resumes_run)

    def _identify_config(self, condition: Condition) -> dict[str, str]:
        """Return hash and budget of the condition's configuration; {"config_hash": "rejected"} if it is rejected."""
        try:
            return tasks.identify_run_config(condition.overrides, self.configs)
        except FedcohortError:
            return {"config_hash": "rejected"}

    def _update_config_digests(self, run_progress: progress.StudyProgress) -> None:
        """Store the present config digests of done runs in `run_progress`, so that they are not composed again."""
        changed_run_keys = []
        for condition, seed in run_progress.runs:
            row, digest = self.results.rows.get(condition.key(seed), {}), self.digests.find_digest(condition.overrides)
            if run_progress.states[condition.key(seed)] == DONE and row["stamp"] != digest:
                row |= {"stamp": digest, "words": _format_run(condition.overrides, seed)}
                changed_run_keys.append(condition.key(seed))
        self.results.save_files(changed_run_keys)

    def _needs_rerun(self, row: Row) -> bool:
        """Return whether the option `again` repeats the run of this stored row."""
        if self.rerun_rule == "changed":
            return bool(row["differs"])
        return self.rerun_rule == "true" and (row["dirty"] or row["commit"] != provenance.current_commit()[0])

    def _yield_run_outcomes(self, runs: Sequence[Run]) -> Generator[tuple[Run, RunOutcome], None, None]:
        """Yield the outcome of each run, those known without training first. Equal runs are one job."""
        runs_by_identity = dict[tuple[object, ...], list[Run]]()
        for condition, seed in runs:
            rejection = tasks.find_run_rejection(condition.overrides, self.configs)
            if rejection is not None and rejection.error_class in tasks.REJECTION_ERRORS:
                yield (condition, seed), RunOutcome(REFUSED, rejection.reason)
            elif (outcome := self._find_run_with_equal_config(condition, seed)) is not None:
                yield (condition, seed), outcome
            else:
                config_identity = tasks.identify_run_config(condition.overrides, self.configs)
                runs_by_identity.setdefault((*config_identity.values(), seed), []).append((condition, seed))
        run_groups = list(runs_by_identity.values())
        with closing(run_tasks([self.make_task(*equal_runs[0]) for equal_runs in run_groups], self.launch)) as outcomes:
            for group_number, outcome in outcomes:
                for condition, seed in run_groups[group_number]:  # a bound can equal another setting's baseline
                    yield (condition, seed), self._find_run_with_equal_config(condition, seed) or outcome

    def _find_run_with_equal_config(self, condition: Condition, seed: int) -> RunOutcome | None:
        """Return the stored outcome of an equal run with this seed, of any condition; None if there is none."""
        config_identity = tasks.identify_run_config(condition.overrides, self.configs)
        for key, row in sorted(self.results.done_runs(), key=lambda key_and_row: key_and_row[0] != condition.key(seed)):
            if key[2] == seed and config_identity.items() <= row.items() and not self._needs_rerun(row):
                return RunOutcome(DONE, "", row, self.results.curves[key], key)
        return None

    def _store_run_outcome(self, condition: Condition, seed: int, outcome: RunOutcome) -> Row:
        """Store the outcome of the run of `condition` with `seed`, and return its row."""
        commit, has_uncommitted_code = provenance.current_commit()
        row: Row = {"commit": commit, "dirty": has_uncommitted_code, **outcome.result_columns}
        row |= {"cell": condition.setting, "selector": condition.method, "seed": seed, "metric": self.study.metric}
        row |= {"status": outcome.status, "reason": outcome.reason, "words": _format_run(condition.overrides, seed)}
        row["stamp"] = self.digests.find_digest(condition.overrides)
        if outcome.equal_run is None and not row["dirty"]:
            row |= {"compared": row["commit"], "differs": ""}
        if outcome.curve is not None:
            row |= tasks.identify_run_config(condition.overrides, self.configs)
        self.results.store_run(row, outcome.curve, is_user_method=self.study.is_user_method(condition.method))
        self.results.measure_setting(self.study, condition.setting, condition.key(seed))
        self.results.save_files([condition.key(seed)])
        return self.results.rows[condition.key(seed)]


def _format_run(overrides: Overrides, seed: int) -> str:
    return " ".join((*overrides, f"seed={seed}"))


def _describe_outcome(row: Row, equal_run_key: RunKey | None) -> str:
    run_name = f"{row['cell']} {row['selector']} seed {row['seed']}"
    if equal_run_key:
        return f"{run_name}: {row['late']:.4f}, the same run as {equal_run_key[0]} {equal_run_key[1]}"
    if row["status"] == DONE:
        return f"{run_name}: {row['late']:.4f} in {row['wall_s']:.1f} s"
    return f"{run_name}: {row['status']}: {row['reason']}"
