"""From a composed config to objects; every error names the option that a user typed."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import get_class, instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedcohort import ranges
from fedcohort.errors import FedcohortError, IncompatibleConfig, OptionError

LIGHT = ("selector", "partition", "label_noise", "device", "availability", "deadline", "samples", "dataset")
HEAVY = ("model", "objective", "regulariser", "client", "codec", "server", "agg")


@dataclass(frozen=True)
class Composed:
    """config: plain, resolved. choices: the word chosen in each group. overrides: what was typed."""

    config: Mapping[str, Any]
    choices: Mapping[str, str]
    overrides: tuple[str, ...]


def composed(cfg: DictConfig, choices: Mapping[str, str | None], overrides: tuple[str, ...]) -> Composed:
    """The config as plain data. Raises `OptionError` for a value that is missing or can't be resolved."""
    try:
        ours = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
        plain = OmegaConf.to_container(ours, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise OptionError(str(error).split("\n")[0]) from error
    if not isinstance(plain, dict):
        raise OptionError("the config must be a mapping")
    config = {str(key): value for key, value in plain.items()}
    words = {group: str(word) for group, word in choices.items() if "/" not in group and word is not None}
    return Composed(config, words, overrides)


ROOT = "name seed data_seed clients cohort rounds resume split eval checkpoint client_store paths requires"


def check_keys(made: Composed) -> None:
    """Every group is there, and nothing else is: `+foo=1` would be obeyed by nobody. Raises `OptionError`."""
    known = {*ROOT.split(), *made.choices, "logger", "callback"}
    for key in made.config:
        if key not in known:
            raise OptionError(f"there is no option {key!r}; there are {', '.join(sorted(known))}")
    for group in (*LIGHT, *HEAVY, "engine", "trainer"):
        if not made.config.get(group):
            raise OptionError(f"{group} must be one of the words in configs/{group}, got nothing")


def check_numbers(config: Mapping[str, Any]) -> None:
    """Range checks of the options that belong to no part."""
    name = config["name"] or "unnamed"
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name):
        raise ranges.refuse("name", "letters, digits, '.', '_' and '-', as in a file's name, or null", name)
    ranges.integer("seed", config["seed"], "[0, inf)")
    ranges.integer("data_seed", config["data_seed"], "[0, inf)", optional=True)
    ranges.integer("clients", config["clients"], "[1, inf)", optional=True)
    ranges.integer("cohort", config["cohort"], "[1, inf)")
    ranges.integer("rounds", config["rounds"], "[1, inf)")
    ranges.flag("resume", config["resume"])
    ranges.number("split.server_val", config["split"]["server_val"], "(0, 0.5]")
    ranges.number("split.client_val", config["split"]["client_val"], "[0, 0.5]")
    ranges.integer("eval.every", config["eval"]["every"], "[1, inf)")
    ranges.integer("eval.clients_every", config["eval"]["clients_every"], "[0, inf)")
    ranges.integer("engine.slices", config["engine"]["slices"], "[1, inf)")
    ranges.choice("engine.bn_var", config["engine"]["bn_var"], "plain", "moments")
    ranges.choice("engine.kind", config["engine"]["kind"], "auto", "sequential", "vectorised", "debug")
    ranges.flag("engine.closed_form", config["engine"]["closed_form"])
    ranges.choice("engine.channels_last", config["engine"]["channels_last"], "auto", "yes", "no")
    ranges.choice("engine.precision", config["engine"]["precision"], "float32", "bf16")
    ranges.integer("engine.chunk", config["engine"]["chunk"], "[1, inf)")
    ranges.number("client_store.limit_gb", config["client_store"]["limit_gb"], "[0, inf)")
    ranges.integer("checkpoint.every", config["checkpoint"]["every"], "[1, inf)")
    ranges.choice("trainer.accelerator", config["trainer"]["accelerator"], "cpu", "gpu")
    if config["trainer"]["devices"] != "auto":
        ranges.integer("trainer.devices", config["trainer"]["devices"], "[1, inf)")
    ranges.integer("trainer.num_nodes", config["trainer"]["num_nodes"], "[1, inf)")
    ranges.integer("trainer.threads", config["trainer"]["threads"], "[1, inf)")
    ranges.number("checkpoint.every_s", config["checkpoint"]["every_s"], "[0, inf)")
    clients, cohort = config["clients"], config["cohort"]
    if clients is not None and cohort > clients:
        raise IncompatibleConfig(f"cohort={cohort} exceeds clients={clients}")


def check_aliases(made: Composed) -> None:
    """`agg=fedavgm` stands for FedAvg with server=momentum: another server beside it is refused, not obeyed."""
    for group, wanted in made.config["requires"].items():
        for other, word in wanted.items():
            chosen = made.choices.get(other)
            if chosen != word:
                raise IncompatibleConfig(
                    f"{group}={made.choices[group]} stands for {other}={word}, but {other}={chosen} was asked for: "
                    f"leave {other} out, or choose another {group}"
                )


def part(made: Composed, group: str) -> Any:
    """The object behind a group's `_target_`; None where the group is empty (logger=none)."""
    node = made.config.get(group)
    if not node:
        return None
    return build(node, group, f"{group}={made.choices.get(group, '?')}")


def build(node: Any, where: str, word: str) -> Any:
    """Instantiate `node`; where: its path in the config, for messages. Raises `OptionError`."""
    try:
        return instantiate(node, _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, OptionError):
            raise OptionError(f"{where}.{cause}") from cause
        if isinstance(cause, FedcohortError):
            raise cause from None
        if isinstance(cause, TypeError):
            raise OptionError(f"{word}: {_options(node, cause)}") from error
        reason = str(cause or error).split("\n")[0]
        raise OptionError(f"{word}: _target_ {node.get('_target_')!r} can't be used: {reason}") from error


def _options(node: Mapping[str, Any], cause: TypeError) -> str:
    signature = inspect.signature(get_class(node["_target_"]))
    known, given = set(signature.parameters), set(node) - {"_target_"}
    wrong = [f"has no option {name!r}" for name in sorted(given - known)]
    wrong += [f"needs the option {name!r}" for name in sorted(known - given)]
    return f"{', '.join(wrong) or cause}; its options are {', '.join(signature.parameters) or 'none'}"
