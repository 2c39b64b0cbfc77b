"""Let Hydra read each yaml once in a process, because most tests compose a config and write it into a run's folder.

Hydra 1.3 reads a yaml again for each composition, which takes a third of its time. Another third goes to choices that
only an interpolation in a defaults list could read. The yaml of a run is written by the C library of PyYAML.
"""

import copy
import os
from collections.abc import Sequence
from typing import Any

import yaml
from hydra._internal import defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.object_type import ObjectType
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import OmegaConfDumper

_load_config = ConfigRepository.load_config
_embed_config = ConfigLoaderImpl._embed_result_config
_interpolation_map = defaults_list._create_interpolation_map
_loaded: dict[tuple[Any, ...], Any] = {}


def load_config(self: ConfigRepository, config_path: str) -> Any:
    """Return the content of a yaml, read again only if the file has changed."""
    source = self._find_object_source(config_path=config_path, object_type=ObjectType.CONFIG)
    if source is None:
        return None
    key: tuple[Any, ...] = (type(source), source.provider, source.path, config_path)
    if source.scheme() == "file":
        state = os.stat(os.path.join(source.path, f"{config_path.removesuffix('.yaml')}.yaml"))
        key = (*key, state.st_ino, state.st_size, state.st_mtime_ns)
    if key not in _loaded:
        _loaded[key] = _load_config(self, config_path)
    return _loaded[key]


def embed_config(loaded: Any, package: str | None) -> Any:
    """Put the content of a yaml into its package; Hydra itself copies it unless the package is the whole config."""
    if not (loaded.header["package"] if package is None else package):
        loaded = copy.copy(loaded)
        loaded.config = copy.deepcopy(loaded.config)
    return _embed_config(loaded, package)


def interpolation_map(overrides: Any, defaults: Sequence[Any], self_added: bool) -> DictConfig | None:
    """Return the choices that interpolations in a defaults list may name; None for a list without interpolations."""
    if any(default.is_interpolation() for default in defaults if not default.is_self()):
        return _interpolation_map(overrides, list(defaults), self_added)
    return None


class Dumper(yaml.CDumper):
    """Write strings as OmegaConf does, which quotes those that it would read as numbers."""


Dumper.add_representer(str, OmegaConfDumper.str_representer)


def to_yaml(cfg: Any, *, resolve: bool = False, sort_keys: bool = False) -> str:
    """Return a config as text; a dictionary must be plain data."""
    content = cfg if type(cfg) is dict else OmegaConf.to_container(cfg, resolve=resolve, enum_to_str=True)
    text: str = yaml.dump(content, default_flow_style=False, allow_unicode=True, sort_keys=sort_keys, Dumper=Dumper)
    return text


ORIGINALS: tuple[tuple[Any, str, Any], ...] = (
    (ConfigRepository, "load_config", ConfigRepository.load_config),
    (ConfigLoaderImpl, "_embed_result_config", staticmethod(ConfigLoaderImpl._embed_result_config)),
    (defaults_list, "_create_interpolation_map", defaults_list._create_interpolation_map),
    (OmegaConf, "to_yaml", staticmethod(OmegaConf.to_yaml)),
)


def install() -> None:
    """Replace the functions of Hydra."""
    for (owner, name, _), replacement in zip(
        ORIGINALS, (load_config, staticmethod(embed_config), interpolation_map, staticmethod(to_yaml)), strict=True
    ):
        setattr(owner, name, replacement)
