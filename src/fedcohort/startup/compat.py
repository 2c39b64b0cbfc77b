"""What this package uses of Hydra and joblib that they don't document, as it was in these versions."""

from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.plugin import Plugin

from fedcohort.errors import ForeignChange

HYDRA = "1.3.8"
JOBLIB = "1.6.0"


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


def start_workers_by(method: str) -> None:
    """Let joblib's processes start by `method`, one of multiprocessing's.

    Rests on `joblib.externals.loky.backend.context.set_start_method` (joblib 1.6.0).
    """
    try:
        from joblib.externals.loky.backend.context import set_start_method  # noqa: PLC0415  an extra brings it
    except ImportError as error:
        raise ForeignChange("joblib", "loky's set_start_method", "starts the jobs of a sweep", JOBLIB) from error
    set_start_method(method, force=True)


def register(name: str, plugin: type[Plugin]) -> None:
    """Let a config name a plugin of ours: Hydra makes none whose `_target_` isn't below `hydra_plugins`.

    Rests on `Plugins.class_name_to_class` (hydra/core/plugins.py, Hydra 1.3.8).
    """
    try:
        Plugins.instance().class_name_to_class[name] = plugin
    except AttributeError as error:
        raise ForeignChange("hydra-core", "Plugins.class_name_to_class", "knows the sweeper", HYDRA) from error
