"""What a run costs: bytes on the wire, FLOPs of clients and server, virtual seconds.

A forward pass counts a third of a training step in FLOPs. A client receives the model once a round,
however many probes it answers and whether or not it then trains: the later broadcast costs it nothing. A query that
selector and aggregator both make is answered and charged once, whether it blocks or is concurrent.
"""

from dataclasses import dataclass

NUMBER = 4  # bytes of one float on the wire


@dataclass(frozen=True)
class Charge:
    """The cost of a round, or of several.

    Attributes:
        down_bytes, up_bytes: everything on the wire.
        probe_bytes: the part due to probes.
        client_flops: of all clients together.
        server_flops: of the networks that an aggregator trains or asks (`agg.base.ServerModels`), not of evaluations,
            nor of what a selector tries out.
        virtual_s: seconds on the simulated clock, in which the server's work takes no time.
    """

    down_bytes: float = 0.0
    up_bytes: float = 0.0
    probe_bytes: float = 0.0
    client_flops: float = 0.0
    server_flops: float = 0.0
    virtual_s: float = 0.0

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(
            self.down_bytes + other.down_bytes,
            self.up_bytes + other.up_bytes,
            self.probe_bytes + other.probe_bytes,
            self.client_flops + other.client_flops,
            self.server_flops + other.server_flops,
            self.virtual_s + other.virtual_s,
        )

    def metrics(self) -> dict[str, float]:
        """The cumulative scalars of a report."""
        return {
            "comm/down_bytes": self.down_bytes,
            "comm/up_bytes": self.up_bytes,
            "comm/probe_bytes": self.probe_bytes,
            "comp/client_flops": self.client_flops,
            "comp/server_flops": self.server_flops,
            "time/virtual_s": self.virtual_s,
        }
