"""Step 1 of a run: compose the typed overrides with the yamls of configs/ into plain data.

The yamls may use two resolvers. `${if_set:dataset.client,null,50}` is null if the option dataset.client is set, and 50
if it is null. `${preset:clients,50}` is the value of `clients` that the chosen heterogeneity sets, or 50.
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
from omegaconf._utils import OmegaConfDumper
from omegaconf.errors import OmegaConfBaseException

from fedcohort.errors import OptionError

YAML_DUMPER = getattr(yaml, "CDumper", yaml.Dumper)  # ten times as fast, where libyaml is installed
PRESET_GROUP = "heterogeneity"  # the group whose choices set choices of other groups


@dataclass(frozen=True)
class Composition:
    """A composed config, and the overrides that were typed for it.

    Attributes:
        config: plain data, with all interpolations resolved.
        choices: the choice in each group; the key of a component inside another one is its path (`objective.base`). The
            key `heterogeneity` is missing if an option that this choice sets has another value.
        overrides: the overrides as typed.
    """

    config: Mapping[str, Any]
    choices: Mapping[str, str]
    overrides: tuple[str, ...]

    def format_choice(self, group: str) -> str:
        """Return the choice in `group` in the form in which users type it, such as `selector=flash`."""
        return f"{group}={self.choices.get(group, '?')}"


class _ConfigDumper(YAML_DUMPER):  # type: ignore[misc, valid-type]
    """A dumper that quotes the strings that OmegaConf would read as numbers."""


_ConfigDumper.add_representer(str, OmegaConfDumper.str_representer)


def format_config(config: Mapping[str, Any]) -> str:
    """Return a composed config as `OmegaConf.to_yaml` does, in a tenth of its time."""
    yaml_format: dict[str, bool] = {"default_flow_style": False, "allow_unicode": True, "sort_keys": False}
    text: str = yaml.dump(dict(config), Dumper=_ConfigDumper, **yaml_format)
    return text


def compose_run(overrides: Sequence[str], config_dir: Path, *extra_overrides: str) -> Composition:
    """Return the composed config of `python train.py <overrides>`.

    Args:
        overrides: the overrides as typed.
        config_dir: folder of the config groups.
        extra_overrides: further overrides, which were not typed.

    Raises:
        OptionError: for a value that is missing or can't be resolved.
        HydraException: for an invalid override; `hydra_errors` explains it.
    """
    cfg = compose_with_hydra([*overrides, *extra_overrides], config_dir)
    return compose_config(cfg, cfg.hydra.runtime.choices, tuple(overrides))


def compose_group(group: str, overrides: Sequence[str], config_dir: Path) -> dict[str, Any]:
    """Return the options of one config group, including `_target_`, as Hydra composes them.

    Args:
        group: name of the group.
        overrides: the overrides.
        config_dir: folder of the config groups.
    """
    group_options: Any = OmegaConf.to_container(compose_with_hydra(overrides, config_dir)[group], resolve=True)
    return dict(group_options)


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the content of the yaml file `path`, uncomposed; raise `OptionError` if it can't be parsed."""
    if path.exists() and not path.is_file():  # reading a named pipe would block
        raise OptionError(f"{path} must be a file, got a folder, a named pipe or a device")
    try:
        yaml_content: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
        return dict(yaml_content)
    except yaml.YAMLError as error:
        raise OptionError(f"{path} can't be read: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise OptionError(f"{path} can't be read: it is nested too deeply, or an anchor contains itself") from error


def find_config_folder(hydra_node: HydraConf | DictConfig) -> Path:
    """Return the folder of the config groups; `hydra_node` is the node of this name in a composed config."""
    (config_folder,) = (Path(s.path) for s in hydra_node.runtime.config_sources if s.provider == "main")
    return config_folder


def compose_config(cfg: DictConfig, choices: Mapping[str, str | None], overrides: tuple[str, ...]) -> Composition:
    """Convert the config that Hydra has composed to plain data, and return it with the choices and overrides.

    Args:
        cfg: the config that Hydra has composed.
        choices: the choice in each group, from `hydra.runtime.choices`.
        overrides: the overrides as typed.

    Raises:
        OptionError: for a value that is missing or can't be resolved, and for an override of an option of the node
            `heterogeneity`, a choice that only sets options elsewhere.
    """
    try:
        config = {str(k): _convert_to_plain_data(cfg[k]) for k in cfg if k != "hydra"}
    except OmegaConfBaseException as error:
        raise OptionError(str(error).split("\n")[0]) from error
    top_level_choices = {group: choice for group, choice in choices.items() if choice is not None and "/" not in group}
    choice_by_group = {group.split("@")[-1]: str(choice) for group, choice in top_level_choices.items()}
    # Where the data determine the class (partition=own), the choice and its preset are called after that class
    for group, choice in list(choice_by_group.items()):
        node = cfg.get(group)
        if isinstance(node, DictConfig) and "_target_" in node and OmegaConf.is_interpolation(node, "_target_"):
            choice_by_group[group] = str(config[group]["_target_"]).split(".")[-2]
            if choice_by_group.get(PRESET_GROUP) == choice:
                choice_by_group[PRESET_GROUP] = choice_by_group[group]
    if typed_preset := next((override for override in overrides if override.startswith(f"{PRESET_GROUP}.")), None):
        raise OptionError(
            f"{typed_preset}: a preset has no options, type {typed_preset.removeprefix(f'{PRESET_GROUP}.')}"
        )
    _remove_preset(config, choice_by_group)
    return Composition(config, choice_by_group, overrides)


def _convert_to_plain_data(node: Any) -> Any:  # noqa: ANN401  options by name, a list or a single value
    """Return a node of a config without classes of OmegaConf and with all interpolations resolved."""
    return OmegaConf.to_container(node, resolve=True, throw_on_missing=True) if OmegaConf.is_config(node) else node


def _remove_preset(config: dict[str, Any], choices: dict[str, str]) -> None:
    """Remove the node `heterogeneity`, a preset of options in other nodes, from `config`.

    Its choice is removed from `choices` if an option that the preset sets has another value.
    """
    preset_nodes = config.pop(PRESET_GROUP, None) or {}
    preset_options = preset_nodes.pop("sets", {})
    for group in preset_nodes:
        choices.pop(f"{PRESET_GROUP}.{group}", None)
    if any(config.get(group) != node for group, node in preset_nodes.items()) or not _has_values(
        config, preset_options
    ):
        choices.pop(PRESET_GROUP, None)


def _has_values(config: object, preset: object) -> bool:
    """Return whether each option in `preset`, those that a choice of `heterogeneity` sets, has this value in `config`.

    Both are nodes of options by name, at any depth.
    """
    if not isinstance(preset, Mapping):
        return config == preset
    return isinstance(config, Mapping) and all(_has_values(config.get(k), v) for k, v in preset.items())


@contextmanager
def initialise_hydra(config_dir: Path) -> Iterator[None]:
    """Initialise Hydra with the folder `config_dir` of config groups in a block, and restore its previous state."""
    previous_hydra, previous_version_base = GlobalHydra.instance().hydra, VersionBase.instance().version_base
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(config_dir), version_base="1.3"):
            yield
    finally:
        GlobalHydra.instance().hydra, VersionBase.instance().version_base = previous_hydra, previous_version_base


def compose_with_hydra(overrides: Sequence[str], config_dir: Path) -> DictConfig:
    """Return the config, with the node `hydra`, that Hydra composes from `overrides`.

    `config_dir` is the folder of the config groups.
    """
    with initialise_hydra(config_dir):
        return compose("train", overrides=list(overrides), return_hydra_config=True)


def _resolve_if_set(option_name: str, value_if_set: object, value_if_null: object, *, _root_: DictConfig) -> object:
    return value_if_null if OmegaConf.select(_root_, option_name) is None else value_if_set


def _resolve_preset(option_name: str, default_value: object, *, _root_: DictConfig) -> object:
    preset_value = OmegaConf.select(_root_, f"{PRESET_GROUP}.sets.{option_name}")
    return default_value if preset_value is None else preset_value


OmegaConf.register_new_resolver("if_set", _resolve_if_set, replace=True)
OmegaConf.register_new_resolver("preset", _resolve_preset, replace=True)
