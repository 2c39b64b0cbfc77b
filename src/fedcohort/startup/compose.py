"""Step 1 of a run: compose what is typed with the yamls of configs/ into plain data.

Two resolvers serve the yamls. `${if_set:dataset.client,null,50}` is the second value where the option is set, and the
third where it is null. `${preset:clients,50}` is what the chosen heterogeneity sets, and 50 where it sets nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.conf import HydraConf
from hydra.core.global_hydra import GlobalHydra
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedcohort.errors import OptionError

PRESET = "heterogeneity"  # the group whose choices stand for choices of other groups


@dataclass(frozen=True)
class Composed:
    """A composed config, and what was typed for it.

    Attributes:
        config: plain data, resolved.
        choices: the choice in each group; of a component inside another one by its path (`objective.base`). There is no
            `heterogeneity` where other options changed what the preset stands for.
        overrides: what was typed.
        configs: the folder of the groups; None where it is not known.
    """

    config: Mapping[str, Any]
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    configs: Path | None = None

    def option(self, group: str) -> str:
        """Return the choice in a group as it is typed: `selector=flash`."""
        return f"{group}={self.choices.get(group, '?')}"


def run_of(words: Sequence[str], configs: Path, *extra: str) -> Composed:
    """Compose the config of `python train.py <words>`.

    Args:
        words: what was typed.
        configs: the folder of the groups.
        extra: overrides that were not typed.

    Raises:
        OptionError: for a value that is missing or can't be resolved. Hydra's errors: `command_line` explains them.
    """
    cfg = by_hydra([*words, *extra], configs, whole=True)
    return compose_config(cfg, cfg.hydra.runtime.choices, tuple(words), configs)


def part_of(group: str, words: Sequence[str], configs: Path) -> dict[str, Any]:
    """Return the options of one group, as `words` choose them, with its `_target_`."""
    options: Any = OmegaConf.to_container(by_hydra(words, configs)[group], resolve=True)
    return dict(options)


def file_of(path: Path) -> dict[str, Any]:
    """Return what a yaml says, uncomposed. Raises `OptionError` where it is no YAML."""
    if path.exists() and not path.is_file():  # reading a named pipe would block
        raise OptionError(f"{path} must be a file, and is a folder, a named pipe or a device")
    try:
        options: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
        return dict(options)
    except yaml.YAMLError as error:
        raise OptionError(f"{path} can't be read: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise OptionError(f"{path} can't be read: it is nested too deeply, or an anchor in it holds itself") from error


def find_configs(hydra: HydraConf | DictConfig) -> Path:
    """Return the folder of the groups. hydra: the node `hydra` of a composed config."""
    (folder,) = (Path(source.path) for source in hydra.runtime.config_sources if source.provider == "main")
    return folder


def compose_config(
    cfg: DictConfig, choices: Mapping[str, str | None], overrides: tuple[str, ...], configs: Path | None = None
) -> Composed:
    """Return Hydra's config as plain data.

    Args:
        cfg: what Hydra composed.
        choices: `hydra.runtime.choices`.
        overrides: what was typed.
        configs: the folder of the groups.

    Raises:
        OptionError: for a value that is missing or can't be resolved, and for a typed option of a preset.
    """
    try:
        config: dict[str, Any] = {str(key): _resolve(cfg[key]) for key in cfg if key != "hydra"}
    except OmegaConfBaseException as error:
        raise OptionError(str(error).split("\n")[0]) from error
    chosen = {
        group.split("@")[-1]: str(choice)
        for group, choice in choices.items()
        if choice is not None and "/" not in group
    }
    # Where the data decide the class (partition=own), the choice is named after that class, and so is its preset.
    for group, choice in list(chosen.items()):
        node = cfg.get(group)
        if isinstance(node, DictConfig) and "_target_" in node and OmegaConf.is_interpolation(node, "_target_"):
            chosen[group] = str(config[group]["_target_"]).split(".")[-2]
            if chosen.get(PRESET) == choice:
                chosen[PRESET] = chosen[group]
    if typed := next((override for override in overrides if override.startswith(f"{PRESET}.")), None):
        raise OptionError(f"{typed}: a preset has no options, say {typed.removeprefix(f'{PRESET}.')}")
    _remove_preset(config, chosen)
    return Composed(config, chosen, overrides, configs)


def _resolve(value: object) -> object:
    return OmegaConf.to_container(value, resolve=True, throw_on_missing=True) if OmegaConf.is_config(value) else value


def _remove_preset(config: dict[str, Any], choices: dict[str, str]) -> None:
    """Remove the preset's node, and its choice where other options changed what it stands for."""
    stands_for = config.pop(PRESET, None) or {}
    sets = stands_for.pop("sets", {})
    for group in stands_for:
        choices.pop(f"{PRESET}.{group}", None)
    if any(config.get(group) != node for group, node in stands_for.items()) or not _includes(config, sets):
        choices.pop(PRESET, None)


def _includes(config: object, sets: object) -> bool:
    """Return whether every option that a preset sets has its value."""
    if not isinstance(sets, Mapping):
        return config == sets
    return isinstance(config, Mapping) and all(_includes(config.get(name), value) for name, value in sets.items())


@contextmanager
def initialized(configs: Path) -> Iterator[None]:
    """Let Hydra compose from the folder `configs` inside; its state of before, a user's own, is restored."""
    hydra, version = GlobalHydra.instance().hydra, VersionBase.instance().version_base
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(configs), version_base="1.3"):
            yield
    finally:
        GlobalHydra.instance().hydra, VersionBase.instance().version_base = hydra, version


def by_hydra(words: Sequence[str], configs: Path, *, whole: bool = False) -> DictConfig:
    """Return what Hydra composes of `words`; whole: with Hydra's own node."""
    with initialized(configs):
        return compose("train", overrides=list(words), return_hydra_config=whole)


def _if_set(option: str, if_set: object, if_null: object, *, _root_: DictConfig) -> object:
    return if_null if OmegaConf.select(_root_, option) is None else if_set


def _preset(option: str, otherwise: object, *, _root_: DictConfig) -> object:
    value = OmegaConf.select(_root_, f"{PRESET}.sets.{option}")
    return otherwise if value is None else value


OmegaConf.register_new_resolver("if_set", _if_set, replace=True)
OmegaConf.register_new_resolver("preset", _preset, replace=True)
