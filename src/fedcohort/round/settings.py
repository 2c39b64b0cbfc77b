"""The options of a run that belong to no part: a field here, with its range, and a line in a yaml, with its default.

`startup/options.py` checks what is typed against these ranges; the rounds read the fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from fedcohort import ranges
from fedcohort.round.budget import Budget

Check = Callable[[str, Any], None]


def integer(interval: str, *, optional: bool = False) -> Check:
    """Make the check of an integer in `interval`, or null if it is optional."""
    return partial(ranges.integer, interval=interval, optional=optional)


def number(interval: str, *, optional: bool = False) -> Check:
    """Make the check of a number in `interval`, or null where it is optional."""
    return partial(ranges.number, interval=interval, optional=optional)


def choice(*words: str) -> Check:
    """Make the check of a choice among `words`."""
    return lambda option, value: ranges.choice(option, value, *words)


def option(name: str, check: Check) -> Any:  # noqa: ANN401  as `field` itself: it stands where the value will
    """Make a field of `Settings`: its option in the config, by its dotted name, and its check."""
    return field(metadata={"option": name, "check": check})


@dataclass(frozen=True)
class Settings:
    """The options that the rounds read; configs/train.yaml and configs/engine explain them.

    Attributes:
        config_hash: of the config and the seed, which a checkpoint must have.
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
        """Where the run ends."""
        return Budget(self.rounds, self.until_virtual_s, self.until_bytes, self.until_acc)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], config_hash: str) -> "Settings":
        """Read the settings of a composed config, whose options `startup/options.py` has checked."""
        return cls(config_hash, **{name: _find(config, option) for name, option, _ in options()})


def options() -> list[tuple[str, str, Check]]:
    """Return (field, option, check) of each setting."""
    return [(each.name, each.metadata["option"], each.metadata["check"]) for each in fields(Settings) if each.metadata]


def _find(config: Mapping[str, Any], option: str) -> Any:  # noqa: ANN401  of the option's type, as its check has seen
    node, _, last = option.rpartition(".")
    return (config[node] if node else config)[last]
