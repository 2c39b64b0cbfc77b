"""The oracle of groups, a yardstick: it knows everybody's classes and attributes, and has all their pairs equally.

    S_1 = a client by chance,   S_{j+1} = S_j + argmin_k sum_g (share of group g in S_j + k, less 1/G)^2   (`even.py`)

A group is a class with an attribute, as digit 3 in red: G = C A. A cohort with even classes may have all of its threes
red; one with even groups has no correlation of class and attribute. Not a paper's method: clients don't know their
attributes. Labels are as clients see them, as for selector=oracle_diverse.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.even import EvenCohort


@dataclass(frozen=True)
class OracleGroups(EvenCohort):
    """The yardstick. A score is the negative imbalance, over groups, of a cohort of that client alone."""

    counts: ClassVar[str] = "group_counts"
    needs: ClassVar[frozenset[str]] = frozenset({"group_counts"})
