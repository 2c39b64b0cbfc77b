"""Step 4 of a run: build the network and the loop that trains it, if they fit into memory.

Lower bounds of the memory are computed first, and a run that cannot fit is rejected before it trains. Only the
rejection depends on the available memory. Chunk sizes, engines and stores do not.
"""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import memory
from fedcohort.record import folder
from fedcohort.rng import seeded_torch
from fedcohort.round.guard import format_option_name, prefix_errors_with_method
from fedcohort.startup.compose import Composition

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.component import Facts
    from fedcohort.data.federation import Federation
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.model.base import Model

log = logging.getLogger("fedcohort")
MODEL_BYTES_PER_PARAM = 24  # weights and gradients of the global and the local model, and a sum in float64
UPDATE_BYTES_PER_PARAM = 8  # of an update that is kept
BYTES_PER_LOGIT = 8  # float32, and its log-softmax
BYTES_PER_STORED_NUMBER = 4  # that a client stores between rounds
EVALUATION_BATCH_SIZE = 256  # samples that are evaluated in one batch, at least


def build_network(composition: Composition, model: "Model", federation: "Federation") -> "nn.Module":
    """Build the network, with initial weights drawn from the run's seed.

    Args:
        composition: the composed config.
        model: the component that builds the network.
        federation: data of the run, whose shapes the network gets.

    Raises:
        FedcohortError: the network does not fit the data or the memory.
    """
    from fedcohort.startup import requirements
    from fedcohort.training import memory_layout

    config, model_choice = composition.config, composition.choices["model"]
    sample_shape, n_classes = tuple(federation.server_test.x.shape[1:]), federation.n_classes
    requirements.check_model(model, model_choice, federation)
    try:
        with seeded_torch(config["seed"], "weights"):
            check_network_memory(model, model_choice, sample_shape, n_classes)
        with seeded_torch(config["seed"], "weights"):
            network: nn.Module = model.build(sample_shape, n_classes)
    except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError where an allocation fails
        if "alloc" not in str(error):
            raise
        raise OptionError(f"model={model_choice}: not enough memory for the network: choose a smaller one") from error
    if federation.scale is not None:
        federation.scale.attach_to_network(network)
    memory_layout.check_channels_last(config["engine"]["channels_last"], network, config["trainer"]["accelerator"])
    requirements.check_batch_norm(network, config["client"]["batch"], federation)
    return network


def check_forward_pass(composition: Composition, model: "Model", network: "nn.Module", facts: "Facts") -> None:
    """Run two samples through network and objective, so that an error in them is raised before training.

    Args:
        composition: the composed config.
        model: the component that built the network.
        network: the network.
        facts: the run's components and federation.

    Raises:
        ComponentError: the network or the objective fails; the message names it.
    """
    from fedcohort.training.probe import check_network_outputs, check_objective_results

    federation, objective = facts.federation, facts.components.objective
    blamed_module = next((m for m in network.modules() if not type(m).__module__.startswith("torch.")), model)
    input_shape = [2, *federation.server_test.x.shape[1:]]
    forward_pass_text = (
        f"{format_option_name(blamed_module, composition.format_choice('model'))}: forward of inputs {input_shape}"
    )
    with prefix_errors_with_method(forward_pass_text, type(blamed_module).__module__):
        logits = check_network_outputs(network, federation)
    objective_name = format_option_name(objective, composition.format_choice("objective"))
    with prefix_errors_with_method(objective_name, type(objective).__module__):
        check_objective_results(objective, logits, federation)


def build_loop(composition: Composition, facts: "Facts", network: "nn.Module") -> "FederatedLoop":
    """Log the notices of a run and build its loop. This imports Lightning.

    Args:
        composition: the composed config.
        facts: the run's components and federation.
        network: the network to train.

    Raises:
        OptionError: a round on a CPU needs more memory than is available.
    """
    from fedcohort.flat import Layout, has_batch_statistics
    from fedcohort.host import processes
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.round.round_signals import requires_update_matrix
    from fedcohort.round.settings import Settings
    from fedcohort.startup import notices

    config, components, federation = composition.config, facts.components, facts.federation
    facts = replace(facts, layout=Layout.from_network(network), batch_norm=has_batch_statistics(network))
    if config["trainer"]["accelerator"] == "cpu":
        check_round_memory(facts, keeps_updates=requires_update_matrix(components))
    for notice in (
        *notices.list_notices(composition.choices, facts, composition.overrides),
        *federation.notices(),
        *processes.untested_hardware_notices(**processes.read_process_options(config)),
        *notices.list_evaluation_notices(config),
    ):
        log.warning("%s", notice)
    round_settings = Settings.from_config(config, f"{folder.config_hash(config)}-s{config['seed']}")
    return FederatedLoop(components, round_settings, federation)


