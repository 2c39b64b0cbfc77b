"""Tune the options of a study's methods with Optuna, on seeds that the study does not use (`fedcohort study tune`).

Each method with a search space has the same number of trials. The first trial has the default options. The others are
those of the TPE sampler, which has a seed for each method. Each trial is written to `tuned.yaml` at once. The same
command therefore resumes a search, and a larger number of trials in `study.yaml` extends it. A trial that was refused
or has failed is not repeated until it is removed from that file.
"""

import hashlib
import json
import logging
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedcohort import rng, units
from fedcohort.errors import OptionError
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.ranges import format_option_value
from fedcohort.record import provenance
from fedcohort.record.folder import write_atomically
from fedcohort.results.run import LATE_WINDOW_SHARE, result_of_run
from fedcohort.roles import flatten_config
from fedcohort.startup.options import make_unknown_option_error
from fedcohort.study.checks import name_file_in_errors
from fedcohort.study.definition import STUDY_FILE, Overrides, Study, find_clock_limit
from fedcohort.study.runner import PrintLine
from fedcohort.study.search_space import TUNED_FILE, OptionRange, SearchSpace, ValueList, load_tuning_searches
from fedcohort.study.tasks import RunTask, compose_run, run_tasks

INSTALL_COMMAND = 'pip install --constraint constraints.txt --editable ".[sweep]"'
Trial = dict[str, Any]  # as in tuned.yaml
Trials = Mapping[Overrides, Trial]


