"""pow-d (power of choice): of d random candidates, the m with the largest losses of w_t (Cho et al. 2022).

Cho, Wang, Joshi, "Towards Understanding Biased Client Selection in Federated Learning", AISTATS 2022; preprint "Client
Selection in Federated Learning: Convergence Analysis and Power-of-Choice Selection Strategies", arXiv 2010.01243.

    A:  d available clients, drawn successively in proportion to n_k
    query:  F_k(w_t), the mean cross-entropy over all training samples of k, for k in A
    S:  the m clients of A with the largest F_k(w_t)

Departures from the paper:
- FedDiverse draws A uniformly (candidate=uniform); the original draws by data size (candidate=size, the default).
- The paper averages models with equal weights, as candidates drawn by size already represent their data. Set
  agg.weighting=uniform for that; agg.weighting=used counts sizes twice.
- A client whose loss is not finite is chosen only where too few others answered.
- A round with fewer than d available clients queries all of them.
- Where fewer than m candidates answer, other available clients fill the cohort at random.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`), and is not queried.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.candidates import PowerOfChoice


@dataclass(frozen=True)
class PowD(PowerOfChoice):
    """pow-d, a client selector: of random candidates, the clients with the largest loss of the global model."""

    signal: ClassVar[str] = "loss"
