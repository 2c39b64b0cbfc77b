"""The search space of a tuning, option `tune` of `study.yaml`, and its result, `tuned.yaml` in the same folder.

`tune` has these options:

    trials    number of trials of each method, at most the number of combinations of its options. The first trial has
              the default options.
    seeds     of the runs of a trial; none of the study's own.
    settings  of the runs. The value of a trial is the mean over these settings and seeds.
    metric    that is compared. It is measured on the server's validation set, and never on the test set.
    space     by method, the values of each option: a list, or {low, high, log: false}, integers where both ends are.

The result for `flash` is the method `flash_tuned`, with the same options in all settings. `tuned.yaml` has, for each
method, the options above, the best trial and:

    tried    the trials in order, each with its overrides, value and commit; the value is null where a trial failed
    spare    known trials that the present search has not reached
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.ranges import format_option_value
from fedcohort.startup.compose import read_yaml
from fedcohort.study.checks import check_option_names, name_file_in_errors, read_mapping, read_named_mapping, read_seeds

TUNED_FILE, TUNED_METHOD_SUFFIX = "tuned.yaml", "_tuned"
REQUIRED_OPTIONS = ("trials", "seeds", "settings", "space")
DEFAULT_METRIC = "server_val/acc"
RESULT_FIELDS = ("trials", "seeds", "settings", "metric", "overrides", "value", "default")  # of `TuningResult`
SEARCH_FIELDS = ("stamp", "tried", "spare")  # other fields of tuned.yaml, which only the search reads
TRIAL_FIELDS = ("overrides", "value", "commit")  # fields of a trial; one without a value also has a reason


@dataclass(frozen=True)
class ValueList:
    """The list `values` of the values that an option may have."""

    values: Sequence[Any]

    def allows_value(self, value: object) -> bool:
        """Return whether the option may have `value`."""
        return value in self.values


@dataclass(frozen=True)
class ValueInterval:
    """The values that an option may have, an interval.

    Attributes:
        low: smallest value; the option is an integer if both ends are.
        high: largest value.
        log: whether values are sampled on a logarithmic scale.
    """

    low: float
    high: float
    log: bool

    @property
    def has_integer_values(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def values(self) -> Sequence[int] | None:
        """All integers of the interval; None if it is one of real numbers."""
        return range(int(self.low), int(self.high) + 1) if self.has_integer_values else None

    def allows_value(self, value: object) -> bool:
        """Return whether the option may have `value`."""
        return isinstance(value, int if self.has_integer_values else int | float) and self.low <= value <= self.high


OptionRange = ValueList | ValueInterval


@dataclass(frozen=True)
class SearchSpace:
    """The options that are tuned, with their ranges.

    Attributes:
        trials: number of trials of each method.
        seeds: seeds of the runs of a trial.
        settings: names of the settings of the runs of a trial.
        metric: metric that the trials maximise.
        methods: ranges of the options, by method and option.
    """

    trials: int
    seeds: Sequence[int]
    settings: Sequence[str]
    metric: str
    methods: Mapping[str, Mapping[str, OptionRange]]

    def count_trials(self, method: str) -> int:
        """Return the number of trials of `method`: option `trials`, or its number of combinations if smaller."""
        value_lists = [option_range.values for option_range in self.methods[method].values()]
        return int(min(self.trials, math.prod(math.inf if values is None else len(values) for values in value_lists)))


@dataclass(frozen=True)
class TuningResult:
    """The result of tuning a method, with the names of `tuned.yaml`.

    Attributes:
        method: name of the method.
        overrides: overrides of the best trial.
        trials: number of trials.
        seeds: seeds of the runs of a trial.
        settings: names of the settings of the runs of a trial.
        metric: metric that the trials maximise.
        value: mean metric of the best trial over these settings and seeds.
        default: mean metric with the default options.
        commits: number of trials of each commit.
    """

    method: str
    overrides: Sequence[str]
    trials: int
    seeds: Sequence[int]
    settings: Sequence[str]
    metric: str
    value: float
    default: float
    commits: Mapping[str, int]


def read_search_space(value: object, settings: Collection[str], seeds: Collection[int]) -> SearchSpace:
    """Return the search space of the option `tune`.

    Args:
        value: the option.
        settings: names of the study's settings.
        seeds: seeds of the study.

    Raises:
        OptionError: for an option that is unknown, missing or out of range.
    """
    tune_options = read_mapping("tune", value)
    check_option_names("tune", tune_options, (*REQUIRED_OPTIONS, "metric"), REQUIRED_OPTIONS)
    ranges.integer("tune.trials", tune_options["trials"], "[1, inf)")
    tuning_seeds, metric = read_seeds("tune.seeds", tune_options["seeds"]), tune_options.get("metric", DEFAULT_METRIC)
    if shared_seeds := sorted(set(tuning_seeds) & set(seeds)):
        raise ranges.range_error(
            "tune.seeds", f"seeds that the study does not use, unlike {shared_seeds[0]}", tune_options["seeds"]
        )
    ranges.words("tune.settings", tune_options["settings"], *settings)
    ranges.choice("tune.metric", metric, DEFAULT_METRIC)
    methods = dict[str, dict[str, OptionRange]]()
    for method, method_options in read_mapping("tune.space", tune_options["space"]).items():
        yaml_path = f"tune.space.{method}"
        if not (method_options := read_mapping(yaml_path, method_options)):
            raise ranges.range_error(yaml_path, "one option or more", {})
        methods[method] = {name: _read_range(f"{yaml_path}.{name}", value) for name, value in method_options.items()}
    return SearchSpace(tune_options["trials"], tuning_seeds, tuple(tune_options["settings"]), metric, methods)


def _read_range(yaml_path: str, value: Any) -> OptionRange:  # noqa: ANN401 - any value of a yaml
    if isinstance(value, Mapping):
        check_option_names(yaml_path, value, ("low", "high", "log"), ("low", "high"))
        low, high, log = value["low"], value["high"], value.get("log", False)
        ranges.number(f"{yaml_path}.low", low, "(-inf, inf)")
        ranges.number(f"{yaml_path}.high", high, "(-inf, inf)")
        ranges.flag(f"{yaml_path}.log", log)
        if not low < high or (log and low <= 0):
            raise ranges.range_error(yaml_path, f"an interval with low < high{', low > 0' if log else ''}", dict(value))
        return ValueInterval(low, high, log)
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 1
    is_scalar_list = is_list and all(
        list_element is None or isinstance(list_element, str | int | float) for list_element in value
    )
    if is_scalar_list and len(set(map(format_option_value, value))) == len(value):
        return ValueList(tuple(value))
    raise ranges.range_error(
        yaml_path, "a list of two or more different values, or {low: 0.1, high: 10, log: true}", value
    )


def load_tuning_results(study_folder: Path) -> dict[str, TuningResult]:
    """Return the results of finished searches in `tuned.yaml` in `study_folder`, by the names of the tuned methods.

    Searches without a successful trial are left out. Raises `OptionError` for an invalid file.
    """
    return {
        f"{method}{TUNED_METHOD_SUFFIX}": TuningResult(
            method,
            commits=Counter(trial_result["commit"] for trial_result in method_search["tried"]),
            **{name: method_search[name] for name in RESULT_FIELDS},
        )
        for method, method_search in load_tuning_searches(study_folder).items()
        if method_search["overrides"] and len(method_search["tried"]) >= method_search["trials"]
    }


def load_tuning_searches(study_folder: Path) -> dict[str, dict[str, Any]]:
    """Return the content of `tuned.yaml` in `study_folder` by method; {} without the file.

    Raises `OptionError` for an invalid file.
    """
    tuned_file = study_folder / TUNED_FILE
    if not tuned_file.is_file():
        return {}
    with name_file_in_errors(tuned_file, ()):
        yaml_searches = read_named_mapping("methods", read_yaml(tuned_file))
        search_by_method = {
            method: read_mapping(method, method_search) for method, method_search in yaml_searches.items()
        }
        for method, method_search in search_by_method.items():
            check_option_names(
                method, method_search, (*RESULT_FIELDS, *SEARCH_FIELDS), (*RESULT_FIELDS, *SEARCH_FIELDS)
            )
            for trial_result in (*method_search["tried"], *method_search["spare"]):
                check_option_names(f"{method}: a trial", trial_result, (*TRIAL_FIELDS, "reason"), TRIAL_FIELDS)
        return search_by_method