@dataclass(frozen=True)
class MethodTuning:
    """The search for the best options of each method that has a search space.

    Attributes:
        study: the study's definition.
        search_space: the options that are tuned, with their ranges.
        configs: the folder of the groups of Hydra.
        logs: folder in which run folders are created.
        print_line: function that prints a line, one for each trial.
        launch: how jobs are started.
    """

    study: Study
    search_space: SearchSpace
    configs: Path
    logs: Path
    print_line: PrintLine
    launch: LaunchOptions = field(default_factory=LaunchOptions)

    def tune_methods(self, methods: Sequence[str]) -> None:
        """Search the best options of each of `methods`, one after the other.

        Raises `OptionError` before the first trial for an unknown option, or a range that lacks the option's default.
        """
        with name_file_in_errors(self.study.folder / STUDY_FILE, ()):
            default_options = {method: self._read_default_options(method) for method in methods}
        for method in methods:
            self._search_best_options(method, default_options[method])

    def _search_best_options(self, method: str, default_options: Mapping[str, Any]) -> None:
        optuna = import_optuna()
        options, digest = self.search_space.methods[method], self._compute_search_digest(method)
        stored_search = load_tuning_searches(self.study.folder).get(method, {})
        stored_trials: list[Trial] = (
            [*stored_search["tried"], *stored_search["spare"]] if stored_search.get("stamp") == digest else []
        )
        trial_by_overrides = {tuple(trial["overrides"]): trial for trial in stored_trials}
        trial_sampler = optuna.samplers.TPESampler(seed=rng.philox_key(0, f"tune/{method}") % 2**32)
        optuna_study = optuna.create_study(direction="maximize", sampler=trial_sampler)
        optuna_study.enqueue_trial(default_options)
        done_trials: dict[Overrides, Trial] = {}
        n_trials = self.search_space.count_trials(method)
        while len(done_trials) < n_trials:
            optuna_trial = optuna_study.ask()
            overrides = _make_overrides(
                {name: _suggest_value(optuna_trial, name, option) for name, option in options.items()}
            )
            is_new_trial, is_repeated_trial = overrides not in trial_by_overrides, overrides in done_trials
            if is_new_trial:
                trial_by_overrides[overrides] = self._run_trial(method, overrides)
            trial = trial_by_overrides[overrides]
            states = optuna.trial.TrialState
            optuna_study.tell(optuna_trial, trial["value"], states.FAIL if trial["value"] is None else states.COMPLETE)
            if is_repeated_trial:  # no trial is done twice; where options have few combinations, try the next one
                if (untried_values := _find_untried_values(options, done_trials)) is not None:
                    optuna_study.enqueue_trial(untried_values)
                continue
            done_trials[overrides] = trial
            if is_new_trial:  # the file stays unchanged while stored trials are replayed
                self._write_tuned_file(method, digest, done_trials, trial_by_overrides)
            self.print_line(f"{method} [{len(done_trials)}/{n_trials}] {' '.join(overrides)}: {_format_trial(trial)}")
        self._write_tuned_file(method, digest, done_trials, trial_by_overrides)
        if n_failed_trials := sum(trial["value"] is None for trial in done_trials.values()):
            self.print_line(
                f"{method}: {n_failed_trials} of {units.format_count(len(done_trials), 'trial')} without a value, "
                f"not repeated until removed from {self.study.folder / TUNED_FILE}"
            )

    def _read_default_options(self, method: str) -> dict[str, Any]:
        """Return the default values of the tuned options of `method`, by option.

        Raises `OptionError` for an unknown option, or a range that lacks the default.
        """
        options = dict(flatten_config(compose_run(self._list_trial_runs(method, ())[0].overrides, self.configs).config))
        for name, option_range in self.search_space.methods[method].items():
            if name not in options:
                option_group = name.partition(".")[0]
                known_options = [option for option in options if option.startswith(f"{option_group}.")] or list(options)
                raise make_unknown_option_error(f"tune.space.{method}", name, known_options)
            if not option_range.allows_value(options[name]):
                raise OptionError(
                    f"tune.space.{method}.{name} must include the default {format_option_value(options[name])}, the "
                    "first trial: add it"
                )
        return {name: options[name] for name in self.search_space.methods[method]}

    def _list_trial_runs(self, method: str, overrides: Overrides) -> list[RunTask]:
        """Return the runs of a trial of `method` with `overrides`, one for each setting and seed of the search."""
        method_overrides = self.study.overrides.get(method, (f"selector={method}",))
        run_with_overrides = [
            self.study.list_overrides(name, method_overrides, overrides) for name in self.search_space.settings
        ]
        options = self.configs, self.logs, self.search_space.metric
        return [
            RunTask(words, seed, *options, keeps_run=False)
            for words in run_with_overrides
            for seed in self.search_space.seeds
        ]

    def _run_trial(self, method: str, overrides: Overrides) -> Trial:
        """Run a trial of `method` with these `overrides`, and return its entry in `tuned.yaml`.

        Its `mean` is the mean result of its runs, or None if a run was rejected or failed.
        """
        tasks = self._list_trial_runs(method, overrides)
        run_outcomes = list(dict(sorted(run_tasks(tasks, self.launch))).values())
        commit, has_uncommitted_code = provenance.current_commit()
        commit_text = f"{commit[:10]}{' with uncommitted changes' if has_uncommitted_code else ''}"
        trial: Trial = {"overrides": list(overrides), "value": None, "commit": commit_text}
        options, run_results = self.study.comparison_options, []
        for task, outcome in zip(tasks, run_outcomes, strict=True):
            if outcome.curve is None:
                return {**trial, "reason": f"{outcome.status}: {outcome.reason}"}
            metric_curve = outcome.curve.cut_at_horizon(options.horizon, find_clock_limit(task.overrides) or math.nan)
            run_results.append(result_of_run(metric_curve, options.result, options.horizon))
        mean = float(np.mean(run_results))
        return {**trial, "value": mean} if math.isfinite(mean) else {**trial, "reason": f"its mean is {mean}"}

    def _compute_search_digest(self, method: str) -> str:
        """Return a digest of the search of `method`, 12 hex digits, by which trials of another search are recognised.

        The number of trials does not count, so that a search can be extended.
        """
        runs = self._list_trial_runs(method, ())
        options = {name: asdict(option) for name, option in self.search_space.methods[method].items()}
        late_share_rule = [LATE_WINDOW_SHARE] if any(find_clock_limit(run.overrides) for run in runs) else []
        result_definition = {"result": self.study.result, "horizon": self.study.horizon}
        changed_result_definitions = (
            [result_definition] if result_definition != {"result": "late", "horizon": None} else []
        )
        run_facts, metric = [[run.overrides, run.seed] for run in runs], self.search_space.metric
        search_text = json.dumps([run_facts, options, metric, None, *late_share_rule, *changed_result_definitions])
        return hashlib.blake2b(search_text.encode(), digest_size=6).hexdigest()

    def _write_tuned_file(self, method: str, search_digest: str, done_trials: Trials, all_trials: Trials) -> None:
        successful_trials = [trial for trial in done_trials.values() if trial["value"] is not None]
        best_trial: Trial = max(
            successful_trials, key=lambda trial: trial["value"], default={"overrides": [], "value": math.nan}
        )
        default_trial_value = next(iter(done_trials.values()))["value"]
        search_facts = {
            "trials": self.search_space.count_trials(method),
            "seeds": list(self.search_space.seeds),
            "settings": list(self.search_space.settings),
            "metric": self.search_space.metric,
            "overrides": list(best_trial["overrides"]),
            "value": best_trial["value"],
            "default": math.nan if default_trial_value is None else default_trial_value,
            "stamp": search_digest,
            "tried": list(done_trials.values()),
            "spare": [trial for overrides, trial in all_trials.items() if overrides not in done_trials],
        }
        search_by_method = load_tuning_searches(self.study.folder) | {method: search_facts}
        header_line = "# Written by fedcohort study tune; the methods <name>_tuned of the study have these options.\n"
        yaml_text = yaml.safe_dump(search_by_method, sort_keys=False, width=110, default_flow_style=None)
        write_atomically(self.study.folder / TUNED_FILE, header_line + yaml_text)


