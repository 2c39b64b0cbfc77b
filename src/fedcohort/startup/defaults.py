"""What of a composed config differs from the defaults in configs/: the choices, and the options of each choice."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hydra.utils import get_object

from fedcohort.record.observer import Observer
from fedcohort.roles import flat, role_of
from fedcohort.startup.compose import PRESET, Composed, file_of
from fedcohort.startup.options import spell

OF_PRESET = ("partition", "label_noise", "feature_noise")  # groups whose choices a preset stands for
TARGET = "_target_"
CALLBACK = "callback"  # the group of observers, and of Lightning's callbacks


def differing(composition: Composed) -> dict[str, str]:
    """Return what differs, choices first; options as they are typed. {} where the folder of the groups isn't known.

    An option that its yaml computes (`${...}`), or that is in the yaml of another choice, differs where it was typed.
    A callback differs where it is no observer: observers change nothing, another callback may end the run.
    """
    if composition.configs is None:
        return {}
    config, choices, configs = composition.config, composition.choices, composition.configs
    default_choices, defaults = _read_defaults(configs / "train.yaml")
    preset = OF_PRESET if PRESET in choices else ()
    inner = dict[str, str]()
    changed = dict[str, str]()
    for group, choice in choices.items():
        if "." in group or not role_of(group).tracked:
            continue
        inner |= _read_inner_choices(configs, group, choice)
        if choice != default_choices.get(group) and group not in preset:
            changed[group] = choice
    changed |= {path: choice for path, choice in choices.items() if "." in path and choice != inner.get(path)}
    for group, choice in choices.items():
        options = _read_options(configs, group, choice)
        defaults = defaults | {f"{group}.{name}": value for name, value in options.items()}
    typed = {override.lstrip("+~").partition("=")[0].partition("@")[0] for override in composition.overrides}
    typed |= _read_options(configs, "experiment", choices.get("experiment", "")).keys()
    for option, value in flat(config):
        if option.endswith(TARGET) or not role_of(option).tracked:
            continue
        is_plain = option in defaults and "${" not in str(defaults[option])
        is_inside = option.rpartition(".")[0] in defaults  # of an option that is null, or a mapping
        if value != defaults[option] if is_plain else is_inside or option in typed:
            changed[option] = spell(value)
    for name, node in config[CALLBACK].items():
        if node and not _is_observer(node):
            changed |= {option: spell(value) for option, value in flat(node, f"{CALLBACK}.{name}.")}
    return changed


def _is_observer(node: Mapping[str, Any]) -> bool:
    target: object = get_object(node[TARGET])
    return isinstance(target, type) and issubclass(target, Observer)


@cache
def _read_defaults(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the default choice of each group, and the options that belong to none."""
    content = _load(path)
    lines = [line for line in content.pop("defaults") if line != "_self_"]
    choices = {str(group): str(choice) for line in lines for group, choice in line.items()}
    preset = _load(path.parent / PRESET / f"{choices[PRESET]}.yaml")
    for line in preset.get("defaults", ()):
        overridden = {key.removeprefix("override /"): choice for key, choice in line.items()}
        choices |= {group: choice for group, choice in overridden.items() if group in OF_PRESET}
    return choices, {name: value for name, value in flat(content) if not name.startswith("hydra.")}


@cache
def _read_options(configs: Path, group: str, choice: str) -> dict[str, Any]:
    """Return the options in a choice's yaml; {} where it has no file, as the data decided about it."""
    content = _load(configs / group / f"{choice}.yaml")
    return {name: value for name, value in flat(content.get(group, content)) if name.partition(".")[0] != "defaults"}


@cache
def _read_inner_choices(configs: Path, group: str, choice: str) -> dict[str, str]:
    """Return the choices that a choice's yaml makes inside of it, as `objective.base` of propfair."""
    lines = [line for line in _load(configs / group / f"{choice}.yaml").get("defaults", ()) if isinstance(line, dict)]
    inner = [item for line in lines for item in line.items() if "@" in item[0]]
    return {f"{group}.{key.rpartition('@')[2]}": str(value) for key, value in inner}


def _load(path: Path) -> dict[str, Any]:
    """Return what a yaml says, uncomposed; {} where there is none."""
    return file_of(path) if path.is_file() else {}
