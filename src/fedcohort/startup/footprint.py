"""Lower bounds of the memory of a run. A run that cannot fit is rejected before it trains.

Only the rejection depends on the available memory. Chunk sizes, engines and stores do not.
"""

from typing import TYPE_CHECKING

from fedcohort.errors import FedcohortError
from fedcohort.host import memory

if TYPE_CHECKING:
    from fedcohort.component import Facts
    from fedcohort.model.base import Model

MODEL_BYTES = 24  # per parameter: weights and gradients of the global and the local model, and a sum in float64
UPDATE_BYTES = 8  # per parameter of an update that is kept
LOGIT_BYTES = 8  # per logit: float32, and its log-softmax
STORED_BYTES = 4  # per number that a client stores between rounds
MIN_EVALUATED = 256  # samples that are evaluated in one batch, at least


def check_network(model: "Model", choice: str, shape: tuple[int, ...], n_classes: int) -> None:
    """Raise `OptionError` if the network's parameters need more memory than is available.

    The network is built without storage. A network that can't be built in this way is not checked.
    """
    import torch  # noqa: PLC0415 - imports torch

    try:
        with torch.device("meta"):
            network = model.build(shape, n_classes)
        n_params = sum(parameter.numel() for parameter in network.parameters())
    except FedcohortError:
        raise
    except Exception:  # the actual build and the probe report errors of the model; lazy layers have no shape yet
        return
    what = f"model={choice} with {n_params:,} parameters for {n_classes:,} classes"
    memory.require_memory(
        MODEL_BYTES * n_params, what, "choose a smaller model (model.width), or reduce dataset.n_classes"
    )


def check_rounds(facts: "Facts", *, keeps_updates: bool) -> None:
    """Raise `OptionError` if a round needs more memory than is available.

    Args:
        facts: including federation and layout. The federation is in memory already.
        keeps_updates: whether the updates of a round are kept one by one.
    """
    federation, n_params, n_classes = facts.federation, facts.layout.n_params, facts.federation.n_classes
    K = federation.n_clients
    cohort = min(facts.config["cohort"], K)
    samples = min(MIN_EVALUATED, len(federation.server_test.y))
    needs = {
        "the model": (MODEL_BYTES * n_params, "choose a smaller model"),
        f"the updates of {cohort:,} clients": (
            UPDATE_BYTES * n_params * cohort if keeps_updates else 0,
            "reduce cohort, or choose a smaller model",
        ),
        f"the logits of {n_classes:,} classes": (LOGIT_BYTES * samples * n_classes, "reduce dataset.n_classes"),
        f"the selector's matrices of {K:,} clients and {n_params:,} parameters": (
            facts.components.selector.memory_bytes(K, n_params),
            "reduce clients",
        ),
        f"the stored vectors of {K:,} clients": (
            _measure_store(facts),
            "set client_store.limit_gb=0, which stores them in files",
        ),
    }
    total = sum(size for size, _ in needs.values())
    largest, (size, cure) = max(needs.items(), key=lambda need: need[1][0])
    memory.require_memory(total, f"this run (of which {largest}: {size / 1e9:.1f} GB)", cure)


def _measure_store(facts: "Facts") -> float:
    """Return the bytes of the clients' store once every client has been selected.

    It is 0 if too few rounds are run for that, and above `client_store.limit_gb`, where the store is in files.
    """
    config, K = facts.config, facts.federation.n_clients
    numbers = sum(facts.components.remembers(False, facts.layout, int(facts.federation.n_train.max())).values())
    needed = float(STORED_BYTES * K * numbers)
    in_files = needed > 1e9 * config["client_store"]["limit_gb"]
    return 0.0 if in_files or config["rounds"] * config["cohort"] < K else needed