def import_optuna() -> Any:  # noqa: ANN401 - it has no types, and is imported late
    """Return the module Optuna, limited to warnings. Raises `OptionError` if it is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise OptionError(f"fedcohort study tune needs Optuna: {INSTALL_COMMAND}") from error
    optuna.logging.set_verbosity(logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # enqueue_trial, since 2.0
    return optuna


def _make_overrides(value_by_option: Mapping[str, object]) -> Overrides:
    return tuple(f"{name}={format_option_value(option_value)}" for name, option_value in value_by_option.items())


def _find_untried_values(
    options: Mapping[str, OptionRange], earlier_trial_overrides: Collection[Overrides]
) -> dict[str, object] | None:
    """Return the first combination of values, by option, that was not tried.

    The result is None if all were tried, or if the range of an option is an interval of real numbers.

    Args:
        options: range of each tuned option.
        earlier_trial_overrides: overrides of the trials that are done.
    """
    value_lists = [option_range.values for option_range in options.values() if option_range.values is not None]
    if len(value_lists) < len(options):
        return None
    value_combinations = (dict(zip(options, option_values, strict=True)) for option_values in product(*value_lists))
    return next(
        (values for values in value_combinations if _make_overrides(values) not in earlier_trial_overrides), None
    )


def _suggest_value(suggested_trial: Any, name: str, option_range: OptionRange) -> object:  # noqa: ANN401 - Optuna's
    if isinstance(option_range, ValueList):
        return suggested_trial.suggest_categorical(name, list(option_range.values))
    suggest_number = suggested_trial.suggest_int if option_range.has_integer_values else suggested_trial.suggest_float
    return suggest_number(name, option_range.low, option_range.high, log=option_range.log)


def _format_trial(trial: Trial) -> str:
    return f"no value, {trial.get('reason', 'failed')}" if trial["value"] is None else f"{trial['value']:.4f}"
