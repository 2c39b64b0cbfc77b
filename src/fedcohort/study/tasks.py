"""Runs of a study as jobs of a sweep: checks before the first run, overrides, and outcomes."""

import re
import shutil
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import CheckpointError, OptionError
from fedcohort.jobs.grid import Rejection, list_rejected_jobs
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.jobs.local import WORKER_DEATH_KIND
from fedcohort.record import metadata, sweep_folder
from fedcohort.record.folder import config_hash
from fedcohort.record.history import read_history, wall_s
from fedcohort.record.sweep_folder import JobRecord, SweepPlan
from fedcohort.results.matching.tracked_run import INTERVAL_OPTION_BY_METRIC
from fedcohort.results.run import Evaluations
from fedcohort.round.budget import Budget
from fedcohort.startup import command_line, hydra_errors
from fedcohort.startup.compose import Composition
from fedcohort.startup.compose_jobs import compose_job
from fedcohort.study.checks import name_file_in_errors
from fedcohort.study.definition import BASELINE, BOUND, STUDY_FILE, Condition, Overrides, RunKey, Study, find_option
from fedcohort.study.measure import measure_run_folder
from fedcohort.study.result_files import DONE, FAILED, REFUSED

REJECTION_ERRORS = ("OptionError", "IncompatibleConfig", "UndeclaredSignal")  # not of missing data, which may be added
SWEEPS_FOLDER = "sweeps"  # subfolder of the study's logs
# options that decide how many rounds are evaluated
EVALUATION_OPTIONS = ("rounds", "experiment", "eval.every", "eval.clients_every", "until.virtual_s")


