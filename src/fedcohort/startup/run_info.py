"""Describe a run by its options, its data and its origin, and find the nearest earlier run."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from hydra.utils import get_object

from fedcohort.record import folder, provenance
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.roles import RunIdentity, flatten_config, role_of, select_options
from fedcohort.signal.base import unknowable_signals
from fedcohort.startup.compose import PRESET, Composed, read_yaml
from fedcohort.startup.options import spell_value
from fedcohort.tracking import sweep_tags

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.startup.restart import ResumePoint
    from fedcohort.types import Values

DATA_FIELDS = ("n_train", "class_counts", "noise_rate", "skew", "feature_noise", "client_names")
PRESET_GROUPS = ("partition", "label_noise", "feature_noise")  # groups whose choices a preset sets
TARGET = "_target_"
CALLBACK = "callback"  # the group of observers and of Lightning's callbacks
MAX_RUNS = 50  # the newest runs that are compared: each has a config of 200 lines to read
MAX_DIFFERENCES = 4  # in the message
IDENTITY = (RunIdentity.HASH, RunIdentity.SEED)
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where libyaml is installed


def describe_run(
    composition: Composed,
    loop: "FederatedLoop",
    network: "nn.Module",
    sweep: str | None,
    path: Path,
    restart: "ResumePoint",
    expected_s: "Values",
) -> RunInfo:
    """Return the description of a run whose folder is claimed.

    Args:
        composition: the composed config.
        loop: with components, federation and observers.
        network: the model, whose trainable parameters are counted.
        sweep: id of the sweep that the run belongs to, or None.
        path: the run's folder.
        restart: the rounds before this start, and their costs.
        expected_s: expected virtual seconds of a full local job of each client, [K].
    """
    starts, config = provenance.read_starts(path), composition.config
    this_start = {name: starts[-1][name] for name in ("commit", "dirty", "versions")}
    return RunInfo(
        folder=path,
        name=path.name,
        choices=composition.choices,
        config=config,
        config_hash=folder.config_hash(config),
        seed=config["seed"],
        tags={**_list_tags(loop), **sweep_tags.sweeps_tag(path, sweep)},
        expected_s=expected_s,
        n_params=sum(p.numel() for p in network.parameters() if p.requires_grad),
        rounds=config["rounds"],
        start=restart.rounds,
        spent=restart.spending.pack() if restart.rounds else {},
        starts=starts,
        changed=list_changed(composition),
        **this_start,
        **describe_data(loop.federation),
    )


def _list_tags(loop: "FederatedLoop") -> dict[str, str]:
    """Return the tags of a run, apart from those of its sweeps."""
    federation = loop.federation
    tags = {
        "tracking": "".join([observer.opening_line() for observer in loop.observers]),
        "engine": loop.engine_reason,
        "data": federation.checksum,
        "hub": federation.revision,
        "inputs": federation.inputs,
        "categories": federation.categories,
        "yardstick": ", ".join(unknowable_signals(loop.components.needs())),  # signals that make the run an oracle
    }
    return {name: text for name, text in tags.items() if text or name in ("tracking", "engine", "data")}


def describe_data(federation: "Federation") -> dict[str, Any]:
    """Return the fields of `RunInfo` that describe the data and their distribution among clients."""
    return {
        **{name: getattr(federation, name) for name in DATA_FIELDS},
        "labels": {str(number): name for number, name in enumerate(federation.class_names)},
    }


def list_changed(composition: Composed) -> dict[str, str]:
    """Return the choices and options that differ from the defaults, spelled for the command line; choices come first.

    An option that its yaml computes (`${...}`), or that is in the yaml of another choice, differs where it was typed.
    A callback differs if it is not an observer: observers have no effect on results, but a callback may end the run.
    The result is {} if the folder of the groups is not known.
    """
    if composition.configs is None:
        return {}
    config, choices, configs = composition.config, composition.choices, composition.configs
    default_choices, defaults = _read_defaults(configs / "train.yaml")
    defaults, changed = dict(defaults), dict[str, str]()
    for group in (group for group in choices if "." not in group and role_of(group).tracked):
        default_choices = default_choices | _read_inner_choices(configs, group, choices[group])
    for group, choice in sorted(choices.items(), key=lambda item: "." in item[0]):  # inner components are last
        is_of_preset = PRESET in choices and group in PRESET_GROUPS
        if choice != default_choices.get(group) and not is_of_preset and ("." in group or role_of(group).tracked):
            changed[group] = choice
        options = _read_options(configs, group, choice)
        defaults |= {f"{group}.{name}": value for name, value in options.items()}
    typed = {override.lstrip("+~").partition("=")[0].partition("@")[0] for override in composition.overrides}
    typed |= _read_options(configs, "experiment", choices.get("experiment", "")).keys()
    for option, value in flatten_config(config):
        if option.endswith(TARGET) or not role_of(option).tracked:
            continue
        has_default = option in defaults and "${" not in str(defaults[option])
        is_inside = option.rpartition(".")[0] in defaults  # of an option that is null or a mapping
        if value != defaults[option] if has_default else is_inside or option in typed:
            changed[option] = spell_value(value)
    for name, node in config[CALLBACK].items():
        if node and not issubclass(get_object(node[TARGET]), Observer):
            changed |= {option: spell_value(value) for option, value in flatten_config(node, f"{CALLBACK}.{name}.")}
    return changed


@cache
def _read_defaults(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the default choice of each group, and the options that belong to no group."""
    content = _load(path)
    lines = [line for line in content.pop("defaults") if line != "_self_"]
    choices = {str(group): str(choice) for line in lines for group, choice in line.items()}
    preset = _load(path.parent / PRESET / f"{choices[PRESET]}.yaml")
    for line in preset.get("defaults", ()):
        overridden = {key.removeprefix("override /"): choice for key, choice in line.items()}
        choices |= {group: choice for group, choice in overridden.items() if group in PRESET_GROUPS}
    return choices, {name: value for name, value in flatten_config(content) if not name.startswith("hydra.")}


