"""FedAdam: Adam on the server, over the aggregator's direction (Reddi et al. 2021, Alg. 2).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization" (2021).

    m <- beta1 m + (1 - beta1) G,   v <- beta2 v + (1 - beta2) G^2,   w <- w + lr m / (sqrt(v) + tau)
    m = 0 and v = tau^2 before the first round, no bias correction

G is the direction of any aggregator. An empty round leaves m and v as they are. A coordinate that has not moved yet has
sqrt(v) = tau: what is far below tau is hardly adapted to.

Departures from the paper: its G is the equally weighted mean of the updates (agg.weighting=uniform).
"""

from dataclasses import dataclass

from fedcohort.server.moments import Adaptive, Vector, adam


@dataclass(frozen=True)
class Adam(Adaptive):
    """The server optimizer, with its options.

    Attributes:
        lr: the server learning rate eta.
        beta1, beta2: of the moments.
        tau: the degree of adaptivity.
    """

    lr: float
    beta1: float
    beta2: float
    tau: float

    def square(self, v: Vector, direction: Vector) -> Vector:
        return adam(v, direction, self.beta2)