def check_network_memory(model: "Model", model_choice: str, sample_shape: tuple[int, ...], n_classes: int) -> None:
    """Raise `OptionError` if the network's parameters need more memory than is available.

    The network is built without storage. A network that can't be built in this way is not checked.

    Args:
        model: the component that builds the network.
        model_choice: the choice of `model`, for the message.
        sample_shape: shape of a sample.
        n_classes: number of classes.
    """
    import torch

    try:
        with torch.device("meta"):
            network = model.build(sample_shape, n_classes)
        n_params = sum(parameter.numel() for parameter in network.parameters())
    except FedcohortError:
        raise
    except Exception:  # the actual build and the probe report errors of the model; lazy layers have no shape yet
        return
    network_description = f"model={model_choice} with {n_params:,} parameters for {n_classes:,} classes"
    memory_advice = "choose a smaller model (model.width), or reduce dataset.n_classes"
    memory.require_memory(MODEL_BYTES_PER_PARAM * n_params, network_description, memory_advice)


def check_round_memory(facts: "Facts", *, keeps_updates: bool) -> None:
    """Raise `OptionError` if a round needs more memory than is available.

    Args:
        facts: the run's components, federation and model layout. The federation is already in memory.
        keeps_updates: whether all updates of a round are in memory at once.
    """
    federation, n_params, n_classes = facts.federation, facts.layout.n_params, facts.federation.n_classes
    K = federation.n_clients
    cohort_size = min(facts.config["cohort"], K)
    n_samples = min(EVALUATION_BATCH_SIZE, len(federation.server_test.y))
    update_bytes = UPDATE_BYTES_PER_PARAM * n_params * cohort_size if keeps_updates else 0
    selector_bytes = facts.components.selector.memory_bytes(K, n_params)
    client_store_advice = "set client_store.limit_gb=0, which stores them in files"
    memory_needs: list[tuple[float, str, str]] = [
        (MODEL_BYTES_PER_PARAM * n_params, "the model", "choose a smaller model"),
        (update_bytes, f"the updates of {cohort_size:,} clients", "reduce cohort, or choose a smaller model"),
        (BYTES_PER_LOGIT * n_samples * n_classes, f"the logits of {n_classes:,} classes", "reduce dataset.n_classes"),
        (selector_bytes, f"the selector's matrices of {K:,} clients and {n_params:,} parameters", "reduce clients"),
        (_measure_client_store(facts), f"the stored vectors of {K:,} clients", client_store_advice),
    ]
    largest_bytes, largest_memory_need, memory_advice = max(memory_needs, key=lambda memory_need: memory_need[0])
    total_bytes = sum(n_bytes for n_bytes, _, _ in memory_needs)
    run_description = f"this run (of which {largest_memory_need}: {largest_bytes / 1e9:.1f} GB)"
    memory.require_memory(total_bytes, run_description, memory_advice)


def _measure_client_store(facts: "Facts") -> float:
    """Return the bytes of the vectors that clients store between rounds, once every client has been selected.

    The result is 0 if the run has too few rounds to select every client. It is also 0 if the vectors exceed
    `client_store.limit_gb` and are therefore stored in files. `facts` has components and federation.
    """
    config, K = facts.config, facts.federation.n_clients
    n_numbers = sum(facts.components.vector_lengths(False, facts.layout, int(facts.federation.n_train.max())).values())
    n_bytes = float(BYTES_PER_STORED_NUMBER * K * n_numbers)
    exceeds_store_limit = n_bytes > 1e9 * config["client_store"]["limit_gb"]
    return 0.0 if exceeds_store_limit or config["rounds"] * config["cohort"] < K else n_bytes
