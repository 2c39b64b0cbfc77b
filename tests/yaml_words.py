"""The words of the config groups, and the objects behind them with their yaml's defaults."""

import copy
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hydra.utils import instantiate
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
    "proxy",
    "partition",
    "label_noise",
    "feature_noise",
    "dataset",
    "model",
)

NEEDED = {("model", "module"): {"path": "own_networks.Dense"}}  # options without a default that works


def load_yaml(path: Path) -> DictConfig:
    """The mapping in a yaml file."""
    loaded = OmegaConf.load(path)
    assert isinstance(loaded, DictConfig)
    return loaded


def to_dict(config: DictConfig, resolve: bool = True) -> dict[str, Any]:
    """Its values, by name."""
    found = OmegaConf.to_container(config, resolve=resolve)
    assert isinstance(found, dict)
    return {str(name): value for name, value in found.items()}


def node(group: str, word: str) -> dict[str, Any]:
    """The node of a yaml whose `_target_` is ours, {} for an alias, a preset, or a word that the data decide on."""
    return copy.deepcopy(_node(group, word))


@cache
def _node(group: str, word: str) -> dict[str, Any]:
    loaded = load_yaml(CONFIGS / group / f"{word}.yaml")
    found = loaded if "_target_" in loaded else loaded.get(group)
    if found is None or "_target_" not in found or OmegaConf.is_interpolation(found, "_target_"):
        return {}
    root = OmegaConf.create({"clients": 12, "paths": {"logs": "logs"}, group: found})
    values = to_dict(root[group])
    values.pop("defaults", None)
    values |= NEEDED.get((group, word), {})
    return values | {name: node(*other) for name, other in nested_components(group, word).items()}


def nested_components(group: str, word: str) -> dict[str, tuple[str, str]]:
    """The parts that a part is made of, as (group, word) by option: `- /objective@base: ce` in its defaults."""
    loaded = load_yaml(CONFIGS / group / f"{word}.yaml")
    entries = [entry for entry in loaded.get("defaults", []) if not isinstance(entry, str)]
    found = {str(key): str(value) for entry in entries for key, value in entry.items() if str(key).startswith("/")}
    return {key.split("@")[1]: (key[1:].split("@")[0], value) for key, value in found.items() if "@" in key}


def list_options(group: str) -> list[str]:
    """Every word of the group that is a part of its own."""
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml") if node(group, path.stem))


@cache
def aliases(group: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The words that are another one with other options: that one, and the options."""
    found = {}
    for path in sorted((CONFIGS / group).glob("*.yaml")):
        loaded = load_yaml(path)
        first, *_ = loaded.get("defaults", [""])
        if isinstance(first, str) and first.endswith(f"@{group}") and group in loaded:
            found[path.stem] = first.partition("@")[0], to_dict(loaded, resolve=False)[group]
    return found


def make(group: str, word: str, **changes: Any) -> Any:
    """The part with its yaml's defaults, and `changes`."""
    of, own = aliases(group).get(word, (word, {}))
    return instantiate({**node(group, of), **copy.deepcopy(own), **changes}, _convert_="all")


def make_typed(kind: type[P], group: str, word: str, **changes: Any) -> P:
    """The same of a class that is known."""
    part = make(group, word, **changes)
    assert isinstance(part, kind)
    return part
