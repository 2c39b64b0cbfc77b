"""The workloads that engines are compared on: sizes, models and made-up data, the same for every peer.

W1: 100 clients x 600 samples of 1x28x28, MLP 784-200-200-10, cohort 10, batch 32.
W2: as W1 with the CNN of FedAvg.
W3: 3,550 clients of lognormal sizes (mean 43), logistic regression 784-62, cohort 355, batch 10.
W4: 1,000 clients x 50 samples of 3x32x32, the CNN, cohort 50, batch 10.
One local epoch of SGD a round, sample-weighted mean, server evaluation on 10,000 samples (W4: 1,000) every round.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.model.cnn import Cnn
from fedcohort.model.logreg import LogReg
from fedcohort.model.mlp import Mlp


@dataclass(frozen=True)
class Workload:
    shape: tuple[int, ...]
    n_classes: int
    sizes: np.ndarray
    cohort: int
    batch: int
    lr: float
    n_eval: int
    model: Mlp | Cnn | LogReg

    def network(self) -> nn.Module:
        torch.manual_seed(5)
        return self.model.build(self.shape, self.n_classes)

    def data(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """x, y of all clients, one after the other; x, y of the server."""
        g = np.random.Generator(np.random.PCG64(3))
        prototypes = 0.03 * g.standard_normal((self.n_classes, int(np.prod(self.shape))), dtype=np.float32)
        parts: list[Tensor] = []
        for n in (int(self.sizes.sum()), self.n_eval):
            y = g.integers(0, self.n_classes, n)
            x = 0.3 * g.standard_normal((n, prototypes.shape[1]), dtype=np.float32) + prototypes[y]
            parts += [torch.from_numpy(x.reshape(n, *self.shape)), torch.from_numpy(y)]
        return parts[0], parts[1], parts[2], parts[3]

    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def chosen(self, round: int) -> np.ndarray:
        """The same cohorts for every peer."""
        return np.sort(np.random.default_rng(1000 + round).choice(len(self.sizes), self.cohort, replace=False))


def _lognormal() -> np.ndarray:
    sizes = np.random.default_rng(7).lognormal(np.log(45) - 0.5, 1.0, 3550)
    return np.maximum(1, np.round(sizes)).astype(np.int64)


WORKLOADS = {
    "W1": Workload((1, 28, 28), 10, np.full(100, 600), 10, 32, 0.1, 10000, Mlp([200, 200])),
    "W2": Workload((1, 28, 28), 10, np.full(100, 600), 10, 32, 0.05, 10000, Cnn(512)),
    "W3": Workload((1, 28, 28), 62, _lognormal(), 355, 10, 0.1, 10000, LogReg()),
    "W4": Workload((3, 32, 32), 10, np.full(1000, 50), 50, 10, 0.05, 1000, Cnn(128)),
}
