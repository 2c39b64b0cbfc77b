"""From a composed config to objects; every error names the option that a user typed."""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.utils import get_method
from omegaconf import DictConfig, DictKeyType, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedcohort import ranges
from fedcohort.contracts import place
from fedcohort.errors import FedcohortError, IncompatibleConfig, OptionError
from fedcohort.round.guard import guard
from fedcohort.startup import options, presets, targets
from fedcohort.startup.targets import TARGET, Contract

if TYPE_CHECKING:
    from fedcohort.partition.base import Partition

Built = Any  # an object of the class that `_target_` names: it is a config that says which
LIGHT = (  # they import no torch: what is out of its range here is refused in half a second
    *("selector", "client", "deadline", "samples", "device", "availability"),
    *("attack", "partition", "label_noise", "feature_noise", "augmentation", "dataset", "model"),
)
HEAVY = ("objective", "regulariser", "codec", "server", "agg", "proxy")


@dataclass(frozen=True)
class Composed:
    """A composed config, and what was typed for it.

    Attributes:
        config: plain, resolved.
        choices: the word chosen in each group, and of a part inside another by its path (`objective.base`); no
            `heterogeneity` where other words made the preset something else.
        overrides: what was typed.
        configs: the folder of the groups, where it is known.
    """

    config: Mapping[str, Any]
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    configs: Path | None = None


def compose_config(
    cfg: DictConfig, choices: Mapping[str, str | None], overrides: tuple[str, ...], configs: Path | None = None
) -> Composed:
    """The config as plain data; configs: the folder of the groups.

    Raises `OptionError` for a value that is missing or can't be resolved.
    """
    try:
        config = {str(key): _resolve(cfg, key) for key in cfg if key != "hydra"}
    except OmegaConfBaseException as error:
        raise OptionError(str(error).split("\n")[0]) from error
    words = {
        group.split("@")[-1]: str(word) for group, word in choices.items() if word is not None and "/" not in group
    }
    _name_what_came(cfg, config, words)
    presets.take_out(config, words, overrides)
    return Composed(config, words, overrides, configs)


def _resolve(cfg: DictConfig, key: DictKeyType) -> object:
    """What stands behind `key`, as plain data."""
    value = cfg[key]
    return OmegaConf.to_container(value, resolve=True, throw_on_missing=True) if OmegaConf.is_config(value) else value


def _name_what_came(cfg: DictConfig, config: Mapping[str, Any], words: dict[str, str]) -> None:
    """A word whose class depends on the data (partition=own) is called after what it came to, and so is its preset."""
    for group, word in list(words.items()):
        node = cfg.get(group)
        if isinstance(node, DictConfig) and "_target_" in node and OmegaConf.is_interpolation(node, "_target_"):
            words[group] = str(config[group]["_target_"]).split(".")[-2]
            words.update({preset: words[group] for preset in ("heterogeneity",) if words.get(preset) == word})


def check_keys(composition: Composed) -> None:
    """Check that every group is there, and nothing else: `+foo=1` would be obeyed by nobody.

    Raises `OptionError`.
    """
    known = {option.split(".")[0] for option in options.CHECKS} | {*LIGHT, *HEAVY, "logger", "callback", "requires"}
    for key in composition.config:
        if key not in known:
            raise options.unknown("", key, known)
    for group in (*LIGHT, *HEAVY, "engine", "trainer", "logger", "callback"):
        node = composition.config.get(group)
        of_run = () if group in ("engine", "trainer") else options.options_in(group)
        if not isinstance(node, Mapping) or not (set(node).difference(of_run) or group in ("logger", "callback")):
            raise OptionError(f"{group} must be one of the words in configs/{group}, got nothing")
        if group not in composition.choices:
            raise OptionError(f"{group} must be one of the words in configs/{group}, got several")
    typed = any(word.lstrip("+~").startswith("requires") for word in composition.overrides)
    if typed or not isinstance(composition.config.get("requires"), Mapping):
        raise OptionError("requires is filled by aliases such as agg=fedavgm: leave it out")


def check_numbers(config: Mapping[str, Any]) -> None:
    """Check the ranges of the options that belong to no part. Raises `OptionError` or `IncompatibleConfig`."""
    options.check(config)
    clients, cohort = config["clients"], config["cohort"]
    if clients is not None and cohort > clients:
        raise IncompatibleConfig(f"cohort={cohort} exceeds clients={clients}")


