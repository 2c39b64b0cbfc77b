"""The adversary, a yardstick: it trains everybody, in secret and uncharged, and picks who harms the server most.

    S_{j+1} = S_j + argmax_k loss of w_t + (mean update of S_j + k, weighted by n), on server_val

Not a paper's method; the floor to selector=oracle_greedy's ceiling, with the same foresight (`signal/greedy_gain.py`),
which costs no virtual time either.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.foresight import Foresight


@dataclass(frozen=True)
class Worst(Foresight):
    """The yardstick, with its option.

    Attributes:
        limit: the largest population for which every client is trained in every round.
    """

    direction: ClassVar[str] = "up"
