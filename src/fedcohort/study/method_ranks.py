"""The ranks of methods over the settings of a study, and their overall differences to the baseline."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort.results.difference import Difference
from fedcohort.results.overall import MeanRank
from fedcohort.results.verdict import Rules, name_verdict, sign_of_verdict


@dataclass(frozen=True)
class OverallResult:
    """A method compared with the baseline over all settings.

    Attributes:
        seeds: mean difference over these settings; its interval and test treat seeds as units.
        family_mean: mean difference whose interval and test treat families of settings as units, which generalises to
            similar settings; None for fewer than six families.
        worst_decile: mean of the lowest tenth of the settings' mean differences, in the metric's unit.
        worst_setting: name of the setting with the lowest mean difference.
    """

    seeds: Difference
    family_mean: Difference | None
    worst_decile: float
    worst_setting: str

    def find_verdict_sign(self, rules: Rules) -> int:
        """Return 1 for a method that is significantly better over these settings, -1 for a worse one, else 0.

        `rules` has the level of significance and the minimum effect.
        """
        return sign_of_verdict(name_verdict(self.seeds.mean, self.seeds.p, math.nan, self.seeds.n, rules))

    def find_family_verdict_sign(self, rules: Rules) -> int:
        """Return 1 for a method that is significantly better with families as units, -1 for a worse one, else 0.

        `rules` has the level of significance and the minimum effect.
        """
        families = self.family_mean
        return sign_of_verdict(name_verdict(families.mean, families.p, math.nan, rules.seeds, rules)) if families else 0


@dataclass(frozen=True)
class Ranks:
    """The ranks of methods over settings.

    Attributes:
        rank_by_method: mean rank of each method, the best first.
        rank_table: rank of each method in each setting, by setting and method.
        seeds: seeds that are compared in each setting.
        overall_results: comparison of each method with the baseline, the largest mean difference first; empty if the
            baseline is not ranked.
    """

    rank_by_method: Mapping[str, MeanRank]
    rank_table: Mapping[str, Mapping[str, float]]
    seeds: Mapping[str, Sequence[int]]
    overall_results: Mapping[str, OverallResult]

    @property
    def mean_ranks(self) -> dict[str, float]:
        """Mean rank of each method, the best (1) first."""
        return {method: rank.mean for method, rank in self.rank_by_method.items()}

    def find_rank_positions(self) -> dict[str, int]:
        """Return the position of each method by mean rank; methods with equal means share the smallest position."""
        mean_ranks = self.mean_ranks
        return {method: 1 + sum(mean_ranks[m] < mean_ranks[method] for m in mean_ranks) for method in mean_ranks}
