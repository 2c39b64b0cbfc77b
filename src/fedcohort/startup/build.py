"""Step 4 of a run: build the network and the loop that trains it."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from fedcohort.errors import OptionError
from fedcohort.record import folder
from fedcohort.rng import torch_scope
from fedcohort.round.guard import name_component_in_errors, name_of
from fedcohort.startup.compose import Composed

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.component import Facts
    from fedcohort.data.federation import Federation
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.model.base import Model

log = logging.getLogger("fedcohort")


def build_network(composition: Composed, model: "Model", federation: "Federation") -> "nn.Module":
    """Build the network, with initial weights drawn from the run's seed.

    Raises:
        FedcohortError: if it does not fit the data or the memory.
    """
    from fedcohort.startup import footprint, requirements
    from fedcohort.training import memory_layout

    config, choice = composition.config, composition.choices["model"]
    shape, n_classes = tuple(federation.server_test.x.shape[1:]), federation.n_classes
    requirements.check_model(model, choice, federation)
    try:
        with torch_scope(config["seed"], "weights"):
            footprint.check_network(model, choice, shape, n_classes)
        with torch_scope(config["seed"], "weights"):
            network: nn.Module = model.build(shape, n_classes)
    except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError where an allocation fails
        if "alloc" not in str(error):
            raise
        raise OptionError(f"model={choice}: not enough memory for a network of this size") from error
    if federation.scale is not None:
        federation.scale.attach(network)
    memory_layout.check(config["engine"]["channels_last"], network, config["trainer"]["accelerator"])
    requirements.check_batches(network, config["client"]["batch"], federation)
    return network


def probe(composition: Composed, model: "Model", network: "nn.Module", facts: "Facts") -> None:
    """Run two samples through network and objective. Raises `ComponentError` that names the faulty component.

    facts: including the federation.
    """
    from fedcohort.training.probe import probe_network, probe_objective

    federation, objective = facts.federation, facts.components.objective
    own_classes = [module for module in network.modules() if not type(module).__module__.startswith("torch.")]
    code = own_classes[0] if own_classes else model
    shape = [2, *federation.server_test.x.shape[1:]]
    where = f"{name_of(code, composition.option('model'))}: forward of inputs {shape}"
    with name_component_in_errors(where, type(code).__module__):
        logits = probe_network(network, federation)
    with name_component_in_errors(name_of(objective, composition.option("objective")), type(objective).__module__):
        probe_objective(objective, logits, federation)


def build_loop(composition: Composed, facts: "Facts", network: "nn.Module") -> "FederatedLoop":
    """Log the notices of a run and build its loop. This imports Lightning.

    Args:
        composition: the composed config.
        facts: including the federation.
        network: the network to train.

    Raises:
        OptionError: if a round needs more memory than is available.
    """
    from fedcohort.flat import Layout, keeps_statistics
    from fedcohort.host import processes
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.round.readings import keeps_updates
    from fedcohort.round.settings import Settings
    from fedcohort.startup import footprint, notices

    config, components, federation = composition.config, facts.components, facts.federation
    accelerator = config["trainer"]["accelerator"]
    facts = replace(facts, layout=Layout.of(network), batch_norm=keeps_statistics(network))
    if accelerator == "cpu":
        footprint.check_rounds(facts, keeps_updates=keeps_updates(components))
    for line in (
        *notices.list_notices(composition.choices, facts, composition.overrides),
        *federation.notices(),
        *processes.list_untried(accelerator, config["trainer"]["num_nodes"]),
        *notices.list_unmeasured(config),
    ):
        log.warning("%s", line)
    settings = Settings.from_config(config, f"{folder.config_hash(config)}-s{config['seed']}")
    return FederatedLoop(components, settings, federation)
