"""The costs of a run: bytes that are transmitted, FLOPs of clients and server, virtual seconds.

A forward pass counts a third of the FLOPs of a training step. A client receives the model once a round, for all probes
and the training together. A query that both selector and aggregator make is answered and charged once.
"""

import operator
from dataclasses import dataclass

BYTES_PER_NUMBER = 4  # bytes of one transmitted float
COST_METRICS = (  # of the fields of `Charge`, in their order
    *("comm/down_bytes", "comm/up_bytes", "comm/probe_bytes", "comp/client_flops", "comp/server_flops"),
    "time/virtual_s",
)


@dataclass(frozen=True)
class Charge:
    """The cost of a round, or the sum over several rounds.

    Attributes:
        down_bytes, up_bytes: bytes that the server sends, and bytes that it receives.
        probe_bytes: number of these bytes that queries cause.
        client_flops: floating-point operations of all clients.
        server_flops: floating-point operations of the networks that an aggregator trains or evaluates
            (`agg.base.ServerModels`), and of the evaluations of combined updates that a selector reads
            (`signal/server_loss.py`, `signal/server_accuracy.py`). Evaluations for metrics and the other computations
            of a selector are not included.
        virtual_s: seconds of the simulated clock. The server's work takes no simulated time.
    """

    down_bytes: float = 0.0
    up_bytes: float = 0.0
    probe_bytes: float = 0.0
    client_flops: float = 0.0
    server_flops: float = 0.0
    virtual_s: float = 0.0

    def __add__(self, other_charge: "Charge") -> "Charge":
        return Charge(*map(operator.add, vars(self).values(), vars(other_charge).values()))

    def metrics(self) -> dict[str, float]:
        """Return bytes, FLOPs and virtual seconds by the name of their metric."""
        return dict(zip(COST_METRICS, vars(self).values(), strict=True))
