"""pow-d, power of choice: of d candidates, those with the largest losses of w_t (Cho et al. 2020).

Cho, Wang, Joshi, "Client Selection in Federated Learning: Convergence Analysis and Power-of-Choice Selection
Strategies" (2020), as UCB-CS (Sec. II-B) and FedDiverse (Sec. II-C) describe it.

    A = d available clients, drawn one after the other in proportion to n_k
    F_k(w_t) = mean cross-entropy over all training samples of k, asked of k in A before the selection
    S = the m clients of A with the largest F_k(w_t)

Departures from the paper:
- FedDiverse draws A uniformly (candidate=uniform); the original draws by data size (candidate=size, the default);
- candidates drawn by size stand for their data, so that the paper's mean of models is a plain one:
  agg.weighting=uniform. By agg.weighting=used, where sizes differ, they count twice;
- a client whose loss is not finite is taken only where too few others answered;
- a round with fewer than d available clients polls all of them;
- where fewer than m candidates answer, other available clients fill the cohort, at random;
- a client that failed three times in a row is withheld for a while (`round/backoff.py`), and isn't polled.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.candidates import PowerOfChoice


@dataclass(frozen=True)
class PowD(PowerOfChoice):
    """The clients of largest loss among the candidates."""

    signal: ClassVar[str] = "loss"
