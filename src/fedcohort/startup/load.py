"""Load the data of a run and split them among the clients, its third step; `fedcohort data` shows the result."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedcohort.component import Facts
from fedcohort.dataset.base import Raw, check_raw_data
from fedcohort.host import memory
from fedcohort.startup.compose import Composition

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation
    from fedcohort.round.components import Components

DATA_GROUPS = ("partition", "label_noise", "feature_noise", "dataset")  # groups that determine the data


def find_data_seed(config: Mapping[str, Any]) -> int:
    """Return the seed of all random draws about the data: `data_seed` in `config`, or else the seed of the run."""
    return int(config["seed"] if config["data_seed"] is None else config["data_seed"])


def load_federation(composition: Composition, components_by_group: Mapping[str, Any]) -> "Federation":
    """Load the data and split them among the clients.

    Args:
        composition: the composed config.
        components_by_group: the components of DATA_GROUPS at least, by group.

    Raises:
        FedcohortError: the data are missing, malformed or too small for the options.
    """
    from fedcohort.startup.assign import SplitOptions
    from fedcohort.startup.requirements import check_target_kind
    from fedcohort.startup.split import build_federation

    config = composition.config
    data_seed = find_data_seed(config)

    def read_dataset() -> Raw:
        raw = check_raw_data(components_by_group["dataset"].load(data_seed))
        memory.return_memory_to_system()
        check_target_kind({group: components_by_group[group] for group in DATA_GROUPS}, composition.choices, raw)
        return raw

    data_components = {group: components_by_group[group] for group in DATA_GROUPS if group != "dataset"}
    split_options = SplitOptions(**data_components, seed=data_seed, clients=config["clients"], **config["split"])
    # No other reference to the data is kept, so that `build_federation` can free them
    return build_federation(read_dataset(), split_options)


def load_run_facts(composition: Composition, components_by_group: Mapping[str, Any], components: "Components") -> Facts:
    """Load the data of a run, and check that they meet the requirements of its components.

    Args:
        composition: the composed config.
        components_by_group: the components of DATA_GROUPS at least, by group.
        components: the components that take part in rounds.

    Returns:
        The facts of the run, including its federation.

    Raises:
        FedcohortError: the data do not suffice for the components.
    """
    from fedcohort.round.sampling import predict_chosen_samples
    from fedcohort.startup import requirements

    federation = load_federation(composition, components_by_group)
    largest_client = int(federation.n_train.argmax())
    max_n_train = int(federation.n_train[largest_client])
    if components.samples.is_foreseeable:
        sample_rows = predict_chosen_samples(components.samples, largest_client, max_n_train, federation.draws(0))
        max_n_train = max_n_train if sample_rows is None else len(sample_rows)
    facts = Facts(components, composition.config, federation, max_n_train)
    requirements.check_population(composition.choices, facts)
    proxy_inputs = components.proxy.inputs(federation, find_data_seed(composition.config))
    return replace(facts, federation=replace(federation, proxy=proxy_inputs))
