"""The options of a run that belong to no component: a field here with its range, and its default in a yaml.

`startup/options.py` checks the typed values against these ranges; the rounds read the fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from fedcohort import ranges
from fedcohort.round.budget import Budget

Check = Callable[[str, Any], None]


def integer(interval: str, *, optional: bool = False) -> Check:
    """Return a function that checks that an option is an integer in `interval`, or null if `optional`."""
    return partial(ranges.integer, interval=interval, optional=optional)


def number(interval: str, *, optional: bool = False) -> Check:
    """Return a function that checks that an option is a number in `interval`, or null if `optional`."""
    return partial(ranges.number, interval=interval, optional=optional)


def choice(*choices: str) -> Check:
    """Return a function that checks that an option has one of these choices."""
    return lambda option, value: ranges.choice(option, value, *choices)


def option(name: str, check: Check) -> Any:  # noqa: ANN401  as `dataclasses.field`, it is assigned to typed names
    """Return a field of `Settings` with the dotted name of its option and its check."""
    return field(metadata={"option": name, "check": check})


@dataclass(frozen=True)
class Settings:
    """The options that the rounds read; configs/train.yaml and configs/engine explain them.

    Attributes:
        config_hash: hash of the config and the seed, which a checkpoint must match.
    """

    config_hash: str
    seed: int = option("seed", integer("[0, inf)"))
    cohort: int = option("cohort", integer("[1, inf)"))
    rounds: int = option("rounds", integer("[1, inf)"))
    until_virtual_s: float | None = option("until.virtual_s", number("(0, inf)", optional=True))
    until_bytes: float | None = option("until.bytes", number("(0, inf)", optional=True))
    until_acc: float | None = option("until.acc", number("(0, 1]", optional=True))
    eval_every: int = option("eval.every", integer("[1, inf)"))
    clients_every: int = option("eval.clients_every", integer("[0, inf)"))
    clients_sample: int | None = option("eval.clients_sample", integer("[1, inf)", optional=True))
    window_s: float = option("deadline.window_s", number("[0, inf)"))
    update_limit: float = option("update_limit", number("(0, inf)"))
    store_limit_gb: float = option("client_store.limit_gb", number("[0, inf)"))
    engine: str = option("engine.kind", choice("auto", "sequential", "vectorised", "debug"))
    slices: int = option("engine.slices", integer("[1, 100000]"))
    bn_var: str = option("engine.bn_var", choice("plain", "moments"))
    closed_form: bool = option("engine.closed_form", ranges.flag)
    channels_last: str = option("engine.channels_last", choice("auto", "yes", "no"))
    chunk: int = option("engine.chunk", integer("[1, inf)"))
    precision: str = option("engine.precision", choice("float32", "bf16"))

    @property
    def budget(self) -> Budget:
        """The limits at which the run ends."""
        return Budget(self.rounds, self.until_virtual_s, self.until_bytes, self.until_acc)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], config_hash: str) -> "Settings":
        """Read the settings of a composed config, whose options `startup/options.py` has checked."""
        return cls(config_hash, **{name: _find(config, option) for name, option, _ in options()})


def options() -> list[tuple[str, str, Check]]:
    """Return the field of `Settings`, the dotted option and the range check of each setting."""
    return [(item.name, item.metadata["option"], item.metadata["check"]) for item in fields(Settings) if item.metadata]


def _find(config: Mapping[str, Any], option: str) -> Any:  # noqa: ANN401  the option's type, which its check ensures
    node, _, last = option.rpartition(".")
    return (config[node] if node else config)[last]