def check_aliases(composition: Composed) -> None:
    """Raise `IncompatibleConfig` for a word beside an alias that stands for another: `agg=fedavgm` for server=momentum.

    What an alias stands for is a word of another group, or, with a dot, the value of one of its options.
    """
    for group, wanted in composition.config["requires"].items():
        for other, word in wanted.items():
            node, _, option = other.partition(".")
            chosen = composition.config[node].get(option) if option else composition.choices.get(node)
            meant = f"{group}={composition.choices[group]} stands for {other}={_spell(word)}"
            if chosen != word:
                asked = f"{other}={_spell(chosen)} was asked for: leave {other} out, or choose another {group}"
                raise IncompatibleConfig(f"{meant}, but {asked}")
            if option and not _takes(composition.config[node], option):
                raise IncompatibleConfig(f"{meant}, and {node}={composition.choices[node]} has none: choose another")


def _takes(node: Mapping[str, Any], option: str) -> bool:
    """Whether a part is built from the option; what is wrong with its `_target_` is said where it is built."""
    with suppress(Exception):
        return option in inspect.signature(get_method(node["_target_"])).parameters
    return True


def _spell(value: object) -> str:
    """Return the value as it is typed on the command line."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def check_owners(composition: Composed, partition: "Partition") -> None:
    """Raise `IncompatibleConfig` where the data name the clients and the partition makes others.

    One of the two was not meant.
    """
    column = composition.config["dataset"].get("client")
    if column is not None and not partition.takes_owners:
        word = composition.choices.get("partition")
        raise IncompatibleConfig(
            f"dataset.client={column} names the clients, and partition={word} makes others: choose "
            f"heterogeneity=natural, or leave dataset.client out (and say dataset.leave_out=[{column}] where the "
            "column holds numbers that are no input)"
        )


def part(composition: Composed, group: str, *, foreign: bool = False) -> Built:
    """Make the object behind a group's `_target_`; None where the group is empty (logger=none).

    foreign: whether the config comes from a run folder. Raises `OptionError`.
    """
    node = composition.config.get(group)
    if not node:
        return None
    own = {name: value for name, value in node.items() if name not in options.options_in(group)}
    word = f"{group}={composition.choices.get(group, '?')}"
    return guard(build(own, group, word, foreign=foreign), group, word, targets.protocol_of(group))


def build(
    node: Mapping[str, Any], where: str, word: str, contract: Contract | None = None, *, foreign: bool = False
) -> Built:
    """Make the component that `node` describes, and those inside it, once each class fulfils its contract.

    Args:
        node: options by name, with the class in `_target_`.
        where: its path in the config, for messages.
        word: how a user calls it, for messages.
        contract: what the class must be, None for the contract of the group `where`.
        foreign: whether the config comes from a run folder, so that only classes of fedcohort are accepted.

    Raises:
        OptionError: for a class or an option that can't be used.
    """
    contract = contract or targets.contract_of(where)
    if TARGET not in node:
        raise ranges.refuse(f"{where}.{TARGET}", contract.allowed, None)
    targets.check(node, where, word, contract, foreign=foreign)
    return _make(node, where, word)


def _make(node: object, where: str, word: str) -> Built:
    """Make what `node` describes; its classes have been checked."""
    if not isinstance(node, Mapping) or TARGET not in node:
        return node
    arguments = {str(name): value for name, value in node.items() if name != TARGET}
    inside = {name: _make(value, f"{where}.{name}", f"{where}.{name}") for name, value in arguments.items()}
    made = targets.resolve(node[TARGET], where, word)
    try:
        return made(**inside)
    except OptionError as error:
        raise OptionError(f"{where}.{error}") from error
    except FedcohortError:
        raise
    except TypeError as error:
        raise OptionError(f"{word}: {_options(made, arguments, error)}") from error
    except Exception as error:
        line = place(error.__traceback__, str(node[TARGET]).rpartition(".")[0])
        reason = f"{' '.join(str(error).split())}{f' ({type(error).__name__} in {line})' if line else ''}"
        raise OptionError(f"{word}: {node[TARGET]} refuses its options: {reason}") from error


def _options(made: type, arguments: Mapping[str, object], cause: TypeError) -> str:
    signature = inspect.signature(made)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = {name: option for name, option in signature.parameters.items() if option.kind not in variadic}
    needed = {name for name, option in known.items() if option.default is inspect.Parameter.empty}
    wrong = [f"has no option {name!r}" for name in sorted(set(arguments) - set(known))]
    wrong += [f"needs the option {name!r}" for name in sorted(needed - set(arguments))]
    return f"{', '.join(wrong) or cause}; {options.list_options(known)}"