@dataclass(frozen=True)
class RunTask:
    """A run of a study that has to be executed.

    Attributes:
        overrides: Hydra overrides of the run, without the seed.
        seed: seed of the run.
        configs: the folder of the groups of Hydra.
        logs: folder in which the run's folder is created.
        metric: metric that is read from the run's folder.
        keeps_run: whether the run's folder is kept.
        resume: whether an interrupted run continues, and a finished run is not repeated.
    """

    overrides: Overrides
    seed: int
    configs: Path
    logs: Path
    metric: str
    keeps_run: bool
    resume: bool = True

    @property
    def job_overrides(self) -> Overrides:
        """The overrides of the task's job, with the seed, the folder of the logs and `resume`."""
        return (*self.overrides, f"resume={str(self.resume).lower()}", f"paths.logs={self.logs}", f"seed={self.seed}")


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: done with its results, refused, or failed with the reason.

    Attributes:
        status: `done`, `refused` or `failed`.
        reason: reason of a refusal or a failure.
        result_columns: columns of `results.parquet` of a run that is done.
        curve: evaluations of a run that is done.
        equal_run: setting, method and seed of an identical run of another condition, whose results these are, or None.
        run_folder: folder of the run that is done.
    """

    status: str
    reason: str = ""
    result_columns: dict[str, Any] = field(default_factory=dict)
    curve: Evaluations | None = None
    equal_run: RunKey | None = None
    run_folder: Path | None = None


def compose_run(overrides: Overrides, configs_folder: Path) -> Composition:
    """Compose the configuration of a run with `overrides`, seed 0, and the groups in the folder `configs_folder`.

    Raises `FedcohortError` for an invalid configuration, for Hydra's errors too.
    """
    with hydra_errors.raise_one_line_errors(overrides, configs_folder):
        command_line.check_typed_arguments(overrides, configs_folder)
        return compose_job((*overrides, "seed=0"), configs_folder)


@cache
def identify_run_config(overrides: Overrides, configs_folder: Path) -> dict[str, str]:
    """Return `config_hash` and `budget` of the runs with `overrides` and the groups in the folder `configs_folder`.

    The override of an option that the environment decides (`dataset.path=${oc.env:DATA,null}`) counts, and not its
    value: another machine has the same data in another folder. Raises `FedcohortError` for a rejected configuration.
    """
    config = deepcopy(dict(compose_run(overrides, configs_folder).config))
    for override in overrides:
        option_name, _, override_value = override.lstrip("+").partition("=")
        if override_value.startswith("${oc.env:"):
            *parent_keys, option = option_name.split(".")
            reduce(getitem, parent_keys, config)[option] = override_value
    return {"config_hash": config_hash(config), "budget": str(Budget.from_config(config))}


@cache
def find_run_rejection(overrides: Overrides, configs_folder: Path) -> Rejection | None:
    """Return why runs with `overrides` and the groups in `configs_folder` are rejected before data are read.

    The result is None if they are not rejected.
    """
    return next(list_rejected_jobs([overrides], lambda _: compose_run(overrides, configs_folder), configs_folder), None)


def run_tasks(tasks: Sequence[RunTask], launch_options: LaunchOptions) -> Generator[tuple[int, RunOutcome], None, None]:
    """Run tasks as the jobs of a sweep, and yield the position and the outcome of each task when it ends.

    Before the next outcome, a run's folder is removed unless its task keeps it. The sweep's folder is removed once all
    jobs have ended. Nothing is yielded if `launch_options`, which says how jobs are started, does not wait for them.
    """
    if not tasks:
        return
    # the folder has the time and the microsecond, so that two commands do not share it
    sweep_id = f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{time.time_ns() // 1000 % 1_000_000:06d}"
    sweep_path = tasks[0].logs / SWEEPS_FOLDER / sweep_id
    job_overrides = [task.job_overrides for task in tasks]
    sweep_folder.save_plan(sweep_path, SweepPlan(job_overrides, launcher=launch_options.launcher))
    n_ended_jobs = 0
    with closing(launch_options.run(sweep_path, dict(enumerate(job_overrides)), tasks[0].configs)) as ended_jobs:
        for job_number in ended_jobs:
            run_outcome = read_run_outcome(sweep_folder.read_job_record(sweep_path, job_number), tasks[job_number])
            yield job_number, run_outcome
            discard_run_folder(run_outcome, tasks[job_number])
            n_ended_jobs += 1
    if n_ended_jobs == len(tasks):
        shutil.rmtree(sweep_path, ignore_errors=True)


def discard_run_folder(run_outcome: RunOutcome, task: RunTask) -> None:
    """Remove the run folder of `run_outcome`, whose results are stored, unless `task` keeps it."""
    if run_outcome.run_folder is not None and not task.keeps_run:
        shutil.rmtree(run_outcome.run_folder, ignore_errors=True)


def read_run_outcome(job: JobRecord | None, task: RunTask) -> RunOutcome:
    """Return the outcome of `task`, whose job record is `job`, or None; raise `OptionError` if it lacks the metric."""
    if job is None:
        return RunOutcome(FAILED, "its job was never started: repeat the command")
    if job.how in ("done", "skipped") and job.folder is not None:
        try:
            run_facts, metric_curve = measure_run_folder(job.folder, task.metric)
        except CheckpointError as error:
            return RunOutcome(FAILED, str(error))
        job_start_s, job_end_s = job.began or 0.0, job.ended or 0.0
        wall_seconds = sum_earlier_wall_seconds(job.folder, int(1000 * job_start_s)) + job_end_s - job_start_s
        end_time_text = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(job_end_s))
        return RunOutcome(
            DONE, "", {**run_facts, "wall_s": wall_seconds, "when": end_time_text}, metric_curve, run_folder=job.folder
        )
    failure_reason, log_separator, log_text = job.reason.partition("; log: ")
    if job.how == "failed" and job.kind in REJECTION_ERRORS:
        return RunOutcome(REFUSED, failure_reason)
    if job.how == "stopped":
        failure_reason = "its process was ended by a signal"
    if job.how == "stopped" or job.kind == WORKER_DEATH_KIND:
        failure_reason += "; the same command resumes the run"
    env_variable = re.search(r"\$\{oc\.env:(\w+)", " ".join(task.overrides))
    if job.kind == "DataError" and env_variable:
        failure_reason += f" (here by the environment: {env_variable[1]}=folder fedcohort study run ...)"
    return RunOutcome(FAILED, f"{failure_reason}{log_separator}{log_text}")


def sum_earlier_wall_seconds(run_folder: Path, process_start_ms: int) -> float:
    """Return the wall time in seconds that earlier processes trained the run in `run_folder`; 0 without any.

    `process_start_ms` is the start of the present process, in milliseconds since 1970.
    """
    start_times = [start_ms for start_ms in metadata.read_start_times(run_folder) if start_ms < process_start_ms]
    if not start_times:
        return 0.0
    return wall_s(start_times, [round_ms for round_ms in read_history(run_folder).times if round_ms < process_start_ms])


def check_conditions(study: Study, conditions: Sequence[Condition], configs_folder: Path) -> None:
    """Check the configurations of conditions, without reading data.

    Those of the baseline and of the bounds must be accepted in each setting, those of another method in at least one.
    An accepted method must evaluate the study's metric. This is checked in each setting that accepts it, if the method
    has its own number of rounds or evaluations.

    Args:
        study: the study, which has the conditions.
        conditions: conditions that have runs to do.
        configs_folder: the folder of the groups of Hydra.

    Raises:
        OptionError: for a configuration that is rejected, and for a `horizon` that the runs do not evaluate.
    """
    study_file, reason_by_method, accepted_methods = study.folder / STUDY_FILE, dict[str, str](), set[str]()
    for condition in conditions:
        method = condition.method
        has_schedule = any(find_option(override) in EVALUATION_OPTIONS for override in study.overrides.get(method, ()))
        is_required_method = study.find_role(method) in (BASELINE, BOUND)
        if method in accepted_methods and not is_required_method and not has_schedule:
            continue
        if (rejection := find_run_rejection(condition.overrides, configs_folder)) is None:
            with name_file_in_errors(study_file, ()):
                check_metric_evaluations(study, condition, compose_run(condition.overrides, configs_folder).config)
            accepted_methods.add(method)
        elif is_required_method:
            raise OptionError(f"{study_file}: {condition.setting}, {method}: {rejection.reason}")
        else:
            reason_by_method.setdefault(method, rejection.reason)
    for method, reason in reason_by_method.items():
        if method not in accepted_methods:
            raise OptionError(f"{study_file}: {method}: {reason}")


def check_metric_evaluations(study: Study, condition: Condition, config: Mapping[str, Any]) -> None:
    """Raise `OptionError` if runs of `condition` never evaluate the study's metric, or not in its horizon.

    They need an evaluation up to the horizon, and as many rounds as the horizon or more.

    `config` is their composed configuration, and `study` has metric and horizon.
    """
    if config["until"]["virtual_s"] is not None and study.horizon is None:  # the clock has a window of its own
        return
    option = next((name for prefix, name in INTERVAL_OPTION_BY_METRIC.items() if study.metric.startswith(prefix)), None)
    n_rounds, eval_interval = config["rounds"], config["eval"][option.partition(".")[2]] if option else 1
    n_evaluations = n_rounds // eval_interval if eval_interval else 0
    schedule_text = f"rounds={n_rounds}" + (f" {option}={eval_interval}" if option else "")
    condition_name = f"{condition.setting}, {condition.method}"
    if not n_evaluations:
        raise OptionError(
            f"{condition_name}: {schedule_text} measures {study.metric} in no round: set {option} in [1, {n_rounds}]"
        )
    if study.horizon is not None and not eval_interval <= study.horizon <= n_rounds:
        rounds_text = f"the evaluated rounds of {condition_name} ({schedule_text})"
        allowed_text = f"an integer in [{eval_interval}, {n_rounds}], {rounds_text}, or null"
        raise ranges.range_error("horizon", allowed_text, study.horizon)
