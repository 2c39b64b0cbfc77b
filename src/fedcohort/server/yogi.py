"""FedYogi: Yogi on the server, over the aggregator's direction (Reddi et al. 2021).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization", ICLR 2021, arXiv
2003.00295, Alg. 2.

    m:  m <- beta1 m + (1 - beta1) G, 0 before the first round
    v:  v <- v - (1 - beta2) G^2 sign(v - G^2), tau^2 before the first round
    step:  w <- w + lr m / (sqrt(v) + tau), without bias correction

G is the direction of any aggregator. v changes by at most (1 - beta2) G^2, up or down, where Adam's v decreases by a
share of its value: after large directions Yogi forgets them slowly. A round without arrivals leaves m and v unchanged.

Departures from the paper: its G is the equally weighted mean of the updates (agg.weighting=uniform).
"""

from dataclasses import dataclass

from fedcohort.server.moments import AdaptiveOptimizer, Vector


@dataclass(frozen=True)
class Yogi(AdaptiveOptimizer):
    """FedYogi, a server optimizer whose second moment changes by a bounded amount per round.

    Attributes:
        beta2: decay of the second moment.
    """

    beta2: float

    def second_moment(self, v: Vector, direction: Vector) -> Vector:
        direction_squared = direction**2
        return v - (1 - self.beta2) * direction_squared * (v - direction_squared).sign()
