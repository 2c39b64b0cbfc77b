"""Checks of the options in a study's yaml files; each raises `OptionError` with the name of the option."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.metric import is_share
from fedcohort.results.target import BASELINE, Target
from fedcohort.results.verdict import Rules
from fedcohort.startup.components import TARGET
from fedcohort.startup.options import make_unknown_option_error

RULE_RANGES = {"alpha": "(0, 1)", "least": "[0, inf)", "equal": "(0, inf)", "seeds": "[2, inf)", "worth": "(0, inf)"}


@contextmanager
def name_file_in_errors(path: Path, required_names: Sequence[str]) -> Iterator[None]:
    """Convert an error in the `with` block into an `OptionError` that names the file `path`.

    Errors of an option and errors of reading the file are converted.

    Args:
        path: the yaml file that the block reads.
        required_names: options that the file must have; the message names them if the file holds no options at all.
    """
    try:
        yield
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from error
    except (OSError, TypeError, ValueError) as error:  # it holds a list, or a single value
        names_text = f": {', '.join(required_names)}" if required_names else ", and not a list or a single value"
        raise OptionError(f"{path} must hold options by name{names_text}") from error


def check_option_names(
    yaml_path: str, options: Mapping[str, Any], allowed_names: Sequence[str], required_names: Sequence[str] = ()
) -> None:
    """Raise `OptionError` for an unknown or a missing option of a yaml node.

    Args:
        yaml_path: dotted path of the node in the file, as "cells.a"; "" for the whole file.
        options: the options of the node, by name.
        allowed_names: names that the node may have.
        required_names: names that the node must have.
    """
    for option_key in options:
        if option_key not in allowed_names:
            raise make_unknown_option_error(yaml_path, str(option_key), allowed_names)
    for option_key in required_names:
        if option_key not in options:
            raise OptionError(f"{yaml_path}.{option_key} is missing: add it".removeprefix("."))


def read_mapping(option: str, yaml_value: object) -> dict[str, Any]:
    """Return `yaml_value`, the content of the yaml node `option`, as a dictionary.

    Raises `OptionError` for other types.
    """
    if not isinstance(yaml_value, Mapping):
        raise ranges.range_error(option, "options by name", yaml_value)
    return {str(option_key): option_value for option_key, option_value in yaml_value.items()}


def read_named_mapping(option: str, yaml_value: object) -> dict[str, Any]:
    """Return the yaml node `option`, a mapping, whose keys can be parts of file names.

    Args:
        option: dotted path of the node, for messages.
        yaml_value: content of the node.

    Raises:
        OptionError: the node is not a mapping, or a key is not an identifier.
    """
    node_values = read_mapping(option, yaml_value)
    for node_key in node_values:
        ranges.identifier(f"{option}: the name", node_key)
    return node_values


def read_rules(yaml_value: object) -> Rules:
    """Return the rules of significance, minimum effect and equivalence.

    `yaml_value` is the content of the option `win`. Raises `OptionError` for an unknown rule, or for a value outside
    its range.
    """
    rule_values = read_mapping("win", yaml_value)
    check_option_names("win", rule_values, tuple(RULE_RANGES))
    for rule, rule_value in rule_values.items():
        (ranges.integer if rule == "seeds" else ranges.number)(f"win.{rule}", rule_value, RULE_RANGES[rule])
    return Rules(**{{"equal": "margin"}.get(rule, rule): rule_value for rule, rule_value in rule_values.items()})


def read_target(option: str, yaml_value: object, metric: str, baseline_target: Target) -> Target | None:
    """Return the target that a setting's option names; None for null. Raises `OptionError` for other values.

    Args:
        option: dotted path of the option, for messages.
        yaml_value: a number, in the metric's unit, or `baseline`, or None.
        metric: the study's metric; a target of a share must be in [0, 1].
        baseline_target: the target that `baseline` stands for.
    """
    if yaml_value is None or yaml_value == BASELINE:
        return baseline_target if yaml_value else None
    if isinstance(yaml_value, bool) or not isinstance(yaml_value, int | float):
        raise ranges.range_error(option, f"a number, {BASELINE} or null", yaml_value)
    ranges.number(option, yaml_value, "[0, 1]" if is_share(metric) else "(-inf, inf)")
    return replace(baseline_target, value=float(yaml_value))


def read_seeds(option: str, yaml_value: object) -> tuple[int, ...]:
    """Return `yaml_value`, the content of the yaml node `option`, as seeds.

    Raises `OptionError` unless it is a list of one or more distinct integers of 0 or more.
    """
    ranges.integers(option, yaml_value, "[0, inf)")
    seeds: Any = yaml_value
    if not seeds or len(set(seeds)) < len(seeds):
        raise ranges.range_error(option, "a list of one or more different seeds", yaml_value)
    return tuple(seeds)


def read_seed_counts(yaml_value: object, methods: Sequence[str], n_seeds: int) -> dict[str, int]:
    """Return the number of seeds by method from the option `few`, which limits methods to the first seeds.

    Args:
        yaml_value: content of the option.
        methods: methods that the option may name.
        n_seeds: number of the study's seeds, the largest value.

    Raises:
        OptionError: an unknown method, or a number out of range.
    """
    seed_counts = read_mapping("few", yaml_value)
    for method, n in seed_counts.items():
        ranges.choice("few", method, *methods)
        ranges.integer(f"few.{method}", n, f"[1, {n_seeds}]")
    return seed_counts


def read_variants(yaml_value: object, methods: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the groups of two or more methods in the option `variants`, by name of the group.

    A method is in at most one group.

    Args:
        yaml_value: content of the option.
        methods: methods that the option may name.

    Raises:
        OptionError: an unknown method, a small group, or a method in two groups.
    """
    variants = read_named_mapping("variants", yaml_value)
    grouped_methods = set[str]()
    for group, group_methods in variants.items():
        ranges.words(f"variants.{group}", group_methods, *methods)
        if len(group_methods) == 1 or grouped_methods & set(group_methods):
            raise ranges.range_error(f"variants.{group}", "two or more methods that no other list has", group_methods)
        grouped_methods |= set(group_methods)
    return {group: tuple(group_methods) for group, group_methods in variants.items()}


def read_overrides(option: str, yaml_value: object) -> tuple[str, ...]:
    """Return `yaml_value`, the content of the yaml node `option`, as overrides `name=value`.

    Raises `OptionError` for other texts, for overrides that name code, and for the options that the study sets itself:
    the seed, `resume` and `paths.logs`.
    """
    ranges.texts(option, yaml_value)
    overrides: Any = yaml_value
    for override in overrides:
        option_key, equals_sign, _ = override.partition("=")
        if not equals_sign or not option_key:
            raise ranges.range_error(option, "a list of overrides name=value, typed as for train.py", override)
        if TARGET in override:
            raise OptionError(
                f"{option}: {override} names code, and a study is data: write the class into "
                "configs/<group>/<name>.yaml, and choose it with <group>=<name>"
            )
        if option_key in ("seed", "resume", "paths.logs"):
            raise OptionError(f"{option}: {option_key} is set by the study itself: leave {override} out")
    return tuple(overrides)
