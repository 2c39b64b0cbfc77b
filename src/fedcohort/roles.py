"""The effect of each option on a run's results and identity. The folder's hash, resume, tables and MLflow read it.

An option that no row of `ROLE_BY_OPTION` names, nor its node, is one of a component: `COMPONENT_OPTION_ROLE`.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any


class OptionEffect(enum.Enum):
    """The effect of another value of an option: none, on the last bits of results, or on results."""

    NO_EFFECT = "nothing"
    LAST_BITS = "last bits"  # sums in another order: results to rounding, until a choice flips
    RESULTS = "results"


class RunIdentity(enum.Enum):
    """How a run with another value of an option relates to this run: the same run, which can be resumed, or another."""

    OTHER_RUN_BY_HASH = "another run"  # by the hash in the folder's name
    OTHER_RUN_BY_SEED = "another run, by the seed in the folder's name"
    SAME_RUN_WITH_FORCE = "the same run, which can be resumed with resume=force only"
    SAME_RUN = "the same run"


@dataclass(frozen=True)
class OptionRole:
    """The role of an option in a run: the effect of another value, and whether it identifies the run.

    Attributes:
        effect: what another value changes.
        identity: whether a run with another value is the same run.
        is_tracked: whether the option is a parameter in MLflow, which `fedcohort compare` reads. The table at the start
            of a run shows the option where it differs from its default.
    """

    effect: OptionEffect
    identity: RunIdentity
    is_tracked: bool = False


COMPONENT_OPTION_ROLE = OptionRole(OptionEffect.RESULTS, RunIdentity.OTHER_RUN_BY_HASH, is_tracked=True)
_OPTIONS_OF_RESULTS = (
    *("data_seed", "clients", "cohort", "deadline.window_s", "split", "update_limit"),
    *("device.watts", "device.joules_per_byte"),
    *("eval.every", "eval.clients_every", "eval.clients_sample", "eval.average", "eval.average_decay"),
)
_OPTIONS_OF_EXECUTION = ("engine.slices", "checkpoint", "client_store")
_OPTIONS_OF_OUTPUT = (
    "eval.update_every",  # a metric that no result depends on
    "callback",  # a callback that ended the run early must be there again: `claim.RunRequest`
    "requires",  # the options that an alias stands for are in the nodes of their groups
    *("engine.force", "logger", "name", "objective_metric", "paths", "resume", "sweep"),
)
ROLE_BY_OPTION: Mapping[str, OptionRole] = {
    "seed": OptionRole(OptionEffect.RESULTS, RunIdentity.OTHER_RUN_BY_SEED, is_tracked=True),
    "rounds": OptionRole(OptionEffect.RESULTS, RunIdentity.SAME_RUN, is_tracked=True),  # a larger number extends a run
    "until": OptionRole(OptionEffect.RESULTS, RunIdentity.SAME_RUN, is_tracked=True),  # and so does a larger budget
    "trainer": OptionRole(OptionEffect.LAST_BITS, RunIdentity.SAME_RUN_WITH_FORCE, is_tracked=True),
    **dict.fromkeys(
        _OPTIONS_OF_RESULTS, OptionRole(OptionEffect.RESULTS, RunIdentity.OTHER_RUN_BY_HASH, is_tracked=True)
    ),
    # other values give the same result in another way
    **dict.fromkeys(_OPTIONS_OF_EXECUTION, OptionRole(OptionEffect.NO_EFFECT, RunIdentity.SAME_RUN, is_tracked=True)),
    # where files are written, and which observers there are
    **dict.fromkeys(_OPTIONS_OF_OUTPUT, OptionRole(OptionEffect.NO_EFFECT, RunIdentity.SAME_RUN)),
}

# Groups and options that were added later. With this choice or value the config hash is the one of earlier versions.
NEUTRAL_CHOICE_BY_LATER_GROUP: Mapping[str, str] = {"augmentation": "none", "signal_noise": "none"}
NEUTRAL_VALUE_BY_LATER_OPTION: Mapping[str, object] = {
    "availability.class_share": 0,
    "dataset.columns": None,
    "dataset.categories": [],
    "dataset.dates": [],
    "dataset.decimal": "auto",
    "dataset.series": None,
    "dataset.window": None,
    "dataset.min_client_samples": None,
    "dataset.pool_small": False,
    "deadline.late_updates": "drop",
    "deadline.max_staleness": None,
    "deadline.staleness": "polynomial",
    "deadline.staleness_exponent": 0.5,
    "deadline.hinge_slope": 10.0,
    "deadline.hinge_start": 4,
    "deadline.wait_for_stale": None,
    "device.class_share": 0,
    "device.watts": None,
    "device.joules_per_byte": 0,
    "eval.average": "none",
    "eval.average_decay": 0.9,
    "selector.bar_outliers": False,
    "selector.outlier_credits": 5,
    "selector.outlier_distance": 0.5,
    "selector.outlier_versions": 5,
}


def role_keys_of_option(option: str) -> list[str]:
    """Return the keys of `ROLE_BY_OPTION` that are the dotted `option` or a node above it; [] without a key."""
    return [role_key for role_key in ROLE_BY_OPTION if option == role_key or option.startswith(f"{role_key}.")]


@cache
def find_role(option: str) -> OptionRole:
    """Return what a change of `option` (a dotted name) affects, and whether the run still counts as the same run."""
    return next((ROLE_BY_OPTION[option_node] for option_node in role_keys_of_option(option)), COMPONENT_OPTION_ROLE)


def flatten_config(config: Mapping[str, Any], name_prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of every option in `config`; an empty node counts as a value.

    `name_prefix`, which ends with a dot unless empty, precedes all names.
    """
    for node_name, node_value in config.items():
        if isinstance(node_value, Mapping) and node_value:
            yield from flatten_config(node_value, f"{name_prefix}{node_name}.")
        else:
            yield f"{name_prefix}{node_name}", node_value


def select_options(config: Mapping[str, Any], *run_identities: RunIdentity) -> dict[str, Any]:
    """Return the values of the options in `config` whose `RunIdentity` is one of `run_identities`, by dotted name.

    Options that were added in a later version are left out if their value keeps the behaviour of earlier versions.
    """
    options = {k: v for k, v in flatten_config(config) if find_role(k).identity in run_identities}
    return {k: v for k, v in options.items() if not _has_earlier_behaviour(k, v)}


def _has_earlier_behaviour(option: str, value: object) -> bool:
    """Return whether `option` was added in a later version, and `value` keeps the behaviour of earlier ones."""
    if option in NEUTRAL_VALUE_BY_LATER_OPTION:
        return value == NEUTRAL_VALUE_BY_LATER_OPTION[option]
    config_group, _, option_in_group = option.partition(".")
    neutral_choice = NEUTRAL_CHOICE_BY_LATER_GROUP.get(config_group) if option_in_group == "_target_" else None
    return neutral_choice is not None and str(value).split(".")[-2:-1] == [neutral_choice]
