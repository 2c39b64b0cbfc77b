"""FedAdagrad: Adagrad on the server, over the aggregator's direction (Reddi et al. 2021, Alg. 2).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization" (2021).

    m <- beta1 m + (1 - beta1) G,   v <- v + G^2,   w <- w + lr m / (sqrt(v) + tau)
    m = 0 and v = tau^2 before the first round, no bias correction

G is the direction of any aggregator. v only grows, so that steps shrink. beta1 = 0, the default and what the paper's
experiments take, is Adagrad without momentum. An empty round leaves m and v as they are.

Departures from the paper: its G is the equally weighted mean of the updates (agg.weighting=uniform).
"""

from dataclasses import dataclass

from fedcohort.server.moments import Adaptive, Vector, adagrad


@dataclass(frozen=True)
class Adagrad(Adaptive):
    """The server optimizer, with its options.

    Attributes:
        lr: the server learning rate eta.
        beta1: momentum.
        tau: the degree of adaptivity.
    """

    lr: float
    beta1: float
    tau: float

    def square(self, v: Vector, direction: Vector) -> Vector:
        return adagrad(v, direction)
