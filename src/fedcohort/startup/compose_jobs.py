"""Compose the configs of many jobs from few compositions by Hydra.

A composition by Hydra takes tenths of a second, and the jobs of a grid differ in a few overrides. Hydra composes each
set of overrides that may affect other groups once. A choice whose yaml holds only its own options replaces the node of
its group in a copy, and an `option=value` is written into the copy. The result equals what Hydra would compose.
"""

import pickle
import re
from collections.abc import Collection
from functools import cache, lru_cache
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf, open_dict

from fedcohort.startup import check, compose, options
from fedcohort.startup.load import DATA_GROUPS  # presets and interpolations affect these

OVERRIDE_PARSER = OverridesParser.create()
PACKAGE_PATTERN = re.compile(r"^# @package (\S+)", re.MULTILINE)
ConfigDraft = tuple[DictConfig, dict[str, str]]  # an unresolved config, and the choice of each group


def compose_job(
    overrides: tuple[str, ...], config_dir: Path, hydra_options: tuple[str, ...] = ()
) -> compose.Composition:
    """Return the composed config of a job. Jobs that differ only in a final override of `seed` share the work.

    Args:
        overrides: the overrides of the job.
        config_dir: folder of the config groups.
        hydra_options: options of Hydra that were typed, such as `hydra.searchpath`.
    """
    *overrides_without_seed, last_override = overrides or ("",)
    if not re.fullmatch("seed=[0-9]+", last_override):
        return compose.compose_config(*_draft_config(overrides, config_dir, hydra_options), overrides)
    cfg, choices = _draft_shared_config(tuple(overrides_without_seed), config_dir, hydra_options)
    OmegaConf.update(cfg, "seed", int(last_override.partition("=")[2]))
    return compose.compose_config(cfg, choices, overrides)


def _draft_config(overrides: tuple[str, ...], config_dir: Path, hydra_options: tuple[str, ...]) -> ConfigDraft:
    """Return an unresolved config, which the caller may change, and the choice of each group.

    The arguments are those of `compose_job`. Raises Hydra's errors.
    """
    parsed_overrides = {t: _parse_override(t) for t in overrides}
    option_overrides = {t: o for t, o in parsed_overrides.items() if _sets_one_option(o, config_dir)}
    choice_overrides = {t: o for t, o in parsed_overrides.items() if t not in option_overrides}
    component_choices = {t: o for t, o in choice_overrides.items() if _is_self_contained_choice(o, config_dir)}
    replaced_groups = {override.key_or_group: str(override.value()) for override in component_choices.values()}
    composed_overrides = [t for t in choice_overrides if t not in component_choices]
    if any(_may_change_groups(parsed_overrides[t], replaced_groups, config_dir) for t in composed_overrides):
        replaced_groups, composed_overrides = {}, list(choice_overrides)
    cfg, choices = pickle.loads(_compose_pickled((*hydra_options, *composed_overrides), config_dir))
    for group, group_choice in replaced_groups.items():
        # Options of the node that do not belong to the choice
        run_options = {k: cfg[group][k] for k in options.list_node_options(group)}
        cfg[group] = OmegaConf.merge(_read_group_config(config_dir, group, group_choice), run_options)
        choices[group] = group_choice
    for override in option_overrides.values():
        node_path, _, option_name = override.key_or_group.rpartition(".")
        config_node = OmegaConf.select(cfg, node_path) if node_path else cfg
        if (isinstance(config_node, DictConfig) and option_name in config_node) == override.is_add():
            # Hydra composes it, or raises its error
            return pickle.loads(_compose_pickled((*hydra_options, *overrides), config_dir))  # type: ignore[no-any-return]
        OmegaConf.update(cfg, override.key_or_group, override.value(), force_add=override.is_add())
    return cfg, choices


_draft_shared_config = lru_cache(maxsize=1000)(_draft_config)


