"""The diverse oracle, a yardstick: it knows everybody's classes, and puts together a cohort that has them all equally.

    S_1 = a client by chance,   S_{j+1} = S_j + argmin_k sum_c (share of class c in S_j + k, less 1/C)^2   (`even.py`)

Label counts are of the labels as they are given: noise makes skewed clients look balanced. Fed-CBS draws by the same
imbalance. Where attributes go with classes, selector=oracle_groups sees them, too.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.even import EvenCohort


@dataclass(frozen=True)
class OracleDiverse(EvenCohort):
    """The yardstick. A score is the negative imbalance of a cohort of that client alone."""

    counts: ClassVar[str] = "label_counts"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
