"""Synthetic(alpha, beta): a different linear model and input distribution for each client (FedProx).

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated Optimization in Heterogeneous Networks" (2020), Sec. 5.1 and
App. C.1.

    y = argmax softmax(W_k x + b_k),   W_k, b_k ~ N(u_k, 1),   u_k ~ N(0, alpha)
    x ~ N(v_k, Sigma),  Sigma_jj = j^-1.2,   v_k ~ N(B_k, 1),   B_k ~ N(0, beta)
    n_k = min_samples + floor(LogNormal(4, 2));  60 features, 10 classes;  the last tenth of the rows is the test part

alpha is meant as how much local models differ, but u_k is one number for all entries of W_k and b_k: it shifts all
logits alike and changes no label. Local models differ by the N(., 1) alone, at alpha = 0 as well. beta is how much
local inputs differ. The sizes have a heavy tail (besides `min_samples`: mean 403, median 55, one in a hundred above
5,700); `max_samples` cuts it.

Departures from the paper: alpha and beta are variances, as N(0, alpha) is commonly read; the released generator takes
them for standard deviations. (0, 0) and (1, 1) are the same either way; its Synthetic(0.5, 0.5) is ours with 0.25.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.errors import OptionError
from fedcohort.rng import generator
from fedcohort.types import Ids

FEATURES, CLASSES = 60, 10
MEAN_TAIL = 403  # samples of a client beside min_samples, on average
MOST = 50_000_000  # samples: 12 GB


@dataclass(frozen=True)
class Synthetic(Dataset):
    """The data set, with its options.

    Attributes:
        alpha, beta: variances.
        clients: number of natural clients.
        min_samples, max_samples: of a client, with its test rows; max_samples None for as many as are drawn.
    """

    alpha: float
    beta: float
    clients: int
    min_samples: int
    max_samples: int | None

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "[0, 1e9]")
        ranges.number("beta", self.beta, "[0, 1e9]")
        if self.clients is None:  # it follows the option `clients`
            raise OptionError(
                "clients must be an integer in [1, inf), got null: clients=null is for datasets that bring their "
                "clients, this one makes as many as you say (clients=50)"
            )
        ranges.integer("clients", self.clients, "[1, inf)")
        ranges.integer("min_samples", self.min_samples, "[5, inf)")
        ranges.integer("max_samples", self.max_samples, "[5, inf)", optional=True)
        if self.max_samples is not None and self.max_samples < self.min_samples:
            raise ranges.refuse("max_samples", f"at least min_samples={self.min_samples}, or null", self.max_samples)
        expected = self.min_samples + MEAN_TAIL
        expected = expected if self.max_samples is None else min(expected, self.max_samples)
        if self.clients * expected > MOST:
            allowed = f"such that {self.clients} clients of about {expected} samples come to {MOST} at most"
            raise ranges.refuse("min_samples", allowed, self.min_samples)

    def load(self, seed: int) -> Raw:
        """float32 [N, 60], 10 classes. A client's data depend on (seed, its id) alone, not on how many there are."""
        shards = [self.client(generator(seed, "synthetic", client=k)) for k in range(self.clients)]
        n_train = [len(y) * 9 // 10 for _, y in shards]
        train = [(x[:n], y[:n]) for (x, y), n in zip(shards, n_train, strict=True)]
        test = [(x[n:], y[n:]) for (x, y), n in zip(shards, n_train, strict=True)]
        train_x, train_y = (np.concatenate(part) for part in zip(*train, strict=True))
        test_x, test_y = (np.concatenate(part) for part in zip(*test, strict=True))
        first, second = (np.repeat(np.arange(self.clients), [len(y) for _, y in part]) for part in (train, test))
        return Raw("synthetic", train_x, train_y, test_x, test_y, CLASSES, first, second)

    def client(self, rng: np.random.Generator) -> tuple[np.ndarray, Ids]:
        """Draw one client's inputs, float32 [n, 60], and labels [n]."""
        u, B = rng.normal(0, np.sqrt([self.alpha, self.beta]))
        n = self.min_samples + int(rng.lognormal(4, 2))
        n = n if self.max_samples is None else min(n, self.max_samples)
        W, b = rng.normal(u, 1, (FEATURES, CLASSES)), rng.normal(u, 1, CLASSES)
        v = rng.normal(B, 1, FEATURES)
        sd = np.arange(1, FEATURES + 1) ** -0.6
        x = rng.normal(v, sd, (n, FEATURES))
        return x.astype(np.float32), (x @ W + b).argmax(1)
