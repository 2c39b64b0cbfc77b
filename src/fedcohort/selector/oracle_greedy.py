"""The greedy oracle, a yardstick: it trains everybody, in secret, and picks who helps the server most in this round.

    S_{j+1} = S_j + argmin_k loss of w_t + (mean update of S_j + k, weighted by n), on server_val

Not a paper's method, and none could be it: what it sees costs nothing here (see `signal/greedy_gain.py`), and it picks
by the validation data that a run is monitored on. It looks one round ahead and adds one client at a time: neither the
best cohort of the round, which takes trying every one, nor the best sequence of rounds. selector=worst is its opposite.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.foresight import Foresight


@dataclass(frozen=True)
class OracleGreedy(Foresight):
    """limit: the largest population for which every client is trained in every round."""

    direction: ClassVar[str] = "down"
