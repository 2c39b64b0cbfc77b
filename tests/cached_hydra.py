"""Let Hydra read each yaml once in a process, because most tests compose a config and write it into a run's folder.

Hydra 1.3 reads a yaml again for each composition, which takes a third of its time. Another third goes to choices that
only an interpolation in a defaults list could read. Most defaults lists begin with the same entries, which are merged
once. Yaml files are parsed by libyaml, ten times as fast as by OmegaConf's parser in Python.
"""

import copy
import os
import pickle
from collections.abc import Sequence
from typing import Any

from hydra._internal import defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.default_element import ResultDefault
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig
from omegaconf import _utils as omegaconf_utils
from yaml import cyaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

_load_config = ConfigRepository.load_config
_embed_config = ConfigLoaderImpl._embed_result_config
_interpolation_map = defaults_list._create_interpolation_map
_load_single_config = ConfigLoaderImpl._load_single_config
_merge_defaults = ConfigLoaderImpl._compose_config_from_defaults_list
PREFIXES = (20, 13, 9)  # numbers of entries; the first nine are Hydra's own
_default_lists: dict[tuple[Any, ...], bytes] = {}
_loaded_configs: dict[tuple[Any, ...], Any] = {}


def load_config(self: ConfigRepository, config_path: str) -> Any:
    """Return the content of a yaml, read again only if the file has changed."""
    source = self._find_object_source(config_path=config_path, object_type=ObjectType.CONFIG)
    if source is None:
        return None
    key: tuple[Any, ...] = (type(source), source.provider, source.path, config_path)
    if source.scheme() == "file":
        state = os.stat(os.path.join(source.path, f"{config_path.removesuffix('.yaml')}.yaml"))
        key = (*key, state.st_ino, state.st_size, state.st_mtime_ns)
    if key not in _loaded_configs:
        _loaded_configs[key] = _load_config(self, config_path)
    return _loaded_configs[key]


def embed_config(loaded: Any, package: str | None) -> Any:
    """Put the content of a yaml into its package; Hydra itself copies it unless the package is the whole config."""
    if not (loaded.header["package"] if package is None else package):
        loaded = copy.copy(loaded)
        loaded.config = copy.deepcopy(loaded.config)
    return _embed_config(loaded, package)


def interpolation_map(overrides: Any, defaults: Sequence[Any], adds_self: bool) -> DictConfig | None:
    """Return the choices that interpolations in a defaults list may name; None for a list without interpolations."""
    if any(default.is_interpolation() for default in defaults if not default.is_self()):
        return _interpolation_map(overrides, list(defaults), adds_self)
    return None


class Prefix(ResultDefault):
    """The first entries of a defaults list, which have been merged.

    Args:
        content: the pickled config.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(config_path="")
        self.content = content


def load_single_config(self: ConfigLoaderImpl, default: ResultDefault, repo: Any) -> ConfigResult:
    """Return the config of an entry of a defaults list."""
    if isinstance(default, Prefix):
        return ConfigResult("", "", pickle.loads(default.content), {})
    return _load_single_config(self, default, repo)


def merge_defaults(self: ConfigLoaderImpl, defaults: Sequence[ResultDefault], repo: Any) -> DictConfig:
    """Merge the configs of a defaults list; the first ones once for all lists that begin with them."""
    n_prefix = next((n for n in PREFIXES if n < len(defaults)), 0)
    if not n_prefix:
        return _merge_defaults(self, list(defaults), repo)
    prefix = defaults[:n_prefix]
    contents = [repo.load_config(entry.config_path) for entry in prefix]  # the cache keeps them
    key = tuple((entry.package, entry.primary, id(content)) for entry, content in zip(prefix, contents, strict=True))
    if key not in _default_lists:
        _default_lists[key] = pickle.dumps(merge_defaults(self, prefix, repo))
    return _merge_defaults(self, [Prefix(_default_lists[key]), *defaults[n_prefix:]], repo)


class YamlLoader(cyaml.CParser, omegaconf_utils.get_yaml_loader()):  # type: ignore[misc]
    """OmegaConf's loader, whose numbers and checks it has, with the parser of libyaml."""

    def __init__(self, stream: Any) -> None:
        cyaml.CParser.__init__(self, stream)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)


ORIGINALS: tuple[tuple[Any, str, Any], ...] = (
    (ConfigRepository, "load_config", ConfigRepository.load_config),
    (ConfigLoaderImpl, "_embed_result_config", staticmethod(ConfigLoaderImpl._embed_result_config)),
    (defaults_list, "_create_interpolation_map", defaults_list._create_interpolation_map),
    (ConfigLoaderImpl, "_load_single_config", _load_single_config),
    (ConfigLoaderImpl, "_compose_config_from_defaults_list", _merge_defaults),
    (omegaconf_utils, "get_yaml_loader", omegaconf_utils.get_yaml_loader),
)


def install() -> None:
    """Replace the functions of Hydra."""
    replacements = (
        *(load_config, staticmethod(embed_config), interpolation_map, load_single_config, merge_defaults),
        lambda: YamlLoader,
    )
    for (owner, name, _), replacement in zip(ORIGINALS, replacements, strict=True):
        setattr(owner, name, replacement)
