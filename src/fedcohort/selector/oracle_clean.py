"""The clean oracle, a yardstick: it knows with what chance each client's labels were flipped.

    S = m of the max(m, ceil(share A)) cleanest of the A available clients, drawn by chance      (`pool.py`)

Not a paper's method, as nobody could know it. The pool has its size whoever is clean: with share=.5 and 15 clean of 50
clients it has 10 noisy ones. share=0 always trains the m cleanest, equals by chance: where labels are either clean or
wrong it draws from the clean alone, and where rates spread it trains the same few, who may lack whole classes. Without
label noise it is selector=random. Clients that failed three times in a row are withheld for a while
(`round/backoff.py`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.selector.pool import FromTheBest
from fedcohort.types import RoundContext, Values


@dataclass(frozen=True)
class OracleClean(FromTheBest):
    """The yardstick, with its option. A score is 1 - noise_rate.

    Attributes:
        share: of the available clients that are drawn from, the cleanest.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"noise_rate"})

    def score(self, ctx: RoundContext) -> Values:
        """Score every client, [n_clients]; no draw changes it."""
        return np.asarray(1.0 - ctx.signals["noise_rate"], dtype=np.float64)
