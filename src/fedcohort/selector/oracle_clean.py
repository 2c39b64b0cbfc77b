"""Clean oracle: it knows the probability with which each client's labels were flipped, and draws from the cleanest.

Not from a paper, and not possible in practice.

    S:  m clients drawn uniformly from the max(m, ceil(share A)) cleanest of the A available clients (`pool.py`)

The size of the pool does not depend on how many clients are clean: with share=.5 and 15 clean of 50 clients it has 10
noisy ones. share=0 always trains the m cleanest, with ties at random. Where labels are either clean or wrong, it then
draws from the clean clients only. Where noise rates vary continuously, it trains the same few clients, which may lack
whole classes. Without label noise it is selector=random. A client that failed three times in a row is withheld for some
rounds (`round/backoff.py`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.selector.pool import TopPoolSelector
from fedcohort.types import RoundContext, Values


@dataclass(frozen=True)
class OracleClean(TopPoolSelector):
    """A selector of the clients with the fewest wrong labels, which no server can know (an oracle).

    Attributes:
        share: share of the available clients, the cleanest ones, that cohorts are drawn from.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"noise_rate"})

    def score_clients(self, ctx: RoundContext) -> Values:
        """Return each client's score, 1 minus its share of wrong labels, from the signals of `ctx`, [n_clients]."""
        return np.asarray(1.0 - ctx.signals["noise_rate"], dtype=np.float64)
