"""The options of the config groups, and their components with the defaults of the yaml files."""

import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

import fedcohort.startup.compose  # noqa: F401  the resolvers that the yamls use

P = TypeVar("P")
ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"
METHOD_GROUPS = (
    "selector",
    "agg",
    "server",
    "objective",
    "regulariser",
    "client",
    "augmentation",
    "samples",
    "deadline",
    "codec",
    "device",
    "availability",
    "attack",
    "signal_noise",
    "proxy",
    "partition",
    "label_noise",
    "feature_noise",
    "dataset",
    "model",
)

REQUIRED_OPTIONS = {("model", "module"): {"path": "user_networks.Dense"}}  # options without a default that works


def load_yaml(path: Path) -> DictConfig:
    """Return the mapping in a yaml file."""
    loaded = OmegaConf.load(path)
    assert isinstance(loaded, DictConfig)
    return loaded


def to_dict(config: DictConfig, resolve: bool = True) -> dict[str, Any]:
    """Return a config as a plain dictionary."""
    values = OmegaConf.to_container(config, resolve=resolve)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


def load_options(group: str, choice: str) -> dict[str, Any]:
    """Return the options of a component's yaml file; {} for aliases, presets and options that depend on the data."""
    return copy.deepcopy(_load_options(group, choice))


@cache
def _load_options(group: str, choice: str) -> dict[str, Any]:
    config = load_yaml(CONFIGS / group / f"{choice}.yaml")
    component_node = config if "_target_" in config else config.get(group)
    if (
        component_node is None
        or "_target_" not in component_node
        or OmegaConf.is_interpolation(component_node, "_target_")
    ):
        return {}
    root = OmegaConf.create({"clients": 12, "paths": {"logs": "logs"}, group: component_node})
    values = to_dict(root[group])
    values.pop("defaults", None)
    values |= REQUIRED_OPTIONS.get((group, choice), {})
    return values | {name: load_options(*component) for name, component in nested_components(group, choice).items()}


def nested_components(group: str, choice: str) -> dict[str, tuple[str, str]]:
    """Return the nested components as (group, option) by parameter, such as `- /objective@base: ce`."""
    config = load_yaml(CONFIGS / group / f"{choice}.yaml")
    entries = [entry for entry in config.get("defaults", []) if not isinstance(entry, str)]
    entries_by_group = {
        str(key): str(value) for entry in entries for key, value in entry.items() if str(key).startswith("/")
    }
    return {key.split("@")[1]: (key[1:].split("@")[0], value) for key, value in entries_by_group.items() if "@" in key}


@cache
def list_options(group: str) -> list[str]:
    """Return all options of a group that have a class, sorted."""
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml") if load_options(group, path.stem))


@cache
def list_aliases(group: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the aliases of a group: option and changed parameters by alias."""
    aliases_of_group = {}
    for path in sorted((CONFIGS / group).glob("*.yaml")):
        config = load_yaml(path)
        first, *_ = config.get("defaults", [""])
        if isinstance(first, str) and first.endswith(f"@{group}") and group in config:
            aliases_of_group[path.stem] = first.partition("@")[0], to_dict(config, resolve=False)[group]
    return aliases_of_group


def make_component(group: str, choice: str, /, **changes: Any) -> Any:
    """Return a component with the defaults of its yaml file, replaced by `changes`."""
    base, alias_options = list_aliases(group).get(choice, (choice, {}))
    return construct({**load_options(group, base), **copy.deepcopy(alias_options), **changes})


find_class = cache(get_object)


def construct(value: Any) -> Any:
    """Return the component that options with `_target_` describe, and any other value as it is."""
    if not isinstance(value, Mapping) or "_target_" not in value:
        return value
    options = {name: construct(option) for name, option in value.items() if name != "_target_"}
    return find_class(value["_target_"])(**options)


def make_typed(kind: type[P], group: str, choice: str, /, **changes: Any) -> P:
    """Return `make(...)` with its class as the static type."""
    part = make_component(group, choice, **changes)
    assert isinstance(part, kind)
    return part
