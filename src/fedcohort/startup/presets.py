"""Presets over groups (`heterogeneity`): what they stand for, and the options that follow them until one is typed.

A preset names the words that it stands for as `heterogeneity.<group>`, and options under `heterogeneity.sets`, which
yamls read with `${preset:<option>,<otherwise>}`.
"""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from fedcohort.errors import OptionError


def if_set(option: str, yes: object, no: object, *, _root_: DictConfig) -> object:
    """`${if_set:dataset.client,null,50}` in a yaml: `yes` where the option is there and not null, else `no`."""
    return no if OmegaConf.select(_root_, option) is None else yes


def preset(option: str, otherwise: object, *, _root_: DictConfig) -> object:
    """`${preset:clients,50}` in a yaml: what the chosen heterogeneity sets the option to, else `otherwise`."""
    found = OmegaConf.select(_root_, f"heterogeneity.sets.{option}")
    return otherwise if found is None else found


OmegaConf.register_new_resolver("if_set", if_set, replace=True)
OmegaConf.register_new_resolver("preset", preset, replace=True)


def take_out(config: dict[str, Any], words: dict[str, str], overrides: tuple[str, ...]) -> None:
    """Take out what the preset stands for, and its word where other words or options made it something else.

    Raises `OptionError` where somebody typed an option of it.
    """
    for typed in overrides:
        if typed.startswith("heterogeneity."):
            raise OptionError(f"{typed}: a preset has no options, say {typed.removeprefix('heterogeneity.')}")
    stands_for = config.pop("heterogeneity", None) or {}
    sets = stands_for.pop("sets", {})
    for group in stands_for:
        words.pop(f"heterogeneity.{group}", None)
    if any(config.get(group) != node for group, node in stands_for.items()) or not _has(config, sets):
        words.pop("heterogeneity", None)


def _has(config: object, sets: object) -> bool:
    """Whether every option that a preset sets has its value."""
    if not isinstance(sets, Mapping):
        return config == sets
    return isinstance(config, Mapping) and all(_has(config.get(name), value) for name, value in sets.items())
