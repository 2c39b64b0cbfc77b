"""The greedy oracle, a yardstick: it trains everybody, in secret and uncharged, and picks who helps the server most.

    S_{j+1} = S_j + argmin_k loss of w_t + (mean update of S_j + k, weighted by n), on server_val

Not a paper's method, and none could be it: what it sees costs no time, no work and no bytes but those of w_t sent to
everybody (see `signal/greedy_gain.py`), so that its curve by virtual time is a bound, and no budget. It picks by the
validation data that a run is monitored on. It looks one round ahead and adds one client at a time: neither the best
cohort of the round, which takes trying every one, nor the best sequence of rounds. selector=worst is its opposite.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.foresight import Foresight


@dataclass(frozen=True)
class OracleGreedy(Foresight):
    """The yardstick, with its option.

    Attributes:
        limit: the largest population for which every client is trained in every round.
    """

    direction: ClassVar[str] = "down"
