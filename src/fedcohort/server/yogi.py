"""FedYogi: Yogi on the server, over the aggregator's direction (Reddi et al. 2021, Alg. 2).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization" (2021).

    m <- beta1 m + (1 - beta1) G,   v <- v - (1 - beta2) G^2 sign(v - G^2),   w <- w + lr m / (sqrt(v) + tau)
    m = 0 and v = tau^2 before the first round, no bias correction

G is the direction of any aggregator. v moves by at most (1 - beta2) G^2, up or down, where Adam's falls by a share of
itself: after large directions it forgets them slowly. An empty round leaves m and v as they are.

Departures from the paper: its G is the equally weighted mean of the updates (agg.weighting=uniform).
"""

from dataclasses import dataclass

from fedcohort.server.moments import Adaptive, Vector, yogi


@dataclass(frozen=True)
class Yogi(Adaptive):
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
        return yogi(v, direction, self.beta2)
