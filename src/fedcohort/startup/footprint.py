"""Lower bounds of the memory that a run takes: a run that cannot fit is rejected before it trains, with the numbers.

Only the rejection depends on the available memory. Chunk sizes, engines and stores do not.
"""

from typing import TYPE_CHECKING

from fedcohort.errors import FedcohortError
from fedcohort.host import memory

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation
    from fedcohort.model.base import Model
    from fedcohort.round.parts import Parts

MODEL_BYTES = 24  # of a parameter: weights and gradients of the global and the local model, and a sum in float64
UPDATE_BYTES = 8  # of a parameter of an update that is kept
LOGIT_BYTES = 8  # of a logit: float32, and its log-softmax
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


def check_rounds(parts: "Parts", federation: "Federation", n_params: int, cohort: int, *, keeps_updates: bool) -> None:
    """Raise `OptionError` where what a round holds at the same time needs more memory than is available.

    Args:
        parts: of the run.
        federation: the data, which are in memory already.
        n_params: of the model.
        cohort: clients of a round.
        keeps_updates: whether the updates of a round are kept one by one.
    """
    K, clients = federation.n_clients, min(cohort, federation.n_clients)
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
    }
    total, (largest, (size, cure)) = sum(size for size, _ in needs.values()), max(needs.items(), key=lambda e: e[1][0])
    memory.require(total, f"this run (of which {largest}: {size / 1e9:.1f} GB)", cure)
