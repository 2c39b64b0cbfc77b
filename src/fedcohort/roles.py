"""The effect of each option on a run's results and identity. The folder's hash, resume, tables and MLflow read it.

An option that no row of `TABLE` names, nor its node, is one of a component: `COMPONENT`.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class Effect(enum.Enum):
    """What a change of the option's value changes."""

    NOTHING = "nothing"
    LAST_BITS = "last bits"  # sums in another order: results to rounding, until a choice flips
    RESULTS = "results"


class Identity(enum.Enum):
    """Whether a run with another value of the option is the same run, so that it can be resumed."""

    HASH = "another run"  # by the hash in the folder's name
    SEED = "another run, by the seed in the folder's name"
    FORCED = "the same run, which is resumed only with resume=force"
    FREE = "the same run"


@dataclass(frozen=True)
class Role:
    """The role of an option in a run.

    Attributes:
        effect: what another value changes.
        identity: whether a run with another value is the same run.
        tracked: whether it is a parameter in MLflow, which `fedcohort compare` reads. The table at the start of a run
            shows it where it differs from its default.
    """

    effect: Effect
    identity: Identity
    tracked: bool = False


COMPONENT = Role(Effect.RESULTS, Identity.HASH, tracked=True)
_SETTING_ROLE = Role(Effect.RESULTS, Identity.HASH, tracked=True)
_EXECUTION_ROLE = Role(Effect.NOTHING, Identity.FREE, tracked=True)  # other values give the same result in another way
_OUTPUT_ROLE = Role(Effect.NOTHING, Identity.FREE)  # where files are written, and which observers there are

TABLE: Mapping[str, Role] = {
    "seed": Role(Effect.RESULTS, Identity.SEED, tracked=True),
    "data_seed": _SETTING_ROLE,
    "clients": _SETTING_ROLE,
    "cohort": _SETTING_ROLE,
    "rounds": Role(Effect.RESULTS, Identity.FREE, tracked=True),  # a larger number extends a run
    "until": Role(Effect.RESULTS, Identity.FREE, tracked=True),  # and so does a larger budget
    "deadline.window_s": _SETTING_ROLE,
    "split": _SETTING_ROLE,
    "eval": _SETTING_ROLE,
    "update_limit": _SETTING_ROLE,
    "engine.slices": _EXECUTION_ROLE,
    "engine.force": _OUTPUT_ROLE,
    "checkpoint": _EXECUTION_ROLE,
    "client_store": _EXECUTION_ROLE,
    "trainer": Role(Effect.LAST_BITS, Identity.FORCED, tracked=True),
    "callback": _OUTPUT_ROLE,  # a callback that ended the run early must be there again: `claim.Request`
    "logger": _OUTPUT_ROLE,
    "name": _OUTPUT_ROLE,
    "objective_metric": _OUTPUT_ROLE,
    "paths": _OUTPUT_ROLE,
    "requires": _OUTPUT_ROLE,  # the options that an alias stands for are in the nodes of their groups
    "resume": _OUTPUT_ROLE,
    "sweep": _OUTPUT_ROLE,
}

# Groups and options that were added later. With this choice or value the config hash is the one of earlier versions.
LATER_GROUPS: Mapping[str, str] = {"augmentation": "none"}
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
    """Return the rows of `TABLE` for a group or an option (a dotted name): one, or none for a component's option."""
    return [name for name in TABLE if option == name or option.startswith(f"{name}.")]


def role_of(option: str) -> Role:
    """Return the role of an option."""
    return next((TABLE[name] for name in rows_of(option)), COMPONENT)


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of every option; an empty node is a value."""
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def select_options(config: Mapping[str, Any], *identities: Identity) -> dict[str, Any]:
    """Return the values of the options that have one of these identities, by dotted name."""
    return {
        option: value
        for option, value in flat(config)
        if role_of(option).identity in identities and not _has_earlier_behaviour(option, value)
    }


def _has_earlier_behaviour(option: str, value: object) -> bool:
    """Return whether the option was added later, and has the value of `LATER_GROUPS` or `LATER_OPTIONS`.

    The choice of a group is read from `_target_`: the module of a component is called after the choice.
    """
    if option in LATER_OPTIONS:
        return value == LATER_OPTIONS[option]
    group, _, name = option.partition(".")
    return name == "_target_" and group in LATER_GROUPS and str(value).split(".")[-2:-1] == [LATER_GROUPS[group]]
