"""What each option is to a run: one table for the hash of its folder, for a resume, for tables and for MLflow.

Where no row names an option, or the node that it is in, it belongs to a part of the experiment: `PART`.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class Effect(enum.Enum):
    """What another value changes."""

    NOTHING = "nothing"
    LAST_BITS = "last bits"  # sums in another order: results to rounding, until a choice flips
    RESULTS = "results"


class Identity(enum.Enum):
    """What a run with another value is to a resume."""

    HASH = "another run"  # by the hash in the folder's name
    SEED = "another run, by the seed in the folder's name"
    HELD = "the same run, which goes on only with resume=force"
    FREE = "the same run"


@dataclass(frozen=True)
class Role:
    """What an option is to a run.

    Attributes:
        effect, identity: see there.
        tracked: MLflow has it as a parameter, so that `fedcohort compare` knows it; the table at the start has it where
            it differs from its default.
    """

    effect: Effect
    identity: Identity
    tracked: bool = False


PART = Role(Effect.RESULTS, Identity.HASH, tracked=True)
_SETTING = Role(Effect.RESULTS, Identity.HASH, tracked=True)
_MEANS = Role(Effect.NOTHING, Identity.FREE, tracked=True)  # how the same result is reached
_OUTSIDE = Role(Effect.NOTHING, Identity.FREE)  # where it is written, and who watches

TABLE: Mapping[str, Role] = {
    "seed": Role(Effect.RESULTS, Identity.SEED, tracked=True),
    "data_seed": _SETTING,
    "clients": _SETTING,
    "cohort": _SETTING,
    "rounds": Role(Effect.RESULTS, Identity.FREE, tracked=True),  # more of them extend a run
    "until": Role(Effect.RESULTS, Identity.FREE, tracked=True),  # and so does a larger budget
    "deadline.window_s": _SETTING,
    "split": _SETTING,
    "eval": _SETTING,
    "update_limit": _SETTING,
    "engine.slices": _MEANS,
    "engine.force": _OUTSIDE,
    "checkpoint": _MEANS,
    "client_store": _MEANS,
    "trainer": Role(Effect.LAST_BITS, Identity.HELD, tracked=True),
    "callback": _OUTSIDE,  # one that ended a run early is asked for again: `folder.Wanted`
    "logger": _OUTSIDE,
    "name": _OUTSIDE,
    "objective_metric": _OUTSIDE,
    "paths": _OUTSIDE,
    "requires": _OUTSIDE,  # what an alias stands for is in the other groups' nodes
    "resume": _OUTSIDE,
    "sweep": _OUTSIDE,
}


# Groups and options that came later, with the word or the value that leaves a run as it was before: it is the same run.
LATER: Mapping[str, str] = {"augmentation": "none"}
LATER_OPTIONS: Mapping[str, object] = {
    "dataset.columns": None,
    "dataset.categories": [],
    "dataset.dates": [],
    "dataset.decimal": "auto",
    "dataset.series": None,
    "dataset.window": None,
    "dataset.min_client_samples": None,
    "dataset.pool_small": False,
}


def rows_of(option: str) -> list[str]:
    """The names in `TABLE` that `option` (a dotted name, or a group) falls under: one, or none for `PART`."""
    return [name for name in TABLE if option == name or option.startswith(f"{name}.")]


def role_of(option: str) -> Role:
    """What `option` is to a run."""
    return next((TABLE[name] for name in rows_of(option)), PART)


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of `config` under its dotted name; an empty node is a value."""
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def select_options(config: Mapping[str, Any], *identities: Identity) -> dict[str, Any]:
    """Return the values of `config` whose options are of these identities, under their dotted names."""
    found = {option: value for option, value in flat(config) if role_of(option).identity in identities}
    return {option: value for option, value in found.items() if not _is_as_before(option, value)}


def _is_as_before(option: str, value: object) -> bool:
    """Whether it came later, and changes nothing; of a group it is the part, whose module has the word's name."""
    if option in LATER_OPTIONS:
        return value == LATER_OPTIONS[option]
    group, _, name = option.partition(".")
    return name == "_target_" and group in LATER and str(value).split(".")[-2:-1] == [LATER[group]]
