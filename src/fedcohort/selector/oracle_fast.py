"""Fast oracle: it knows the mean duration of each client's job, and draws from the fastest clients.

Not from a paper.

    S:  m clients drawn uniformly from the max(m, ceil(share A)) fastest of the A available clients (`pool.py`)

It knows the means, not this round's draws: where all clients are equally fast it is selector=random. share=0 always
trains the m fastest, whose data may be unlike the others': it shows what speed alone achieves. A client that failed
three times in a row is withheld for some rounds (`round/backoff.py`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.selector.pool import TopPoolSelector
from fedcohort.types import RoundContext, Values


@dataclass(frozen=True)
class OracleFast(TopPoolSelector):
    """A selector of the clients with the shortest expected jobs, which no server can know (an oracle).

    A client's score is minus the expected duration of its job, in seconds.

    Attributes:
        share: share of the available clients, the fastest ones, that cohorts are drawn from.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"expected_s"})

    def score_clients(self, ctx: RoundContext) -> Values:
        """Return each client's score, minus its expected seconds per job, from the signals of `ctx`, [n_clients]."""
        return np.asarray(np.negative(ctx.signals["expected_s"]), dtype=np.float64)
