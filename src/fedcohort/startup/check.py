"""Step 2 of a run: check all that can be checked before the data are read.

The first checks do not import torch, so that most mistakes are reported in half a second: the ranges of options, the
aliases, and the components in GROUPS_WITHOUT_TORCH. The other components follow, and the requirements of all.
"""

import inspect
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hydra.utils import get_method

from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.ranges import format_option_value
from fedcohort.startup import components, options
from fedcohort.startup.compose import Composition

if TYPE_CHECKING:
    from fedcohort.partition.base import Partition
    from fedcohort.round.components import Components

GROUPS_WITHOUT_TORCH = (  # groups whose classes import no torch
    *("selector", "client", "deadline", "samples", "device", "availability"),
    *("attack", "partition", "label_noise", "feature_noise", "augmentation", "signal_noise", "dataset", "model"),
)
GROUPS_WITH_TORCH = ("objective", "regulariser", "codec", "server", "agg", "proxy")


def check_before_data(composition: Composition) -> None:
    """Raise `FedcohortError` if the run of the config `composition` would be rejected. No data are read."""
    make_components(composition, make_light_components(composition))


def make_light_components(composition: Composition) -> dict[str, Any]:
    """Check the options, and return the components that do not need torch (GROUPS_WITHOUT_TORCH), by group.

    `composition` is the composed config. Raises `FedcohortError` for invalid options.
    """
    check_options(composition)
    components_by_group = {group: components.make_component(composition, group) for group in GROUPS_WITHOUT_TORCH}
    check_client_column(composition, components_by_group["partition"])
    return components_by_group


def make_components(composition: Composition, light_components: Mapping[str, Any]) -> "Components":
    """Return all components of a run after checking their requirements. This imports torch.

    Args:
        composition: the composed config.
        light_components: the components of the groups in GROUPS_WITHOUT_TORCH, by group.

    Raises:
        FedcohortError: components can't be combined.
    """
    torch_components = {group: components.make_component(composition, group) for group in GROUPS_WITH_TORCH}
    components_by_group = {**light_components, **torch_components}
    from fedcohort.component import Facts
    from fedcohort.host import processes
    from fedcohort.round.components import Components
    from fedcohort.startup import requirements

    run_components = Components(**{k: components_by_group[k] for k in Components.__dataclass_fields__})
    facts = Facts(run_components, composition.config)
    requirements.check_requirements(composition.choices, facts)
    requirements.check_clock_budgets(composition.choices, facts)
    processes.check_process_counts(**processes.read_process_options(composition.config))
    return run_components


def check_options(composition: Composition) -> None:
    """Check the names and ranges of all options that belong to no component, and the options that aliases set.

    An alias is a choice such as agg=fedavgm, which stands for options of other groups (`check_aliases`).

    Args:
        composition: the composed config.

    Raises:
        OptionError: for an unknown option, or a value outside its range.
        IncompatibleConfig: for an option that contradicts an alias.
    """
    config = composition.config
    config_groups = (*GROUPS_WITHOUT_TORCH, *GROUPS_WITH_TORCH)
    root_options = {*config_groups, "logger", "callback", "requires"}
    root_options |= {option_name.split(".")[0] for option_name in options.OPTION_CHECKS}
    if unknown_option := next((k for k in config if k not in root_options), None):
        raise options.make_unknown_option_error("", unknown_option, root_options)
    for group in (*config_groups, "engine", "trainer", "logger", "callback"):
        node, is_optional_group = config.get(group), group in ("logger", "callback")
        run_options = () if group in ("engine", "trainer") else options.list_node_options(group)
        if not isinstance(node, Mapping) or not (set(node).difference(run_options) or is_optional_group):
            raise OptionError(f"{group} must be one of the choices in configs/{group}, got nothing")
        if group not in composition.choices:
            raise OptionError(f"{group} must be one of the choices in configs/{group}, got several")
    is_requires_option_typed = any(override.lstrip("+~").startswith("requires") for override in composition.overrides)
    if is_requires_option_typed or not isinstance(config.get("requires"), Mapping):
        raise OptionError("requires is set by aliases such as agg=fedavgm: leave it out")
    options.check_all_options(config)
    check_aliases(composition)


def check_aliases(composition: Composition) -> None:
    """Raise `IncompatibleConfig` for an option that contradicts an alias, such as server=sgd with agg=fedavgm.

    An alias stands for choices of other groups (server: momentum) or for values of their options (client.steps: 1).

    Args:
        composition: the composed config, whose node `requires` has the choices and values of aliases.
    """
    for group, required_choices in composition.config["requires"].items():
        for name, required_value in required_choices.items():
            node, _, option_name = name.partition(".")
            actual_value = composition.config[node].get(option_name) if option_name else composition.choices.get(node)
            alias_text = f"{composition.format_choice(group)} stands for {name}={format_option_value(required_value)}"
            if actual_value != required_value:
                message_start = f"{alias_text}, but {name}={format_option_value(actual_value)} was requested"
                raise IncompatibleConfig(f"{message_start}: leave {name} out, or choose another {group}")
            accepted_options: Container[str] = (option_name,)
            with suppress(Exception):  # an invalid `_target_` is reported where the component is made
                accepted_options = inspect.signature(get_method(composition.config[node]["_target_"])).parameters
            if option_name and option_name not in accepted_options:
                raise IncompatibleConfig(
                    f"{alias_text}, but {composition.format_choice(node)} has no option {option_name}: choose another "
                    f"{group}, or another {node}"
                )


def check_client_column(composition: Composition, partition: "Partition") -> None:
    """Raise `IncompatibleConfig` if a column of the data names the clients, but the partition ignores this column.

    Args:
        composition: the composed config.
        partition: the partition of the run.
    """
    client_column = composition.config["dataset"].get("client")
    if client_column is not None and not partition.takes_owners:
        raise IncompatibleConfig(
            f"dataset.client={client_column} has no effect with {composition.format_choice('partition')}, which makes "
            "the clients: set heterogeneity=natural, or leave dataset.client out (and set "
            f"dataset.leave_out=[{client_column}] if the column must not be an input)"
        )
