"""Extended Dirichlet: C classes per client, then a Dirichlet split of each class over its clients.

Source: Li and Lyu, "Convergence Analysis of Sequential Federated Learning on Heterogeneous Data", NeurIPS 2023, arXiv
2311.03154. The rule was read in the released code (`sim/data/partition.py`), whose runs use C = 1, 2 and alpha = 10.

    client k:  C of the classes, at random without replacement
    class c:   p_c ~ Dir(alpha, ..., alpha) over the clients that hold c; each of them gets the share p_{c,k} of class c

With C equal to the number of classes this is partition=dirichlet. Sizes of clients follow from the draws.

Departures from the paper:
- The released code repeats the allocation of classes until each class has max(1, floor(K C / classes / 5)) clients.
  Here it is drawn once, and as few random choices as possible give way to this minimum (a linear program).
- The released code repeats the draw until every client has 10 samples, which need not end. Here each client has at
  least ceil(min_samples / C) samples of each of its classes, which the largest holders of the class give up. Thus every
  client has exactly C classes. A class has at most as many clients as it has samples for. If the classes together have
  too few samples for all clients, the split raises an error.
- The released code sets a client's share to zero once it has N/K samples, and gives the samples that are left to the
  last client of the class. Not here.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.errors import OptionError
from fedcohort.maths.dirichlet import draw_dirichlet
from fedcohort.partition import tables
from fedcohort.partition.base import Partition, SamplePool
from fedcohort.types import Ids


@dataclass(frozen=True)
class ExtendedDirichlet(Partition):
    """A partition that gives each client a number of random classes, and a Dirichlet share of each of these classes.

    Attributes:
        classes: number of classes that each client has samples of.
        alpha: concentration parameter; small values give the clients of a class unequal shares.
        min_samples: smallest number of samples of a client, training and validation together.
    """

    classes: int
    alpha: float
    min_samples: int

    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    def __post_init__(self) -> None:
        ranges.integer("classes", self.classes, "[1, inf)")
        ranges.number("alpha", self.alpha, "(0, inf)")
        ranges.integer("min_samples", self.min_samples, "[1, inf)")

    def split(self, sample_pool: SamplePool, n_clients: int | None, rng: np.random.Generator) -> list[Ids]:
        """Return sorted positions of each client's samples: disjoint, all samples of `sample_pool` together.

        Arguments are those of `Partition.split`. Raises `OptionError` if a class has too few samples or clients.
        """
        K = tables.require_samples_for_clients("extended_dirichlet", n_clients, len(sample_pool))
        class_sizes = np.bincount(sample_pool.labels, minlength=sample_pool.n_classes)
        present_classes = np.flatnonzero(class_sizes)
        min_class_samples = -(-self.min_samples // self.classes)  # samples of each of a client's classes
        max_clients = np.minimum(class_sizes[present_classes] // min_class_samples, K)
        self._check_class_allocation(K, max_clients, min_class_samples)
        min_clients = np.minimum(max(1, K * self.classes // len(present_classes) // 5), max_clients)
        holds_class = choose_class_holders(
            self.classes, min_clients, max_clients, rng.random((K, len(present_classes)))
        )
        class_samples_of_clients: list[list[Ids]] = [[] for _ in range(K)]
        for c, is_class_holder in zip(present_classes, holds_class.T, strict=True):
            class_rows = rng.permutation(np.flatnonzero(sample_pool.labels == c))
            client_shares = draw_dirichlet(self.alpha, int(is_class_holder.sum()), rng)
            cut_positions = np.rint(np.cumsum(client_shares)[:-1] * len(class_rows)).astype(np.int64)
            class_parts = np.split(class_rows, np.minimum(cut_positions, len(class_rows)))
            class_parts = tables.enlarge_small_clients(class_parts, min_class_samples)
            for k, client_samples in zip(np.flatnonzero(is_class_holder), class_parts, strict=True):
                class_samples_of_clients[k].append(client_samples)
        return [np.sort(np.concatenate(class_parts)) for class_parts in class_samples_of_clients]

    def _check_class_allocation(self, n_clients: int, max_clients: Ids, min_class_samples: int) -> None:
        """Raise `OptionError` if no allocation gives each client `classes` classes, and each class a client.

        Args:
            n_clients: number of clients.
            max_clients: largest number of clients that can hold each class that has samples, [n_classes].
            min_class_samples: smallest number of samples that a client has of each of its classes.
        """
        n_classes = len(max_clients)
        if not n_classes <= n_clients * self.classes <= n_clients * n_classes:
            raise OptionError(
                f"partition.classes={self.classes} does not fit {n_classes} classes and {n_clients} clients; feasible: "
                f"{-(-n_classes // n_clients)} <= partition.classes <= {n_classes}"
            )
        if max_clients.min() < 1 or max_clients.sum() < n_clients * self.classes:
            raise OptionError(
                f"partition.min_samples={self.min_samples} requires {min_class_samples} samples of each of a client's "
                f"classes: all classes together are large enough for {max_clients.sum()} such parts, but {n_clients} "
                f"clients with partition.classes={self.classes} need {n_clients * self.classes}; the smallest class is "
                f"large enough for {max_clients.min()}. Choose a smaller partition.min_samples, or fewer clients"
            )


def choose_class_holders(
    classes_per_client: int, min_clients: Ids, max_clients: Ids, class_priorities: np.ndarray
) -> Bool[np.ndarray, "clients classes"]:
    """Return whether each client holds each class: the classes with the client's smallest priorities, if limits allow.

    The result minimises the sum of the priorities of the held classes, by a linear program whose solutions are integers
    (limits on the rows and columns of a table). If the limits do not bind, it is a uniform draw.

    Args:
        classes_per_client: number of classes of each client.
        min_clients: smallest number of clients of each class, [n_classes].
        max_clients: largest number of clients of each class, [n_classes].
        class_priorities: random numbers in [0, 1), [n_clients, n_classes].
    """
    K, n_classes = class_priorities.shape
    is_class_holder = np.zeros((K, n_classes), dtype=bool)
    np.put_along_axis(is_class_holder, np.argsort(class_priorities, axis=1)[:, :classes_per_client], True, axis=1)
    holder_counts = is_class_holder.sum(0)
    if ((holder_counts >= min_clients) & (holder_counts <= max_clients)).all():
        return is_class_holder
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    class_sum_matrix = kron(np.ones((1, K)), eye_array(n_classes))
    lp_solution = linprog(
        class_priorities.ravel(),
        A_ub=vstack([class_sum_matrix, -class_sum_matrix]),
        b_ub=np.concatenate([max_clients, -min_clients]),
        A_eq=kron(eye_array(K), np.ones((1, n_classes))),
        b_eq=np.full(K, classes_per_client),
        bounds=(0, 1),
        method="highs-ds",
    )
    return np.asarray(lp_solution.x.reshape(K, n_classes) > 0.5)
