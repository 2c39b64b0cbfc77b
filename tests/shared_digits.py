"""Load the digits, on which most runs of tests train, once in a process for all runs with the same data options."""

import pickle
from collections.abc import Mapping
from functools import wraps
from typing import Any

from fedcohort.data.federation import Federation
from fedcohort.startup import load
from fedcohort.startup.compose import Composition

_load_federation = load.load_federation
_federations: dict[bytes, Federation] = {}


@wraps(_load_federation)
def load_federation(composition: Composition, components_by_group: Mapping[str, Any]) -> Federation:
    """Return a federation of digits from the cache, and load any other one."""
    config = composition.config
    nodes = [config[group] for group in load.DATA_GROUPS]
    options = [*nodes, config["clients"], config["split"], load.find_data_seed(config)]
    classes = [node["_target_"] for node in nodes]
    if classes[-1] != "fedcohort.dataset.digits.Digits" or not all(name.startswith("fedcohort.") for name in classes):
        return _load_federation(composition, components_by_group)
    key = pickle.dumps(options)
    if key not in _federations:
        _federations[key] = _load_federation(composition, components_by_group)
    return _federations[key]


def install() -> None:
    """Replace the function of fedcohort."""
    vars(load)["load_federation"] = load_federation
