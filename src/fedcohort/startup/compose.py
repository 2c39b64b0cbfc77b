"""Words -> a composed config, for the commands: what `hydra.main` does for a run."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from fedcohort.errors import OptionError
from fedcohort.startup import assemble
from fedcohort.startup.overlay import Overlay


def run_of(words: Sequence[str], configs: Path, *extra: str) -> assemble.Composed:
    """The config of `python train.py <words>`; configs: the folder of the groups. extra: words that weren't typed.

    Raises Hydra's errors, which `in_one_line` explains.
    """
    cfg = _compose([*words, *extra], configs, whole=True)
    return assemble.compose_config(cfg, cfg.hydra.runtime.choices, tuple(words), configs)


def job_of(words: tuple[str, ...], configs: Path, hydra: tuple[str, ...] = ()) -> assemble.Composed:
    """Return the config of `python train.py <words>`. Jobs that differ only in a seed at the end share their work.

    hydra: options of Hydra that were typed, such as `hydra.searchpath`.
    """
    *others, last = words or ("",)
    if not re.fullmatch("seed=[0-9]+", last):
        return _overlay(configs, hydra).compose(words)
    cfg, choices = _lay(tuple(others), configs, hydra)
    OmegaConf.update(cfg, "seed", int(last.partition("=")[2]))
    return assemble.compose_config(cfg, choices, words, configs)


@lru_cache(maxsize=1000)
def _lay(words: tuple[str, ...], configs: Path, hydra: tuple[str, ...]) -> tuple[DictConfig, dict[str, str]]:
    return _overlay(configs, hydra).lay(words)


@cache
def _overlay(configs: Path, hydra: tuple[str, ...]) -> Overlay:
    return Overlay(lambda words: _compose([*hydra, *words], configs, whole=True), configs)


def part_of(group: str, words: Sequence[str], configs: Path) -> dict[str, Any]:
    """The options of one group, as `words` choose them, with its `_target_`."""
    return _plain(_compose(words, configs)[group])


def file_of(path: Path) -> dict[str, Any]:
    """What a word's yaml says, uncomposed. Raises `OptionError` where it is no YAML."""
    if path.exists() and not path.is_file():  # a named pipe would be waited for
        raise OptionError(f"{path} must be a file, and is a folder, a named pipe or a device")
    try:
        return _plain(OmegaConf.load(path), resolve=False)
    except yaml.YAMLError as error:
        raise OptionError(f"{path} can't be read: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise OptionError(f"{path} can't be read: it is nested too deeply, or an anchor in it holds itself") from error


def _compose(words: Sequence[str], configs: Path, *, whole: bool = False) -> DictConfig:
    with initialize_config_dir(str(configs), version_base="1.3"):
        return compose("train", overrides=list(words), return_hydra_config=whole)


def _plain(node: object, *, resolve: bool = True) -> dict[str, Any]:
    values: Any = OmegaConf.to_container(node, resolve=resolve)
    return dict(values)
