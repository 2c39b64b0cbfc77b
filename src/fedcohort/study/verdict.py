"""The verdict on a study: on each method in each setting, on each setting, and over all settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcohort.results.difference import EMPTY_DIFFERENCE, Difference, Mean
from fedcohort.results.headroom import BestMethod, HeadroomShare
from fedcohort.results.overall import MeanRank
from fedcohort.results.verdict import Rules, TestPower, name_verdict, sign_of_verdict
from fedcohort.study.definition import METHOD, ConditionKey

COST_NAMES = ("virtual_s", "bytes", "probe_bytes", "client_flops", "server_flops", "joules")
TARGET_COSTS = ("rounds", "virtual_s", "bytes")


@dataclass(frozen=True)
class PValues:
    """The p-values of a difference after Holm, one for each family of tests; NaN if there is no test.

    Attributes:
        p_within_setting: corrected over all methods of the setting. An oracle, a reference, a bound or a method with
            too few seeds is in no family and keeps its p.
        p_within_method: corrected over all settings of the method, or of its variants; without a family it is p.
        p_in_study: corrected over all methods in all settings; NaN for a row that is in no family.
    """

    p_within_setting: float = math.nan
    p_within_method: float = math.nan
    p_in_study: float = math.nan


@dataclass(frozen=True)
class MethodVerdict:
    """The verdict on a method in a setting.

    Attributes:
        setting: name of the setting.
        method: name of the method.
        role: role of the method in the study.
        value: mean result over its seeds, in the metric's unit.
        mean_last_value: mean over its seeds of the last measured value.
        n_diverged: number of seeds whose result is not finite.
        difference: difference to the baseline; an empty one for the baseline, or without common seeds.
        p_values: p-values of the difference.
        verdict: a verdict of `results.verdict`, with the correction within the setting; "" for the baseline, or without
            common seeds.
        headroom_share: share of the headroom that the method closes; None without headroom, or with few common seeds.
        rank: rank among methods and the baseline, 1 for the best; NaN for other roles, and with few seeds.
        costs: mean costs of a run, by name; joules are 0 if they are not measured.
        target: median rounds, seconds and bytes to the target; infinite where half of the seeds or more never met it.
        n_reached_seeds: number of seeds that met the target.
        n_early_ends: number of seeds that completed their rounds before the clock that was to end them.
        n_other_code_seeds: number of seeds whose code behaves differently from the current code (`compare_code.py`).
    """

    setting: str
    method: str
    role: str
    value: Mean
    mean_last_value: float
    n_diverged: int
    difference: Difference
    p_values: PValues
    verdict: str
    headroom_share: HeadroomShare | None
    rank: float
    costs: Mapping[str, float]
    target: Mapping[str, float]
    n_reached_seeds: int
    n_early_ends: int
    n_other_code_seeds: int

    @property
    def sign(self) -> int:
        """1 if the method is better than the baseline, -1 if it is worse, else 0."""
        return sign_of_verdict(self.verdict)

    @property
    def has_difference(self) -> bool:
        """Whether the method has a difference to the baseline."""
        return self.difference is not EMPTY_DIFFERENCE


@dataclass(frozen=True)
class Headroom:
    """The headroom of a setting: the difference of its oracle to the baseline.

    Attributes:
        oracle: name of the oracle with the largest mean difference; "" if no oracle has a difference.
        difference: difference of this oracle; with several oracles and five common seeds or more, that of choosing one
            on the other seeds. None if no oracle has a difference.
        has_headroom: whether the interval, or the mean without an interval, is above 0, the mean is at least the
            minimum effect, and there are enough seeds for a verdict.
        oracles: names of the oracles with enough seeds.
    """

    oracle: str = ""
    difference: Difference | None = None
    has_headroom: bool = False
    oracles: Sequence[str] = ()


@dataclass(frozen=True)
class SettingVerdict:
    """The verdicts on all methods of a setting, with its headroom and the number of seeds that it needs.

    Attributes:
        setting: name of the setting.
        methods: verdicts on the methods with results, in the study's order.
        headroom: gain of the setting's oracle over the baseline.
        power: power of the tests of its methods.
        winner: the best method and its cross-fitted value; None if no method is better.
    """

    setting: str
    methods: Mapping[str, MethodVerdict]
    headroom: Headroom
    power: TestPower
    winner: tuple[str, BestMethod] | None

    def find_better_methods(self) -> list[MethodVerdict]:
        """Return the methods that are significantly better than the baseline, the best first."""
        better_methods = [method for method in self.methods.values() if method.sign > 0 and method.role == METHOD]
        return sorted(better_methods, key=lambda method: -method.difference.mean)

    def find_worse_methods(self) -> list[MethodVerdict]:
        """Return the methods that are significantly worse than the baseline, the worst first."""
        worse_methods = [method for method in self.methods.values() if method.sign < 0 and method.role == METHOD]
        return sorted(worse_methods, key=lambda method: method.difference.mean)

    def has_sure_winner(self, alpha: float) -> bool:
        """Return whether a method is better at significance level `alpha`, corrected over all methods and settings."""
        return any(method.p_values.p_in_study < alpha for method in self.find_better_methods())

    def find_diverged_methods(self, baseline: str) -> list[MethodVerdict]:
        """Return the methods that diverged on more seeds than `baseline`, the worst first; they have no test."""
        n_baseline_diverged_seeds = self.methods[baseline].n_diverged if baseline in self.methods else 0
        diverged_methods = [method for method in self.methods.values() if method.n_diverged > n_baseline_diverged_seeds]
        return sorted((m for m in diverged_methods if m.role == METHOD), key=lambda method: -method.n_diverged)


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
        family = self.family_mean
        return sign_of_verdict(name_verdict(family.mean, family.p, math.nan, rules.min_seeds, rules)) if family else 0


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


@dataclass(frozen=True)
class Verdict:
    """The verdict on a study.

    Attributes:
        settings: verdicts on the settings, by name.
        ranks: ranks of methods over settings; None if there is too little to rank.
        missing_seed_counts: number of the study's seeds without a result, by setting and method.
        collapsing: methods whose mean gain hides large losses (`results.difference.collapses_on_some_seeds`).
    """

    settings: Mapping[str, SettingVerdict]
    ranks: Ranks | None
    missing_seed_counts: Mapping[ConditionKey, int]
    collapsing: frozenset[str] = frozenset()

    @property
    def methods(self) -> list[MethodVerdict]:
        """The verdicts of all methods in all settings, by setting and method."""
        return [method for setting in self.settings.values() for method in setting.methods.values()]

    @property
    def n_tests(self) -> int:
        """Number of tests of methods over all settings, for which `PValues.p_in_study` is corrected."""
        return sum(math.isfinite(method.p_values.p_in_study) for method in self.methods)
