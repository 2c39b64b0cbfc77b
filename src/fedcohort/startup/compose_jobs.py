"""Compose the configs of many jobs from few compositions by Hydra.

A composition by Hydra takes tenths of a second, and the jobs of a grid differ in a few overrides. Hydra composes each
set of overrides that may affect other groups once. A choice whose yaml holds only its own options replaces the node of
its group in a copy, and an `option=value` is written into the copy. The result equals what Hydra would compose.
"""

import pickle
import re
from collections.abc import Callable, Collection
from functools import cache, lru_cache, partial
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf, open_dict

from fedcohort.startup import check, compose, options

DATA_GROUPS = ("partition", "label_noise", "feature_noise", "dataset")  # presets and interpolations affect these
OVERRIDE_PARSER = OverridesParser.create()
PACKAGE = re.compile(r"^# @package (\S+)", re.MULTILINE)
ConfigDraft = tuple[DictConfig, dict[str, str]]  # an unresolved config, and the choice of each group


class JobComposer:
    """Composes configs from one folder of groups.

    Args:
        compose_by_hydra: composes overrides with Hydra, including the node `hydra`, which is then removed. It is called
            once for each set of overrides.
        configs: folder of the config groups.
    """

    def __init__(self, compose_by_hydra: Callable[[tuple[str, ...]], DictConfig], configs: Path) -> None:
        def compose_without_node(overrides: tuple[str, ...]) -> bytes:
            cfg = compose_by_hydra(overrides)
            choices = dict(cfg.hydra.runtime.choices)
            with open_dict(cfg):
                del cfg["hydra"]  # which is slow to copy
            return pickle.dumps((cfg, choices))  # a copy is read several times faster than `deepcopy` makes one

        self._by_hydra, self._configs = cache(compose_without_node), configs

    def compose(self, overrides: tuple[str, ...]) -> compose.Composition:
        """Return the composed config of a job's `overrides`. Raises `OptionError`, and Hydra's errors."""
        return compose.compose_config(*self.draft(overrides), overrides)

    def draft(self, overrides: tuple[str, ...]) -> ConfigDraft:
        """Return an unresolved config, which the caller may change, and the choice of each group.

        `overrides` are those of a job. Raises Hydra's errors.
        """
        parsed_overrides = {text: _parse_override(text) for text in overrides}
        plain_overrides = {
            text: override for text, override in parsed_overrides.items() if self._is_plain_option(override)
        }
        group_choices = {text: override for text, override in parsed_overrides.items() if text not in plain_overrides}
        separate_choices = {
            text: override for text, override in group_choices.items() if self._is_separate_choice(override)
        }
        replaced_groups = {override.key_or_group: str(override.value()) for override in separate_choices.values()}
        composed_overrides = [text for text in group_choices if text not in separate_choices]
        if any(self._affects_groups(parsed_overrides[text], replaced_groups) for text in composed_overrides):
            replaced_groups, composed_overrides = {}, list(group_choices)
        cfg, choices = self._copy(tuple(composed_overrides))
        for group, choice in replaced_groups.items():
            run_options = {
                name: cfg[group][name] for name in options.list_node_options(group)
            }  # no options of the choice
            cfg[group] = OmegaConf.merge(_read_config(self._configs, group, choice), run_options)
            choices[group] = choice
        for override in plain_overrides.values():
            node, _, option = override.key_or_group.rpartition(".")
            config_node = OmegaConf.select(cfg, node) if node else cfg
            if (isinstance(config_node, DictConfig) and option in config_node) == override.is_add():
                return self._copy(overrides)  # Hydra composes it, or raises its error
            OmegaConf.update(cfg, override.key_or_group, override.value(), force_add=override.is_add())
        return cfg, choices

    def _copy(self, overrides: tuple[str, ...]) -> ConfigDraft:
        draft: ConfigDraft = pickle.loads(self._by_hydra(overrides))
        return draft

    def _is_plain_option(self, override: Override) -> bool:
        """Return whether `override` sets one option to a plain value, and makes no choice."""
        value, key = override.value(), override.key_or_group
        is_value = isinstance(value, bool | int | float | str | list | None) and "${" not in str(value)
        is_option = "@" not in key and not key.startswith("hydra") and not (self._configs / key).is_dir()
        return is_value and is_option and not override.is_delete()

    def _is_separate_choice(self, override: Override) -> bool:
        """Return whether `override` makes a choice whose yaml holds only the options of one component."""
        group = override.key_or_group
        if override.type != OverrideType.CHANGE or override.package is not None:
            return False
        if group not in (*check.GROUPS_WITHOUT_TORCH, *check.GROUPS_WITH_TORCH) or group in DATA_GROUPS:
            return False
        text = _read_text(self._configs, group, str(override.value()))
        return "\n_target_: " in f"\n{text}" and "defaults:" not in text and "@package" not in text

    def _affects_groups(self, override: Override, replaced_groups: Collection[str]) -> bool:
        """Return whether an override may set options in groups whose nodes are replaced, which would lose them.

        Args:
            override: a choice, or an override that deletes.
            replaced_groups: names of these groups.
        """
        group = override.key_or_group
        if group.split(".")[0] in replaced_groups or override.is_delete():
            return True
        return not _find_affected_options(self._configs, group, str(override.value())).isdisjoint(replaced_groups)


