"""Check the conditions of a study before its first run: their options, and the rounds that their runs evaluate."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.matching.run import INTERVAL_OPTION_BY_METRIC
from fedcohort.study import tasks
from fedcohort.study.checks import name_file_in_errors
from fedcohort.study.definition import BASELINE, BOUND, STUDY_FILE, Condition, Study, option_name

# options that decide how many rounds are evaluated
SCHEDULE_OPTIONS = ("rounds", "experiment", "eval.every", "eval.clients_every", "until.virtual_s")


def check_conditions(study: Study, conditions: Sequence[Condition], configs: Path) -> None:
    """Check the baseline and the bounds of each setting, and each other method in a setting that accepts it.

    Args:
        study: with the conditions.
        conditions: conditions that have runs to do.
        configs: the folder of the groups.

    Raises:
        OptionError: for an unknown option, and for a `horizon` that the runs do not evaluate.
    """
    path, reasons, accepted = study.folder / STUDY_FILE, dict[str, str](), set[str]()
    for condition in conditions:
        method = condition.method
        has_schedule = any(option_name(override) in SCHEDULE_OPTIONS for override in study.overrides.get(method, ()))
        is_needed = study.role_of(method) in (BASELINE, BOUND)
        if method in accepted and not is_needed and not has_schedule:
            continue
        if (refusal := tasks.find_refusal(condition.overrides, configs)) is None:
            with name_file_in_errors(path, ()):
                check_evaluations(study, condition, tasks.compose(condition.overrides, configs).config)
            accepted.add(method)
        elif is_needed:
            raise OptionError(f"{path}: {condition.setting}, {method}: {refusal.reason}")
        else:
            reasons.setdefault(method, refusal.reason)
    for method, reason in reasons.items():
        if method not in accepted:
            raise OptionError(f"{path}: {method}: {reason}")


def check_evaluations(study: Study, condition: Condition, config: Mapping[str, Any]) -> None:
    """Check that a run evaluates the metric, up to the horizon. Raises `OptionError` with the value and its range."""
    if config["until"]["virtual_s"] is not None and study.horizon is None:  # the clock has a window of its own
        return
    option = next((name for prefix, name in INTERVAL_OPTION_BY_METRIC.items() if study.metric.startswith(prefix)), None)
    rounds, every = config["rounds"], config["eval"][option.partition(".")[2]] if option else 1
    evaluated = rounds // every if every else 0
    schedule = f"rounds={rounds}" + (f" {option}={every}" if option else "")
    where = f"{condition.setting}, {condition.method}"
    if not evaluated:
        raise OptionError(f"{where}: {schedule} measures {study.metric} in no round")
    if study.horizon is not None and not every <= study.horizon <= rounds:
        allowed = f"an integer in [{every}, {rounds}], the evaluated rounds of {where} ({schedule}), or null"
        raise ranges.range_error("horizon", allowed, study.horizon)
