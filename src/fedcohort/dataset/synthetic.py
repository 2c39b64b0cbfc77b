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
54, and 1 % above 5,700. `max_samples` truncates it.

Departures from the paper: alpha and beta are variances, as N(0, alpha) is commonly read. The released generator uses
them as standard deviations: its Synthetic(0.5, 0.5) has alpha = beta = 0.25 here. (0, 0) and (1, 1) are the same.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.data.group_ranks import rank_within_group
from fedcohort.dataset.base import Dataset, Raw, check_clients_option
from fedcohort.rng import new_generator
from fedcohort.types import Ids

N_FEATURES, N_CLASSES = 60, 10
MEAN_EXTRA_SAMPLES = 403  # mean of n_k - min_samples
MAX_SAMPLES = 50_000_000  # 12 GB


@dataclass(frozen=True)
class Synthetic(Dataset):
    """The generated dataset Synthetic(alpha, beta).

    Attributes:
        alpha: variance of u_k, the mean of the weights of client k's labelling model.
        beta: variance of B_k, the mean of client k's input means.
        clients: number of natural clients.
        min_samples: smallest number of samples of a client, including its test rows.
        max_samples: largest number of samples of a client; None for no limit.
    """

    alpha: float
    beta: float
    clients: int
    min_samples: int
    max_samples: int | None

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "[0, 1e9]")
        ranges.number("beta", self.beta, "[0, 1e9]")
        check_clients_option(self.clients, 50)
        ranges.integer("min_samples", self.min_samples, "[5, inf)")
        ranges.integer("max_samples", self.max_samples, "[5, inf)", allow_null=True)
        if self.max_samples is not None and self.max_samples < self.min_samples:
            allowed_text = f"at least min_samples={self.min_samples}, or null"
            raise ranges.range_error("max_samples", allowed_text, self.max_samples)
        mean_size = self.min_samples + MEAN_EXTRA_SAMPLES
        mean_size = mean_size if self.max_samples is None else min(mean_size, self.max_samples)
        if self.clients * mean_size > MAX_SAMPLES:
            allowed_text = f"smaller: {self.clients} clients of about {mean_size} samples exceed {MAX_SAMPLES} samples"
            raise ranges.range_error("min_samples", allowed_text, self.min_samples)

    def load(self, seed: int) -> Raw:
        """Return inputs as float32 [N, 60] with 10 classes and natural clients.

        Args:
            seed: seed of all draws. A client's data depend on the seed and the client's number only.
        """
        samples_by_client = [self.draw_samples(new_generator(seed, "synthetic", client=k)) for k in range(self.clients)]
        x, y = (np.concatenate(client_arrays) for client_arrays in zip(*samples_by_client, strict=True))
        client_sizes = np.array([len(labels) for _, labels in samples_by_client])
        owners = np.repeat(np.arange(self.clients), client_sizes)
        is_train_row = rank_within_group(owners) < (client_sizes * 9 // 10)[owners]
        train_part, test_part = ((x[is_part_row], y[is_part_row]) for is_part_row in (is_train_row, ~is_train_row))
        return Raw("synthetic", *train_part, *test_part, N_CLASSES, owners[is_train_row], owners[~is_train_row])

    def draw_samples(self, rng: np.random.Generator) -> tuple[np.ndarray, Ids]:
        """Draw the inputs, float32 [n, 60], and the labels, int64 [n], of one client from the generator `rng`."""
        u, B = rng.normal(0, np.sqrt([self.alpha, self.beta]))
        n = self.min_samples + int(rng.lognormal(4, 2))
        n = n if self.max_samples is None else min(n, self.max_samples)
        W, b = rng.normal(u, 1, (N_FEATURES, N_CLASSES)), rng.normal(u, 1, N_CLASSES)
        v = rng.normal(B, 1, N_FEATURES)
        x = rng.normal(v, np.arange(1, N_FEATURES + 1) ** -0.6, (n, N_FEATURES))
        return x.astype(np.float32), (x @ W + b).argmax(1)
