"""What this room rests on of Hydra that it doesn't document: a private class, and the wording of its errors.

All of it was read in Hydra 1.3.8.
"""

import re
from typing import Any

from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.plugin import Plugin

from fedcohort.errors import ForeignChange

HYDRA = "1.3.8"
AMBIGUOUS = r"Ambiguous value for argument '(.*)'$"
NEEDS_MULTIRUN = r"Sweep parameters '(.*)' requires"
THERE_ALREADY = r"Could not append to config\. An item is already at '(.*)'"
CHOSEN_ALREADY = r"Multiple values for (\S+)\. "
NO_SUCH_PART = r"Could not override '(\S+@\S+)'"
NO_SUCH_PART_IN_DATASET = r"In 'dataset/(\w+)': Could not override"
NOTHING_TO_DELETE = r"Could not delete from config\. '(.*)' does not exist"
NOT_CHOSEN = r"Could not delete '(.*)'\. No match"


def combinations(overrides: list[Override]) -> list[list[str]]:
    """The words of each job of a sweep over all combinations.

    Rests on `hydra._internal.core_plugins.basic_sweeper.BasicSweeper.split_arguments` (Hydra 1.3.8).
    """
    try:
        from hydra._internal.core_plugins.basic_sweeper import BasicSweeper  # noqa: PLC0415  or no run would start

        split = BasicSweeper.split_arguments
    except (ImportError, AttributeError) as error:
        part = "BasicSweeper.split_arguments"
        raise ForeignChange("hydra-core", part, "lists the jobs of a sweep", HYDRA) from error
    (batch,) = split(overrides, None)
    return batch


def no_callbacks() -> Any:  # noqa: ANN401 - a private class
    """Return callbacks of Hydra that do nothing. Rests on `hydra._internal.callbacks.Callbacks` (Hydra 1.3.8)."""
    try:
        from hydra._internal.callbacks import Callbacks  # noqa: PLC0415  or no run would start
    except ImportError as error:
        raise ForeignChange("hydra-core", "Callbacks", "starts jobs by a launcher", HYDRA) from error
    return Callbacks()


def register(name: str, plugin: type[Plugin]) -> None:
    """Let a config name a plugin of ours: Hydra makes none whose `_target_` isn't below `hydra_plugins`.

    Rests on `Plugins.class_name_to_class` (hydra/core/plugins.py, Hydra 1.3.8).
    """
    try:
        Plugins.instance().class_name_to_class[name] = plugin
    except AttributeError as error:
        raise ForeignChange("hydra-core", "Plugins.class_name_to_class", "knows our plugins", HYDRA) from error


def missing_config(text: str) -> tuple[str, str, str] | None:
    """(config, group, word) of a word without a file, from what `MissingConfigException` says (Hydra 1.3.8)."""
    found = re.match(r"In '(.*?)': Could not \w+ '(.*)/(.*?)'", text)
    return (found[1], found[2], found[3]) if found else None


def without_search_path(text: str) -> str:
    """An error's text up to where Hydra lists the folders that it has looked into (Hydra 1.3.8)."""
    return text.partition("Config search path")[0]


def is_no_word(error: BaseException) -> bool:
    """Whether a group was given null or a number: a plain ValueError (Hydra 1.3.8)."""
    return isinstance(error, ValueError) and "Config group override must be" in str(error)


def is_lone_flag(error: BaseException) -> bool:
    """Whether --resolve or the like came without --cfg: a plain ValueError (Hydra 1.3.8)."""
    return isinstance(error, ValueError) and "flag can only be used" in str(error)
