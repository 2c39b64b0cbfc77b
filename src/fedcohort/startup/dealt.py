"""The data of a composed config, dealt to its clients: what a run starts with, and what `fedcohort data` shows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedcohort.host import memory
from fedcohort.startup.assemble import Composed

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation
    from fedcohort.dataset.base import Raw

PARTS = ("partition", "label_noise", "feature_noise", "dataset")


def data_seed(config: Mapping[str, Any]) -> int:
    """The seed of all draws that are about data."""
    return int(config["seed"] if config["data_seed"] is None else config["data_seed"])


def deal(composition: Composed, objects: Mapping[str, Any]) -> "Federation":
    """Load the data and deal them. objects: of PARTS at least. Raises `OptionError` or `DataError`."""
    from fedcohort.startup.split import build  # noqa: PLC0415 - imports torch

    config = composition.config
    seed = data_seed(config)
    return build(
        _load(composition, objects, seed),  # of which nobody but `build` holds anything: it lets go of what it has used
        objects["partition"],
        objects["label_noise"],
        seed=seed,
        clients=config["clients"],
        server_val=config["split"]["server_val"],
        client_val=config["split"]["client_val"],
        limit=config["split"]["limit"],
        feature_noise=objects["feature_noise"],
    )


def _load(composition: Composed, objects: Mapping[str, Any], seed: int) -> "Raw":
    from fedcohort.dataset.base import check  # noqa: PLC0415
    from fedcohort.startup import compatible  # noqa: PLC0415

    raw: Raw = check(objects["dataset"].load(seed))
    memory.give_back()
    compatible.check_targets({group: objects[group] for group in PARTS}, composition.choices, raw)
    return raw
