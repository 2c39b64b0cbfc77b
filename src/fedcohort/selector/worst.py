"""Worst case: it simulates the training of all clients without cost, and adds the client that harms most.

Not from a paper, and not possible in practice.

    S_{j+1}:  S_j + argmax_k loss on server_val of w_t + (mean update of S_j + k, weighted by n)

It is the opposite of selector=oracle_greedy, with the same simulation (`signal/greedy_gain.py`), which costs no virtual
time.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.foresight import TrainingOracle


@dataclass(frozen=True)
class Worst(TrainingOracle):
    """A selector that adds the clients whose simulated updates raise the server's loss most (a worst case).

    Attributes:
        limit: largest population for which all clients are trained in every round.
    """

    loss_direction: ClassVar[str] = "up"
