"""What of a composed config differs from the defaults in configs/: the words, and the options of each word."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hydra.utils import get_object
from omegaconf import OmegaConf

from fedcohort.record.observer import Observer
from fedcohort.roles import flat, role_of
from fedcohort.startup.compose import Composed
from fedcohort.startup.options import spell

PRESET = "heterogeneity"  # it stands for words of these groups
STOOD_FOR = ("partition", "label_noise", "feature_noise")
OVERRIDE = "override /"
TARGET = "_target_"
CALLBACK = "callback"  # the group of those who watch, and of Lightning's callbacks


def differing(composition: Composed) -> dict[str, str]:
    """Return what differs, the words first; options as they are typed. {} where the folder of the groups isn't known.

    An option that its yaml computes (`${...}`), or that stands in the yaml of another word, differs where it was typed.
    A callback differs where it is no observer: whoever only watches changes nothing, another may end the run.
    """
    if composition.configs is None:
        return {}
    config, choices, configs = composition.config, composition.choices, composition.configs
    words, own = _read_defaults(configs / "train.yaml")
    groups = {group: word for group, word in choices.items() if "." not in group and role_of(group).tracked}
    dealt = STOOD_FOR if PRESET in choices else ()
    found = {group: word for group, word in groups.items() if word != words.get(group) and group not in dealt}
    inner = {key: word for group in groups for key, word in _read_inner(configs, group, choices[group]).items()}
    found |= {key: word for key, word in choices.items() if "." in key and word != inner.get(key)}
    known = dict(own)
    for group, word in choices.items():
        known |= {f"{group}.{name}": value for name, value in _read_word(configs, group, word).items()}
    named = {word.lstrip("+~").partition("=")[0].partition("@")[0] for word in composition.overrides}
    named |= _read_word(configs, "experiment", choices.get("experiment", "")).keys()
    for option, value in flat(config):
        if option.endswith(TARGET) or not role_of(option).tracked:
            continue
        plain = option in known and "${" not in str(known[option])
        inside = option.rpartition(".")[0] in known  # of an option that is null, or a mapping
        if value != known[option] if plain else inside or option in named:
            found[option] = spell(value)
    return found | {
        option: spell(value)
        for name, node in config[CALLBACK].items()
        if node and not _only_watches(node)
        for option, value in flat(node, f"{CALLBACK}.{name}.")
    }


def _only_watches(node: Mapping[str, Any]) -> bool:
    made: object = get_object(node[TARGET])
    return isinstance(made, type) and issubclass(made, Observer)


@cache
def _read_defaults(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the word of each group, and the options that belong to none."""
    content = _load(path)
    words = {
        str(group): str(word) for each in content.pop("defaults") if each != "_self_" for group, word in each.items()
    }
    preset = _load(path.parent / PRESET / f"{words[PRESET]}.yaml")
    dealt = {key.removeprefix(OVERRIDE): word for each in preset.get("defaults", ()) for key, word in each.items()}
    words |= {group: word for group, word in dealt.items() if group in STOOD_FOR}
    return words, {name: value for name, value in flat(content) if not name.startswith("hydra.")}


@cache
def _read_word(configs: Path, group: str, word: str) -> dict[str, Any]:
    """Return the options in a word's yaml; {} of a word that has no file, as one that the data came to."""
    content = _load(configs / group / f"{word}.yaml")
    return {name: value for name, value in flat(content.get(group, content)) if name.partition(".")[0] != "defaults"}


@cache
def _read_inner(configs: Path, group: str, word: str) -> dict[str, str]:
    """Return the words that a word's yaml has inside, as `objective.base` of propfair."""
    lines = [each for each in _load(configs / group / f"{word}.yaml").get("defaults", ()) if isinstance(each, dict)]
    inner = [each for line in lines for each in line.items() if "@" in each[0]]
    return {f"{group}.{key.rpartition('@')[2]}": str(word) for key, word in inner}


def _load(path: Path) -> dict[str, Any]:
    """Return what a yaml says, uncomposed; {} where there is none."""
    content: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False) if path.is_file() else {}
    return content if isinstance(content, dict) else {}