@cache
def _compose_pickled(overrides: tuple[str, ...], config_dir: Path) -> bytes:
    """Return the config draft that Hydra composes from `overrides`; it is read several times faster than copied."""
    cfg = compose.compose_with_hydra(overrides, config_dir)
    choices = dict(cfg.hydra.runtime.choices)
    with open_dict(cfg):
        del cfg["hydra"]  # which is slow to copy
    return pickle.dumps((cfg, choices))


def _sets_one_option(override: Override, config_dir: Path) -> bool:
    """Return whether `override` sets one option to a plain value, and makes no choice of a group in `config_dir`."""
    value, key_path = override.value(), override.key_or_group
    is_literal_value = isinstance(value, bool | int | float | str | list | None) and "${" not in str(value)
    is_option = "@" not in key_path and not key_path.startswith("hydra") and not (config_dir / key_path).is_dir()
    return is_literal_value and is_option and not override.is_delete()


def _is_self_contained_choice(override: Override, config_dir: Path) -> bool:
    """Return whether `override` makes a choice whose yaml, in `config_dir`, holds only the options of one component."""
    group = override.key_or_group
    if override.type != OverrideType.CHANGE or override.package is not None:
        return False
    if group not in (*check.GROUPS_WITHOUT_TORCH, *check.GROUPS_WITH_TORCH) or group in DATA_GROUPS:
        return False
    yaml_text = _read_yaml_text(config_dir, group, str(override.value()))
    return "\n_target_: " in f"\n{yaml_text}" and "defaults:" not in yaml_text and "@package" not in yaml_text


def _may_change_groups(override: Override, replaced_groups: Collection[str], config_dir: Path) -> bool:
    """Return whether an override may set options in groups whose nodes are replaced, which would lose them.

    Args:
        override: a choice, or an override that deletes.
        replaced_groups: names of these groups.
        config_dir: folder of the config groups.
    """
    group = override.key_or_group
    if group.split(".")[0] in replaced_groups or override.is_delete():
        return True
    return not _find_affected_options(config_dir, group, str(override.value())).isdisjoint(replaced_groups)


@cache
def _find_affected_options(config_dir: Path, group: str, group_choice: str) -> frozenset[str]:
    """Return the top-level options that a choice can set outside its group, also by files in its defaults list.

    Args:
        config_dir: folder of the config groups.
        group: the group of the choice.
        group_choice: the choice.
    """
    package_match = PACKAGE_PATTERN.search(_read_yaml_text(config_dir, group, group_choice))
    if package_match is None:
        return frozenset()
    if package_match[1] != "_global_":
        return frozenset({package_match[1].split(".")[0]})
    yaml_node = _read_group_config(config_dir, group, group_choice)
    option_names = {str(name) for name in yaml_node}
    for default_item in yaml_node.get("defaults", ()):
        for name, included_choice in ({group: default_item} if isinstance(default_item, str) else default_item).items():
            included_group = str(name).removeprefix("override ").lstrip("/").partition("@")[0]
            choice_name = str(included_choice).partition("@")[0]
            option_names |= {included_group} | _find_affected_options(config_dir, included_group, choice_name)
    return frozenset(option_names)


@cache
def _read_group_config(config_dir: Path, group: str, group_choice: str) -> DictConfig:
    yaml_content = OmegaConf.load(config_dir / group / f"{group_choice}.yaml")
    if not isinstance(yaml_content, DictConfig):
        raise TypeError(f"configs/{group}/{group_choice}.yaml holds no options: write them as `name: value`")
    return yaml_content


@cache
def _read_yaml_text(config_dir: Path, group: str, group_choice: str) -> str:
    yaml_path = config_dir / group / f"{group_choice}.yaml"
    return yaml_path.read_text() if yaml_path.is_file() else ""


@cache
def _parse_override(override_text: str) -> Override:
    (override,) = OVERRIDE_PARSER.parse_overrides([override_text])
    return override
