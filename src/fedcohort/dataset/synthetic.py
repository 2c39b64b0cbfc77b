"""Synthetic(alpha, beta): a different linear model and input distribution for each client (FedProx).

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated Optimization in Heterogeneous Networks" (2020), Sec. 5.1 and
App. C.1.

    y = argmax softmax(W_k x + b_k),   W_k, b_k ~ N(u_k, 1),   u_k ~ N(0, alpha)

    x ~ N(v_k, Sigma),  Sigma_jj = j^-1.2,   v_k ~ N(B_k, 1),   B_k ~ N(0, beta)

    n_k = min_samples + floor(LogNormal(4, 2))

There are 60 features and 10 classes. The last tenth of a client's rows is its test part.

The paper introduces alpha as the difference between local models. However, u_k is one number for all entries of W_k and
b_k: it shifts all logits by the same amount and changes no label. Local models differ only by the N(., 1), also at
alpha = 0. beta is the difference between local inputs. The sizes n_k - min_samples have a heavy tail: mean 403, median
55, and 1 % above 5,700. `max_samples` truncates it.

Departures from the paper: alpha and beta are variances, as N(0, alpha) is commonly read. The released generator uses
them as standard deviations: its Synthetic(0.5, 0.5) has alpha = beta = 0.25 here. (0, 0) and (1, 1) are the same.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.data.group_ranks import rank_within_group
from fedcohort.dataset.base import Dataset, Raw, check_generated_clients
from fedcohort.rng import new_generator
from fedcohort.types import Ids

FEATURES, CLASSES = 60, 10
MEAN_TAIL = 403  # mean of n_k - min_samples
MAX_SAMPLES = 50_000_000  # 12 GB


@dataclass(frozen=True)
class Synthetic(Dataset):
    """The generated dataset Synthetic(alpha, beta).

    Attributes:
        alpha, beta: variances of u_k and B_k.
        clients: number of natural clients.
        min_samples, max_samples: range of a client's samples, including its test rows; None for no upper limit.
    """

    alpha: float
    beta: float
    clients: int
    min_samples: int
    max_samples: int | None

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "[0, 1e9]")
        ranges.number("beta", self.beta, "[0, 1e9]")
        check_generated_clients(self.clients, 50)
        ranges.integer("min_samples", self.min_samples, "[5, inf)")
        ranges.integer("max_samples", self.max_samples, "[5, inf)", allow_null=True)
        if self.max_samples is not None and self.max_samples < self.min_samples:
            allowed = f"at least min_samples={self.min_samples}, or null"
            raise ranges.range_error("max_samples", allowed, self.max_samples)
        expected = self.min_samples + MEAN_TAIL
        expected = expected if self.max_samples is None else min(expected, self.max_samples)
        if self.clients * expected > MAX_SAMPLES:
            allowed = f"such that {self.clients} clients of about {expected} samples come to {MAX_SAMPLES} at most"
            raise ranges.range_error("min_samples", allowed, self.min_samples)

    def load(self, seed: int) -> Raw:
        """Return float32 [N, 60] and 10 classes.

        A client's data depend on the seed and the client's number only, not on the number of clients.
        """
        shards = [self.client(new_generator(seed, "synthetic", client=k)) for k in range(self.clients)]
        x, y = (np.concatenate(arrays) for arrays in zip(*shards, strict=True))
        sizes = np.array([len(labels) for _, labels in shards])
        owner_of_sample = np.repeat(np.arange(self.clients), sizes)
        is_train = rank_within_group(owner_of_sample) < (sizes * 9 // 10)[owner_of_sample]
        train, test = ((x[rows], y[rows]) for rows in (is_train, ~is_train))
        return Raw("synthetic", *train, *test, CLASSES, owner_of_sample[is_train], owner_of_sample[~is_train])

    def client(self, rng: np.random.Generator) -> tuple[np.ndarray, Ids]:
        """Draw one client's inputs, float32 [n, 60], and labels [n]."""
        u, B = rng.normal(0, np.sqrt([self.alpha, self.beta]))
        n = self.min_samples + int(rng.lognormal(4, 2))
        n = n if self.max_samples is None else min(n, self.max_samples)
        W, b = rng.normal(u, 1, (FEATURES, CLASSES)), rng.normal(u, 1, CLASSES)
        v = rng.normal(B, 1, FEATURES)
        feature_stds = np.arange(1, FEATURES + 1) ** -0.6
        x = rng.normal(v, feature_stds, (n, FEATURES))
        return x.astype(np.float32), (x @ W + b).argmax(1)
