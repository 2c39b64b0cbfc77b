"""FedAdam: Adam on the server, over the aggregator's direction (Reddi et al. 2021).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization", ICLR 2021, arXiv
2003.00295, Alg. 2.

    m:  m <- beta1 m + (1 - beta1) G, 0 before the first round
    v:  v <- beta2 v + (1 - beta2) G^2, tau^2 before the first round
    step:  w <- w + lr m / (sqrt(v) + tau), without bias correction

G is the direction of any aggregator. A round without arrivals leaves m and v unchanged. tau limits the adaptation to
coordinates whose directions are far smaller.

Departures from the paper: its G is the equally weighted mean of the updates (agg.weighting=uniform).
"""

from dataclasses import dataclass

from fedcohort.server.moments import AdaptiveOptimizer, Vector


@dataclass(frozen=True)
class Adam(AdaptiveOptimizer):
    """FedAdam, a server optimizer with moving averages of the aggregator's updates and of their squares.

    Attributes:
        beta2: decay of the second moment.
    """

    beta2: float

    def second_moment(self, v: Vector, direction: Vector) -> Vector:
        return self.beta2 * v + (1 - self.beta2) * direction**2
