"""Many configs from few compositions: a sweep's words are laid over a config that Hydra has composed.

Hydra takes tenths of a second for a composition, and the jobs of a grid differ in a few words. Each set of words that
may reach into other groups is composed by Hydra, once; a word that stands for nothing but its own options is laid over,
and a plain `option=value` is written into a copy. What comes out is what Hydra would have composed.
"""

import copy
import re
from collections.abc import Callable, Collection
from functools import cache, lru_cache
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf, open_dict

from fedcohort.startup import check, compose, options

DEALT = ("partition", "label_noise", "feature_noise", "dataset")  # presets and what the data name have a say in these
PARSER = OverridesParser.create()
PACKAGE = re.compile(r"^# @package (\S+)", re.MULTILINE)


class Overlay:
    """Configs by their words, of one set of groups."""

    def __init__(self, by_hydra: Callable[[tuple[str, ...]], DictConfig], configs: Path) -> None:
        """Compose with `by_hydra`, which is asked for each set of words once; configs: the folder of the groups."""
        self._by_hydra = cache(by_hydra)
        self._bare = cache(self._without_hydra)
        self._options = cache(self._read)
        self._text = cache(self._read_text)
        self._reach = cache(self._find_reach)
        self._configs = configs

    def compose(self, words: tuple[str, ...]) -> compose.Composed:
        """Return the composed config of `words`. Raises what Hydra raises, and `OptionError`."""
        return compose.compose_config(*self.lay(words), words, self._configs)

    def lay(self, words: tuple[str, ...]) -> tuple[DictConfig, dict[str, str]]:
        """Return a config of one's own, unresolved, and the word of each group. Raises what Hydra raises."""
        parsed = [_parse(word) for word in words]
        chosen = [(word, each) for word, each in zip(words, parsed, strict=True) if not self._is_plain(each)]
        over = {each.key_or_group: str(each.value()) for _, each in chosen if self._is_own(each)}
        others = [(word, each) for word, each in chosen if not self._is_own(each)]
        if any(self._reaches_out(each, over) for _, each in others):
            over, others = {}, chosen
        cfg, choices = self._copy(tuple(word for word, _ in others))
        for group, word in over.items():
            kept = {name: cfg[group][name] for name in options.options_in(group)}
            cfg[group] = OmegaConf.merge(self._options(group, word), kept)
            choices[group] = word
        for each in (each for each in parsed if self._is_plain(each)):
            holder, _, option = each.key_or_group.rpartition(".")
            known = OmegaConf.select(cfg, holder) if holder else cfg
            if (isinstance(known, DictConfig) and option in known) == each.is_add():
                return self._copy(words)  # or Hydra says what is wrong
            OmegaConf.update(cfg, each.key_or_group, each.value(), force_add=each.is_add())
        return cfg, choices

    def _copy(self, words: tuple[str, ...]) -> tuple[DictConfig, dict[str, str]]:
        """Return what Hydra composes, to be changed, and the word of each group."""
        return copy.deepcopy(self._bare(words)), dict(self._by_hydra(words).hydra.runtime.choices)

    def _is_own(self, override: Override) -> bool:
        """Return whether it chooses a word of ours whose yaml has its own options, and nothing else."""
        group = override.key_or_group
        if override.type != OverrideType.CHANGE or override.package is not None:
            return False
        if group not in (*check.LIGHT, *check.HEAVY) or group in DEALT:
            return False
        text = self._text(group, str(override.value()))
        return "\n_target_: " in f"\n{text}" and "defaults:" not in text and "@package" not in text

    def _reaches_out(self, override: Override, over: Collection[str]) -> bool:
        """Return whether it may set options of words that are laid over.

        over: the groups whose words are laid over; an option of theirs that isn't plain would be lost.
        """
        group = override.key_or_group
        if group.split(".")[0] in over or override.is_delete():
            return True
        return not self._reach(group, str(override.value())).isdisjoint(over)

    def _find_reach(self, group: str, word: str) -> frozenset[str]:
        """Return what a word's yaml, and the words that it builds on or chooses, may set outside of its own group.

        They are names at the top of the config: groups, and options that are in none.
        """
        package = PACKAGE.search(self._text(group, word))
        if package is None:
            return frozenset()
        if package[1] != "_global_":
            return frozenset({package[1].split(".")[0]})
        node = self._options(group, word)
        found = {str(name) for name in node}
        for entry in node.get("defaults", ()):
            chosen = {group: entry} if isinstance(entry, str) else entry
            for name, other in chosen.items():
                its_group = str(name).removeprefix("override ").lstrip("/").partition("@")[0]
                found |= {its_group} | self._reach(its_group, str(other).partition("@")[0])
        return frozenset(found)

    def _is_plain(self, override: Override) -> bool:
        """Return whether it sets one option, and chooses no word of a group."""
        value, key = override.value(), override.key_or_group
        simple = isinstance(value, bool | int | float | str | list | None) and "${" not in str(value)
        ours = "@" not in key and not key.startswith("hydra") and not (self._configs / key).is_dir()
        return simple and ours and not override.is_delete()

    def _without_hydra(self, words: tuple[str, ...]) -> DictConfig:
        """Return the config without Hydra's own part, which would take as long to copy."""
        cfg = copy.deepcopy(self._by_hydra(words))
        with open_dict(cfg):
            del cfg["hydra"]
        return cfg

    def _read(self, group: str, word: str) -> DictConfig:
        loaded = OmegaConf.load(self._configs / group / f"{word}.yaml")
        if not isinstance(loaded, DictConfig):
            raise TypeError(f"configs/{group}/{word}.yaml holds no options")
        return loaded

    def _read_text(self, group: str, word: str) -> str:
        path = self._configs / group / f"{word}.yaml"
        return path.read_text() if path.is_file() else ""


@cache
def _parse(word: str) -> Override:
    (parsed,) = PARSER.parse_overrides([word])
    return parsed


def job_of(words: tuple[str, ...], configs: Path, hydra: tuple[str, ...] = ()) -> compose.Composed:
    """Return the config of `python train.py <words>`. Jobs that differ only in a seed at the end share their work.

    hydra: options of Hydra that were typed, such as `hydra.searchpath`.
    """
    *others, last = words or ("",)
    if not re.fullmatch("seed=[0-9]+", last):
        return _overlay(configs, hydra).compose(words)
    cfg, choices = _lay(tuple(others), configs, hydra)
    OmegaConf.update(cfg, "seed", int(last.partition("=")[2]))
    return compose.compose_config(cfg, choices, words, configs)


@lru_cache(maxsize=1000)
def _lay(words: tuple[str, ...], configs: Path, hydra: tuple[str, ...]) -> tuple[DictConfig, dict[str, str]]:
    return _overlay(configs, hydra).lay(words)


@cache
def _overlay(configs: Path, hydra: tuple[str, ...]) -> Overlay:
    return Overlay(lambda words: compose.by_hydra((*hydra, *words), configs, whole=True), configs)