@cache
def _read_options(configs: Path, group: str, choice: str) -> dict[str, Any]:
    """Return the options in the yaml of a choice; {} if it has none, because the data determine the choice."""
    content = _load(configs / group / f"{choice}.yaml")
    return {
        name: value
        for name, value in flatten_config(content.get(group, content))
        if name.partition(".")[0] != "defaults"
    }


@cache
def _read_inner_choices(configs: Path, group: str, choice: str) -> dict[str, str]:
    """Return the components that the yaml of a choice contains, such as `objective.base` of propfair."""
    lines = [line for line in _load(configs / group / f"{choice}.yaml").get("defaults", ()) if isinstance(line, dict)]
    items = [item for line in lines for item in line.items() if "@" in item[0]]
    return {f"{group}.{key.rpartition('@')[2]}": str(value) for key, value in items}


def _load(path: Path) -> dict[str, Any]:
    """Return the content of a yaml, uncomposed; {} if the file does not exist."""
    return read_yaml(path) if path.is_file() else {}


def describe_nearest_run(runs: Path, new: Path, config: Mapping[str, Any]) -> str:
    """Describe the run whose options differ least from a config, which a user may have meant to resume.

    Args:
        runs: the folder of all runs.
        new: the folder of the new run, which is skipped.
        config: the composed config.

    Returns:
        Text such as `the nearest run, <folder>, differs in client.lr=0.1 (here 0.2)`; "" if there is no other run.
    """
    options = select_options(config, *IDENTITY)
    paths = [path for path in runs.glob("*/config.yaml") if path.parent != new]
    newest = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[:MAX_RUNS]
    options_by_run = {path.parent: earlier for path in newest if (earlier := _read_identity(path)) is not None}
    if not options_by_run:
        return ""
    names_by_run = {path: _list_differing(earlier, options) for path, earlier in options_by_run.items()}
    path, names = min(names_by_run.items(), key=lambda item: len(item[1]))
    if not names:
        return f"the nearest run, {path}, has the same options, but more rounds, other callbacks or an older format"
    texts = []
    for name in names[:MAX_DIFFERENCES]:
        before, now = (_spell_choice(name, values) for values in (options_by_run[path], options))
        texts.append(f"{name.removesuffix(TARGET).removesuffix('.')}={before} (here {now})")
    others_text = f" and {len(names) - MAX_DIFFERENCES} more" if len(names) > MAX_DIFFERENCES else ""
    return f"the nearest run, {path}, differs in {', '.join(texts)}{others_text}"


def _read_identity(path: Path) -> dict[str, Any] | None:
    """Return the options of a run that distinguish it from other runs; None if its config can't be read."""
    try:
        config = yaml.load(path.read_text(), YAML_LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return select_options({str(k): v for k, v in config.items()}, *IDENTITY) if isinstance(config, dict) else None


def _list_differing(earlier: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that differ, sorted. Options of a component whose class differs are left out."""
    names = sorted(name for name in earlier.keys() | options.keys() if earlier.get(name) != options.get(name))
    components = tuple(name.removesuffix(TARGET) for name in names if name.endswith(TARGET))
    return [name for name in names if name.endswith(TARGET) or not name.startswith(components)]


def _spell_choice(name: str, options: Mapping[str, Any]) -> str:
    """Return the value of an option as it is typed: for a class of this package, the choice that stands for it."""
    value = options.get(name)
    modules = str(value).split(".")
    is_choice = name.endswith(TARGET) and modules[0] == "fedcohort" and len(modules) > 2
    return modules[-2] if is_choice else spell_value(value)
