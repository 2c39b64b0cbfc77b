"""The fast oracle, a yardstick: it knows how long each client's job takes on average, and draws from the fastest.

    S = m of the max(m, ceil(share A)) fastest of the A available clients, drawn by chance      (`pool.py`)

It knows what persists, not what this round will draw: where no client is faster than another, it is selector=random,
and nothing is to be won by speed. share=0 always trains the m fastest, whose data may be nobody else's: it is what
speed alone can win, not what is best. Clients that failed three times in a row are withheld for a while
(`round/backoff.py`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.selector.pool import FromTheBest
from fedcohort.types import RoundContext, Values


@dataclass(frozen=True)
class OracleFast(FromTheBest):
    """The yardstick, with its option. A score is the negative of the expected seconds.

    Attributes:
        share: of the available clients that are drawn from, the fastest.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"expected_s"})

    def score(self, ctx: RoundContext) -> Values:
        """Score every client, [n_clients]; no draw changes it."""
        return np.asarray(np.negative(ctx.signals["expected_s"]), dtype=np.float64)
