"""Step 3 of a run: load the data and split them among the clients. `fedcohort data` shows the result."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedcohort.host import memory
from fedcohort.startup.compose import Composed

if TYPE_CHECKING:
    from fedcohort.component import Facts
    from fedcohort.data.federation import Federation
    from fedcohort.dataset.base import Raw
    from fedcohort.round.parts import Parts

PARTS = ("partition", "label_noise", "feature_noise", "dataset")  # groups that decide about the data


def data_seed(config: Mapping[str, Any]) -> int:
    """Return the seed of all draws that are about data."""
    return int(config["seed"] if config["data_seed"] is None else config["data_seed"])


def deal(composition: Composed, objects: Mapping[str, Any]) -> "Federation":
    """Load the data and split them. objects: the components of PARTS at least. Raises `OptionError` or `DataError`."""
    from fedcohort.dataset.base import check
    from fedcohort.startup.requirements import check_targets
    from fedcohort.startup.split import build

    config = composition.config
    seed = data_seed(config)

    def read() -> "Raw":
        raw: Raw = check(objects["dataset"].load(seed))
        memory.give_back()
        check_targets({group: objects[group] for group in PARTS}, composition.choices, raw)
        return raw

    return build(
        read(),  # no other reference is kept: `build` frees what it has used
        objects["partition"],
        objects["label_noise"],
        seed=seed,
        clients=config["clients"],
        server_val=config["split"]["server_val"],
        client_val=config["split"]["client_val"],
        limit=config["split"]["limit"],
        feature_noise=objects["feature_noise"],
    )


def load(composition: Composed, objects: Mapping[str, Any], parts: "Parts") -> "Facts":
    """Load the data of a run, and check that they suffice for its components.

    Args:
        composition: of the run.
        objects: the components of PARTS at least.
        parts: the components that take part in rounds.

    Returns:
        What is known of the run, its federation among it.

    Raises:
        FedcohortError: where data and components don't go together.
    """
    from fedcohort.component import Facts
    from fedcohort.rng import Draws
    from fedcohort.round.sampling import foresee
    from fedcohort.startup import requirements

    federation = deal(composition, objects)
    client = int(federation.n_train.argmax())
    samples = int(federation.n_train[client])
    if parts.samples.foreseen:
        rows = foresee(parts.samples, client, samples, Draws(0, federation.n_clients))
        samples = samples if rows is None else len(rows)
    facts = Facts(parts, composition.config, federation, samples)
    requirements.check_population(composition.choices, facts)
    proxy = parts.proxy.inputs(federation, data_seed(composition.config))
    return replace(facts, federation=replace(federation, proxy=proxy))
