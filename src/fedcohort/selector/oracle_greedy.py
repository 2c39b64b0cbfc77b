"""Greedy oracle: it simulates the training of all clients without cost, and adds the client that helps most.

Not from a paper, and not possible in practice.

    S_{j+1}:  S_j + argmin_k loss on server_val of w_t + (mean update of S_j + k, weighted by n)

The simulation costs no time, no work and no bytes but those of w_t sent to all clients (`signal/greedy_gain.py`), so
that its curve over virtual time is a bound. It chooses by the validation data that the run is monitored on. It looks
one round ahead and adds one client at a time, which need not give the best cohort or sequence of rounds. selector=worst
is its opposite.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.foresight import TrainingOracle


@dataclass(frozen=True)
class OracleGreedy(TrainingOracle):
    """A selector that adds the clients whose simulated updates lower the server's loss most (an oracle).

    Attributes:
        limit: largest population for which all clients are trained in every round.
    """

    loss_direction: ClassVar[str] = "down"
