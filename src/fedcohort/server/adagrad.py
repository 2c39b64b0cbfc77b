"""FedAdagrad: Adagrad on the server, over the aggregator's direction (Reddi et al. 2021).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization", ICLR 2021, arXiv
2003.00295, Alg. 2.

    m:  m <- beta1 m + (1 - beta1) G, 0 before the first round
    v:  v <- v + G^2, tau^2 before the first round
    step:  w <- w + lr m / (sqrt(v) + tau), without bias correction

G is the direction of any aggregator. v only grows, so that steps become shorter. beta1 = 0, the default and the value
of the paper's experiments, is Adagrad without momentum. A round without arrivals leaves m and v unchanged.

Departures from the paper: its G is the equally weighted mean of the updates (agg.weighting=uniform).
"""

from dataclasses import dataclass

from fedcohort.server.moments import AdaptiveOptimizer, Vector


@dataclass(frozen=True)
class Adagrad(AdaptiveOptimizer):
    """FedAdagrad, a server optimizer that divides steps by the root of the sum of squared directions.

    A direction is the update (pseudo-gradient) that the aggregator returns.
    """

    def second_moment(self, v: Vector, direction: Vector) -> Vector:
        return v + direction**2
