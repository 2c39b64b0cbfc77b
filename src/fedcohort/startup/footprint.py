"""Lower bounds of the memory that a run takes: a run that cannot fit is rejected before it trains, with the numbers.

Only the rejection depends on the available memory. Chunk sizes, engines and stores do not.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedcohort.errors import FedcohortError
from fedcohort.host import memory

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation
    from fedcohort.flat import Layout
    from fedcohort.model.base import Model
    from fedcohort.round.parts import Parts

MODEL_BYTES = 24  # of a parameter: weights and gradients of the global and the local model, and a sum in float64
UPDATE_BYTES = 8  # of a parameter of an update that is kept
LOGIT_BYTES = 8  # of a logit: float32, and its log-softmax
STORED_BYTES = 4  # of a number that a client keeps between rounds
TOGETHER = 256  # samples that are evaluated at once, at least


def check_network(model: "Model", word: str, shape: tuple[int, ...], n_classes: int) -> None:
    """Raise `OptionError` where the network's parameters need more memory than is available.

    The network is built without storage. One that cannot be built in this way is not checked.
    """
    import torch  # noqa: PLC0415 - imports torch

    try:
        with torch.device("meta"):
            network = model.build(shape, n_classes)
        n_params = sum(parameter.numel() for parameter in network.parameters())
    except FedcohortError:
        raise
    except Exception:  # the real build and the probe report what is wrong with the model, such as a lazy layer
        return
    what = f"model={word} with {n_params:,} parameters for {n_classes:,} classes"
    memory.require(MODEL_BYTES * n_params, what, "choose a smaller model (model.width), or reduce dataset.n_classes")


def check_rounds(
    parts: "Parts", federation: "Federation", layout: "Layout", config: Mapping[str, Any], *, keeps_updates: bool
) -> None:
    """Raise `OptionError` where what a round holds at the same time needs more memory than is available.

    Args:
        parts: of the run.
        federation: the data, which are in memory already.
        layout: of the model.
        config: the composed config.
        keeps_updates: whether the updates of a round are kept one by one.
    """
    K, clients = federation.n_clients, min(config["cohort"], federation.n_clients)
    n_params = layout.n_params
    samples = min(TOGETHER, len(federation.server_test.y))
    needs = {
        "the model": (MODEL_BYTES * n_params, "choose a smaller model"),
        f"the updates of {clients:,} clients": (
            UPDATE_BYTES * n_params * clients if keeps_updates else 0,
            "reduce cohort, or choose a smaller model",
        ),
        f"the logits of {federation.n_classes:,} classes": (
            LOGIT_BYTES * samples * federation.n_classes,
            "reduce dataset.n_classes",
        ),
        f"the selector's matrices of {K:,} clients": (parts.selector.memory_bytes(K), "reduce clients"),
        f"what {K:,} clients keep between rounds": (
            _measure_store(parts, federation, layout, config),
            "set client_store.limit_gb=0, which keeps it in files",
        ),
    }
    total, (largest, (size, cure)) = sum(size for size, _ in needs.values()), max(needs.items(), key=lambda e: e[1][0])
    memory.require(total, f"this run (of which {largest}: {size / 1e9:.1f} GB)", cure)


def _measure_store(parts: "Parts", federation: "Federation", layout: "Layout", config: Mapping[str, Any]) -> float:
    """Return the bytes of the clients' store once each client has been selected; 0 where that may not happen.

    A store above `client_store.limit_gb` lies in files.
    """
    K = federation.n_clients
    numbers = sum(parts.remembers(False, layout, int(federation.n_train.max())).values())
    needed = float(STORED_BYTES * K * numbers)
    in_files = needed > 1e9 * config["client_store"]["limit_gb"]
    return 0.0 if in_files or config["rounds"] * config["cohort"] < K else needed
