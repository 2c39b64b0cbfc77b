"""A run in this process, from typed words to reports: what `python train.py` does, without its start-up."""

import copy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf, open_dict
from torch import nn

from fedcohort.flat import keeps_statistics
from fedcohort.record.observer import Observer
from fedcohort.startup import assemble, compatible, options, run
from fedcohort.types import RoundReport
from yaml_words import CONFIGS, OURS

SMALL = (
    "clients=12",
    "cohort=4",
    "rounds=3",
    "model=logreg",
    "client.epochs=2",
    "checkpoint.every_s=0",
    "callback=none",
    "logger=none",
)


@dataclass
class Collect(Observer):
    """An observer that keeps everything it is told, of the latest run."""

    latest: ClassVar[list["Collect"]] = []
    reports: list[RoundReport] = field(default_factory=list)
    status: str = ""

    def start(self, info: Any) -> None:
        self.info = info
        Collect.latest.append(self)

    def observe(self, report: RoundReport) -> None:
        self.reports.append(report)

    def finish(self, status: str) -> None:
        self.status = status


@dataclass(frozen=True)
class Ran:
    folder: Path
    reports: list[RoundReport]
    info: Any

    @property
    def last(self) -> RoundReport:
        return self.reports[-1]

    @property
    def choices(self) -> list[list[int]]:
        return [report.cohort.tolist() for report in self.reports if report.step]

    def weights(self) -> torch.Tensor:
        state = torch.load(self.folder / "weights.pt", weights_only=True)
        return torch.cat([tensor.flatten().double() for tensor in state.values()])


PARSER = OverridesParser.create()


def compose_words(*overrides: str) -> assemble.Composed:
    """The composed config of `python train.py <overrides>`.

    Hydra takes as long for it as a small run takes: it composes each set of words once, words that stand for nothing
    but their own options are laid over, and plain `option=value` is written into a copy. A test compares.
    """
    parsed = [_parse(text) for text in overrides]
    words = [text for text, each in zip(overrides, parsed, strict=True) if not _plain(each)]
    over = {each.key_or_group: str(each.value()) for each in parsed if not _plain(each) and _is_own(each)}
    rest = tuple(text for text in words if text.split("=")[0] not in over)
    if any(_reaches_out(_parse(text)) for text in rest):
        over, rest = {}, tuple(words)
    cfg, choices = copy.deepcopy(_ours(rest)), dict(composed_by_hydra(rest).hydra.runtime.choices)
    for group, word in over.items():
        kept = {name: cfg[group][name] for name in options.options_in(group)}
        cfg[group] = OmegaConf.merge(_options(group, word), kept)
        choices[group] = word
    for each in (each for each in parsed if _plain(each)):
        holder, _, option = each.key_or_group.rpartition(".")
        known = OmegaConf.select(cfg, holder) if holder else cfg
        there = isinstance(known, DictConfig) and option in known
        if there == each.is_add():
            cfg = composed_by_hydra(overrides)  # it knows what is wrong
            return assemble.compose_config(cfg, cfg.hydra.runtime.choices, overrides)
        OmegaConf.update(cfg, each.key_or_group, each.value(), force_add=each.is_add())
    return assemble.compose_config(cfg, choices, overrides)


@cache
def _parse(override: str) -> Override:
    (parsed,) = PARSER.parse_overrides([override])
    return parsed


@cache
def _options(group: str, word: str) -> DictConfig:
    loaded = OmegaConf.load(CONFIGS / group / f"{word}.yaml")
    assert isinstance(loaded, DictConfig)
    return loaded


def _text_of(override: Override) -> str:
    path = CONFIGS / override.key_or_group / f"{override.value()}.yaml"
    return path.read_text() if path.is_file() else ""


def _is_own(override: Override) -> bool:
    """Whether it chooses a word of ours whose yaml has its own options, and nothing else."""
    text = _text_of(override)
    dealt = (
        "partition",
        "label_noise",
        "feature_noise",
        "dataset",
    )  # presets and what the data name have a say in these
    own = override.key_or_group in OURS and override.key_or_group not in dealt
    return own and "\n_target_: " in text and "defaults:" not in text and "@package" not in text


def _reaches_out(override: Override) -> bool:
    """Whether it may set options of words that are laid over; a preset of heterogeneity has none of those."""
    if override.key_or_group == "heterogeneity":
        return False
    return "@" in override.key_or_group or "@package" in _text_of(override) or override.is_delete()


def _plain(override: Override) -> bool:
    """Whether it sets one option, and chooses no word of a group."""
    value, key = override.value(), override.key_or_group
    simple = isinstance(value, bool | int | float | str | list | None) and "${" not in str(value)
    ours = "@" not in key and not key.startswith("hydra") and not (CONFIGS / key).is_dir()
    return simple and ours and not override.is_delete()


@cache
def composed_by_hydra(overrides: tuple[str, ...]) -> DictConfig:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return compose("train", overrides=list(overrides), return_hydra_config=True)


@cache
def _ours(overrides: tuple[str, ...]) -> DictConfig:
    """Without Hydra's own part, which would take as long to copy."""
    cfg = copy.deepcopy(composed_by_hydra(overrides))
    with open_dict(cfg):
        del cfg["hydra"]
    return cfg


def go(logs: Path, *overrides: str, small: bool = True) -> Ran:
    """Run it; the reports are those of this process."""
    return play(compose_words(*collect_words(logs, *overrides, small=small)))


def collect_words(logs: Path, *overrides: str, small: bool = True) -> tuple[str, ...]:
    """The overrides of a small run that is collected."""
    given = {word.split("=")[0].lstrip("+~") for word in overrides}
    base = [word for word in SMALL if small and word.split("=")[0] not in given]
    return (*base, *overrides, f"paths.logs={logs}", "+callback.collect._target_=run_harness.Collect")


def play(composed: assemble.Composed) -> Ran:
    """Run what `watched` words were composed to."""
    Collect.latest.clear()
    folder = run.run(composed)
    seen = Collect.latest[-1] if Collect.latest else Collect()
    return Ran(folder, seen.reports, getattr(seen, "info", None))


def remarks(*overrides: str, network: nn.Module | None = None) -> list[str]:
    """What is said of `python train.py <overrides>` before it starts; network: instead of the model's."""
    config = compose_words(*overrides)
    objects = {group: assemble.part(config, group) for group in (*assemble.LIGHT, *assemble.HEAVY)}
    parts = run._parts(config, objects)
    federation = run._federation(config, objects, parts)
    network = network or run._network(config, objects["model"], federation)
    known = compatible.with_data(run._facts(config, parts), parts, config.config["cohort"], federation)
    known = replace(known, batch_norm=keeps_statistics(network))
    return compatible.remarks(parts, config.choices, config.config["requires"], known, overrides)


def same_bits(a: Ran, b: Ran) -> bool:
    return a.last.fingerprint == b.last.fingerprint and bool(np.array_equal(a.weights(), b.weights()))
