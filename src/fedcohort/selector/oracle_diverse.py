"""Diverse oracle: it knows every client's label counts, and builds a cohort whose classes are balanced.

Not from a paper.

    S_1:  a random client
    S_{j+1}:  S_j + argmin_k sum_c (share of class c in S_j + k, less 1/C)^2 (`balanced_cohort.py`)

Label counts include label noise, which makes skewed clients look balanced. Fed-CBS draws by the same imbalance. Where
attributes correlate with classes, selector=oracle_groups balances both.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.balanced_cohort import BalancedCohort


@dataclass(frozen=True)
class OracleDiverse(BalancedCohort):
    """A selector that builds class-balanced cohorts from true label counts, which no server can know (an oracle).

    A client's logged score is the negative class imbalance of its labels.
    """

    sample_counts_signal: ClassVar[str] = "label_counts"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
