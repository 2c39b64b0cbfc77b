"""Undocumented functions of Hydra that this package uses, with the version in which they were found."""

from typing import Any

from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.plugin import Plugin

from fedcohort.errors import LibraryMismatch

HYDRA_VERSION = "1.3.8"


def list_job_overrides(overrides: list[Override]) -> list[list[str]]:
    """Return the overrides of each job of a sweep over all combinations of the values in `overrides`.

    Uses `hydra._internal.core_plugins.basic_sweeper.BasicSweeper.split_arguments` (Hydra 1.3.8). Raises
    `LibraryMismatch` with a version of Hydra that lacks this method.
    """
    try:
        from hydra._internal.core_plugins.basic_sweeper import BasicSweeper  # noqa: PLC0415  or no run would start

        split_into_jobs = BasicSweeper.split_arguments
    except (ImportError, AttributeError) as error:
        raise LibraryMismatch(
            "hydra-core", "BasicSweeper.split_arguments", "lists the jobs of a sweep", HYDRA_VERSION
        ) from error
    return split_into_jobs(overrides, None)[0]


def make_empty_callbacks() -> Any:  # noqa: ANN401 - a private class
    """Return callbacks of Hydra that do nothing.

    Uses `hydra._internal.callbacks.Callbacks` (Hydra 1.3.8); raises `LibraryMismatch` with a version that lacks it.
    """
    try:
        from hydra._internal.callbacks import Callbacks  # noqa: PLC0415  or no run would start
    except ImportError as error:
        raise LibraryMismatch("hydra-core", "Callbacks", "starts jobs by a launcher", HYDRA_VERSION) from error
    return Callbacks()


def register_plugin(plugin_name: str, plugin_class: type[Plugin]) -> None:
    """Register a plugin of Hydra: Hydra rejects a `_target_` that is not below `hydra_plugins`, unless registered.

    Args:
        plugin_name: dotted name of the class, as `_target_` has it.
        plugin_class: the class.

    Uses `Plugins.class_name_to_class` (Hydra 1.3.8); raises `LibraryMismatch` with a version that lacks it.
    """
    try:
        Plugins.instance().class_name_to_class[plugin_name] = plugin_class
    except AttributeError as error:
        raise LibraryMismatch(
            "hydra-core", "Plugins.class_name_to_class", "knows our plugins", HYDRA_VERSION
        ) from error


def speed_up_group_listing() -> None:
    """Let `--help` list the choices of the groups without a copy of all configs for each, which takes 2 s in all.

    Replaces `ConfigLoaderImpl.get_group_options` of Hydra 1.3.8 for calls that name no config. A version of Hydra
    without this method stays as it is.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl  # noqa: PLC0415  or no run would start

    hydra_list_choices: Any = getattr(ConfigLoaderImpl, "get_group_options", None)

    def list_choices(loader: Any, group_name: str, results_filter: Any = ObjectType.CONFIG, *config_args: Any) -> Any:  # noqa: ANN401
        if any(config_args):  # a config is named, or overrides
            return hydra_list_choices(loader, group_name, results_filter, *config_args)
        return loader.repository.get_group_options(group_name, results_filter)

    if hydra_list_choices is not None:
        setattr(ConfigLoaderImpl, "get_group_options", list_choices)  # noqa: B010 - mypy rejects the assignment
