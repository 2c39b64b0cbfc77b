"""Checks of the options in a study's yaml files; each raises `OptionError` with the name of the option."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.metric import is_accuracy
from fedcohort.results.target import BASELINE, Target
from fedcohort.results.verdict import Rules
from fedcohort.startup.components import CLASS_KEY
from fedcohort.startup.options import make_unknown_option_error

RULE_RANGES = {"alpha": "(0, 1)", "min_difference": "[0, inf)", "equivalence_margin": "(0, inf)"}
RULE_RANGES |= {"min_seeds": "[2, inf)", "detectable_difference": "(0, inf)"}
# new names of options by their former names, which are kept for one release
NEW_OPTION_NAMES = {"selectors": "methods", "yardsticks": "oracles", "beside": "references", "few": "seed_counts"}
NEW_OPTION_NAMES |= {"cells": "settings", "words": "overrides", "rows": "methods", "axis": "heterogeneity_kind"}
NEW_OPTION_NAMES |= {"win": "verdict", "least": "min_difference", "equal": "equivalence_margin", "seeds": "min_seeds"}
NEW_OPTION_NAMES |= {"worth": "detectable_difference"}


@contextmanager
def name_file_in_errors(yaml_file: Path, required_options: Sequence[str]) -> Iterator[None]:
    """Convert an error in the `with` block into an `OptionError` that names the file `yaml_file`.

    Errors of an option and errors of reading the file are converted.

    Args:
        yaml_file: the yaml file that the block reads.
        required_options: options that the file must have; the message names them if the file holds no options at all.
    """
    try:
        yield
    except OptionError as error:
        raise OptionError(f"{yaml_file}: {error}") from error
    except (OSError, TypeError, ValueError) as error:  # it holds a list, or a single value
        options_text = f": {', '.join(required_options)}" if required_options else ", and not a list or a single value"
        raise OptionError(f"{yaml_file} must hold options by name{options_text}") from error


def check_option_names(
    option_path: str, options: Mapping[str, Any], allowed_options: Sequence[str], required_options: Sequence[str] = ()
) -> None:
    """Raise `OptionError` for an unknown or a missing option of a yaml node.

    Args:
        option_path: dotted path of the node in the file, as "settings.a"; "" for the whole file.
        options: the options of the node, by name.
        allowed_options: names that the node may have.
        required_options: names that the node must have.
    """
    unknown_options = [str(option_name) for option_name in options if option_name not in allowed_options]
    if renamed_options := [name for name in unknown_options if NEW_OPTION_NAMES.get(name) in allowed_options]:
        names_text = ", ".join(f"{name} is called {NEW_OPTION_NAMES[name]} now" for name in renamed_options)
        raise OptionError(f"{option_path}: {names_text}: use the new name".removeprefix(": "))
    if unknown_options:
        raise make_unknown_option_error(option_path, unknown_options[0], allowed_options)
    if missing_options := [f"{option_path}.{n}".removeprefix(".") for n in required_options if n not in options]:
        verb_text = "is missing: add it" if len(missing_options) == 1 else "are missing: add them"
        raise OptionError(f"{', '.join(missing_options)} {verb_text}")


def read_mapping(option_path: str, yaml_value: object) -> dict[str, Any]:
    """Return `yaml_value`, the content of the yaml node `option_path`, as a dictionary.

    Raises `OptionError` for other types.
    """
    if not isinstance(yaml_value, Mapping):
        raise ranges.range_error(option_path, "options by name", yaml_value)
    return {str(option_name): option_value for option_name, option_value in yaml_value.items()}


def read_named_mapping(option_path: str, yaml_value: object) -> dict[str, Any]:
    """Return the content of a yaml node as a dictionary, whose keys must be identifiers to be parts of file names.

    Args:
        option_path: dotted path of the node, for messages.
        yaml_value: content of the node.

    Raises:
        OptionError: the node is not a mapping, or a key is not an identifier.
    """
    mapping = read_mapping(option_path, yaml_value)
    for mapping_key in mapping:
        ranges.identifier(f"{option_path}: the name", mapping_key)
    return mapping


def read_verdict_rules(yaml_value: object) -> Rules:
    """Return the rules of significance, minimum effect and equivalence.

    `yaml_value` is the content of the option `verdict`. Raises `OptionError` for an unknown rule, or for a value
    outside its range.
    """
    rule_values = read_mapping("verdict", yaml_value)
    check_option_names("verdict", rule_values, tuple(RULE_RANGES))
    for rule_name, rule_value in rule_values.items():
        (ranges.integer if rule_name == "min_seeds" else ranges.number)(
            f"verdict.{rule_name}", rule_value, RULE_RANGES[rule_name]
        )
    return Rules(**rule_values)


def read_target_option(option_path: str, yaml_value: object, metric: str, baseline_target: Target) -> Target | None:
    """Return the target of a setting, up to which costs are measured, from its option; None without a target.

    Raises `OptionError` for a value that is no target.

    Args:
        option_path: dotted path of the option, for messages.
        yaml_value: a number in the metric's unit, `baseline`, or None for no target.
        metric: the study's metric; a target of an accuracy must be in [0, 1].
        baseline_target: the target that `baseline` stands for.
    """
    if yaml_value is None or yaml_value == BASELINE:
        return baseline_target if yaml_value else None
    if isinstance(yaml_value, bool) or not isinstance(yaml_value, int | float):
        raise ranges.range_error(option_path, f"a number, {BASELINE} or null", yaml_value)
    ranges.number(option_path, yaml_value, "[0, 1]" if is_accuracy(metric) else "(-inf, inf)")
    return replace(baseline_target, value=float(yaml_value))


def read_seeds(option_path: str, yaml_value: object) -> tuple[int, ...]:
    """Return `yaml_value`, the content of the yaml node `option_path`, as seeds.

    Raises `OptionError` unless it is a list of one or more distinct integers of 0 or more that fit into Parquet files.
    """
    ranges.integers(option_path, yaml_value, f"[0, {2**63})")
    seeds: Any = yaml_value
    if not seeds or len(set(seeds)) < len(seeds):
        raise ranges.range_error(option_path, "a list of one or more different seeds", yaml_value)
    return tuple(seeds)


def read_seed_counts(yaml_value: object, methods: Sequence[str], n_seeds: int) -> dict[str, int]:
    """Return the number of seeds by method from the option `seed_counts`, which limits methods to the first seeds.

    Args:
        yaml_value: content of the option.
        methods: methods that the option may name.
        n_seeds: number of the study's seeds, the largest value.

    Raises:
        OptionError: an unknown method, or a number out of range.
    """
    seed_counts = read_mapping("seed_counts", yaml_value)
    for method, n in seed_counts.items():
        ranges.choice("seed_counts", method, *methods)
        ranges.integer(f"seed_counts.{method}", n, f"[1, {n_seeds}]")
    return seed_counts


def read_variants(yaml_value: object, methods: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the groups of methods that are variants of one idea, from the option `variants`, by name of the group.

    A method is in at most one group.

    Args:
        yaml_value: content of the option.
        methods: methods that the option may name.

    Raises:
        OptionError: an unknown method, a group of one method, or a method in two groups.
    """
    variants = read_named_mapping("variants", yaml_value)
    grouped_methods = set[str]()
    for group, group_methods in variants.items():
        ranges.words(f"variants.{group}", group_methods, *methods)
        if len(group_methods) == 1 or grouped_methods & set(group_methods):
            raise ranges.range_error(
                f"variants.{group}", "two or more methods, none of which is in another list", group_methods
            )
        grouped_methods |= set(group_methods)
    return {group: tuple(group_methods) for group, group_methods in variants.items()}


def read_overrides(option_path: str, yaml_value: object) -> tuple[str, ...]:
    """Return `yaml_value`, the content of the yaml node `option_path`, as overrides `name=value`.

    Raises `OptionError` for a text without `=`, for an override of `_target_`, which names a Python class, and for the
    options that the study sets itself: `seed`, `resume` and `paths.logs`.
    """
    ranges.texts(option_path, yaml_value)
    overrides: Any = yaml_value
    for override in overrides:
        option_name, equals_sign, _ = override.partition("=")
        if not equals_sign or not option_name:
            raise ranges.range_error(option_path, "a list of overrides name=value, typed as for train.py", override)
        if CLASS_KEY in override:
            raise OptionError(
                f"{option_path}: {override} names code, and a study is data: write the class into "
                "configs/<group>/<name>.yaml, and choose it with <group>=<name>"
            )
        if option_name in ("seed", "resume", "paths.logs"):
            raise OptionError(f"{option_path}: {option_name} is set by the study itself: leave {override} out")
    return tuple(overrides)
