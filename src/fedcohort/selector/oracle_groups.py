"""Group oracle: it knows every client's counts of class and attribute, and builds a cohort that balances the pairs.

Not from a paper, and not possible in practice, as clients do not know their attributes.

    S_1:  a random client
    S_{j+1}:  S_j + argmin_k sum_g (share of group g in S_j + k, less 1/G)^2 (`balanced_cohort.py`)

A group is a pair of class and attribute, for example digit 3 in red: G = C A. In a cohort with balanced classes all
threes may be red; one with balanced groups has no correlation of class and attribute. Labels include label noise, as
for selector=oracle_diverse.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.balanced_cohort import BalancedCohort


@dataclass(frozen=True)
class OracleGroups(BalancedCohort):
    """A selector that balances cohorts over the true (class, attribute) groups, which no server can know (an oracle).

    A client's logged score is the negative imbalance of its samples over these groups.
    """

    sample_counts_signal: ClassVar[str] = "group_counts"
    needs: ClassVar[frozenset[str]] = frozenset({"group_counts"})