@cache
def _find_affected_options(configs: Path, group: str, choice: str) -> frozenset[str]:
    """Return the top-level options that a choice can set outside its group, also by files in its defaults list.

    Args:
        configs: folder of the config groups.
        group: the group of the choice.
        choice: the choice.
    """
    package_match = PACKAGE.search(_read_text(configs, group, choice))
    if package_match is None:
        return frozenset()
    if package_match[1] != "_global_":
        return frozenset({package_match[1].split(".")[0]})
    node = _read_config(configs, group, choice)
    names = {str(name) for name in node}
    for entry in node.get("defaults", ()):
        for name, included_choice in ({group: entry} if isinstance(entry, str) else entry).items():
            included_group = str(name).removeprefix("override ").lstrip("/").partition("@")[0]
            names |= {included_group} | _find_affected_options(
                configs, included_group, str(included_choice).partition("@")[0]
            )
    return frozenset(names)


@cache
def _read_config(configs: Path, group: str, choice: str) -> DictConfig:
    content = OmegaConf.load(configs / group / f"{choice}.yaml")
    if not isinstance(content, DictConfig):
        raise TypeError(f"configs/{group}/{choice}.yaml holds no options: write them as `name: value`")
    return content


@cache
def _read_text(configs: Path, group: str, choice: str) -> str:
    path = configs / group / f"{choice}.yaml"
    return path.read_text() if path.is_file() else ""


@cache
def _parse_override(text: str) -> Override:
    (override,) = OVERRIDE_PARSER.parse_overrides([text])
    return override


def compose_job(overrides: tuple[str, ...], configs: Path, hydra_options: tuple[str, ...] = ()) -> compose.Composition:
    """Return the composed config of a job. Jobs that differ only in a final override of `seed` share the work.

    Args:
        overrides: the overrides of the job.
        configs: folder of the config groups.
        hydra_options: options of Hydra that were typed, such as `hydra.searchpath`.
    """
    *common_overrides, last_override = overrides or ("",)
    if not re.fullmatch("seed=[0-9]+", last_override):
        return _make_composer(configs, hydra_options).compose(overrides)
    cfg, choices = _draft_config(tuple(common_overrides), configs, hydra_options)
    OmegaConf.update(cfg, "seed", int(last_override.partition("=")[2]))
    return compose.compose_config(cfg, choices, overrides)


@lru_cache(maxsize=1000)
def _draft_config(overrides: tuple[str, ...], configs: Path, hydra_options: tuple[str, ...]) -> ConfigDraft:
    return _make_composer(configs, hydra_options).draft(overrides)


@cache
def _make_composer(configs: Path, hydra_options: tuple[str, ...]) -> JobComposer:
    by_hydra = partial(compose.compose_with_hydra, configs=configs, with_hydra=True)
    return JobComposer(lambda overrides: by_hydra((*hydra_options, *overrides)), configs)
