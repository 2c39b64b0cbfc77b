"""The first paragraphs of a study's page: the kind of each setting, counts of settings, and the better methods."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedcohort import units
from fedcohort.results.correction import ANYWHERE, adjust_for_claim
from fedcohort.results.difference import Difference
from fedcohort.results.speed_up import judge_speed
from fedcohort.results.verdict import sign_of
from fedcohort.study.definition import BOUND, METHOD, ORACLE, REFERENCE, Study
from fedcohort.study.formats import number_range
from fedcohort.study.overrides import clock_of
from fedcohort.study.ranking import Ranks
from fedcohort.study.results import Results
from fedcohort.study.speed import Speeds
from fedcohort.study.verdict import MethodVerdict, SettingVerdict, Verdict

# Kinds of settings. WON: a method is better. UNUSED: an oracle is better, and no method. NOTHING: no interval of an
# oracle reaches above `win.worth`. OPEN: none of these.
WON, UNUSED, NOTHING, OPEN = KINDS = ("won", "unused", "nothing", "open")
NamedDifferences = Sequence[tuple[str, Difference]]


@dataclass(frozen=True)
class SettingOutcome:
    """A setting on the page.

    Attributes:
        kind: one of `KINDS`.
        diverged: methods that diverged on more seeds than the baseline.
        above: references, bounds and further oracles whose interval reaches above `win.worth`, the largest first.
    """

    label: str
    kind: str
    verdict: SettingVerdict
    diverged: Sequence[MethodVerdict]
    above: Sequence[MethodVerdict]


@dataclass(frozen=True)
class Overall:
    """The claims over all settings (C4), each list with the largest mean difference first.

    Attributes:
        settings: number of settings.
        seeds: number of common seeds.
        methods: number of methods that are tested.
        families: number of families of settings; 0 where they are too few for a test.
        better: methods that are significantly better over these settings.
        worse: methods that are significantly worse.
        better_over_families: methods that are significantly better over families of settings.
        largest: the method with the largest mean difference.
    """

    settings: int
    seeds: int
    methods: int
    families: int
    better: NamedDifferences
    worse: NamedDifferences
    better_over_families: NamedDifferences
    largest: tuple[str, Difference]


def find_outcome(study: Study, results: Results, verdict: Verdict, speed_ups: Speeds) -> dict[str, Any]:
    """Return the data of the first paragraphs of a page.

    Returns:
        settings: those with results (`SettingOutcome`), by kind.
        counts: number of settings of each kind.
        tests: number of tests of methods in all settings.
        anywhere: number of settings where a method is better after one correction over all tests.
        horizons: budgets of the baseline's runs, in words.
        has_clock: whether virtual time ends runs of a setting.
        seeds: numbers of paired seeds of the methods.
        overall: claims over all settings (`Overall`); None if methods are not compared over them.
        faster: number of settings whose target was met, and of those where a method is faster, by axis; None without
            a target.
    """
    settings = [_setting_outcome(study, setting) for setting in verdict.settings.values()]
    kinds = Counter(setting.kind for setting in settings)
    budgets = dict.fromkeys(row["budget"] for (_, method, _), row in results.done() if method == study.baseline)
    return {
        "settings": sorted(settings, key=lambda setting: (WON, UNUSED, OPEN, NOTHING).index(setting.kind)),
        "counts": {kind: kinds[kind] for kind in KINDS},
        "tests": verdict.tests,
        "anywhere": sum(setting.has_winner(study.rules.alpha) for setting in verdict.settings.values()),
        "horizons": list(dict.fromkeys(_write_horizon(budget) for budget in budgets if budget)),
        "has_clock": any(clock_of((*study.common, *setting.overrides)) for setting in study.settings.values()),
        "seeds": number_range(method.over.n for method in verdict.methods if method.role == METHOD),
        "overall": compare_overall(study, verdict.ranks),
        "faster": _count_faster(study, speed_ups),
    }


def kind_of(study: Study, setting: SettingVerdict) -> str:
    """Return the kind of a setting."""
    if setting.better():
        return WON
    if setting.headroom.is_positive:
        return UNUSED
    oracles = [setting.methods[name].over for name in setting.headroom.oracles]
    # an oracle that equals the baseline on every seed has no interval
    ends = [
        oracle_differences.high if math.isfinite(oracle_differences.half) else oracle_differences.mean
        for oracle_differences in oracles
    ]
    return NOTHING if oracles and all(end <= study.rules.worth for end in ends) else OPEN


def _setting_outcome(study: Study, setting: SettingVerdict) -> SettingOutcome:
    others_above = [
        method
        for method in setting.methods.values()
        if method.role in (BOUND, REFERENCE, ORACLE)
        and method.method not in setting.headroom.oracles
        and method.over.n >= study.rules.seeds
        and method.over.high > study.rules.worth
    ]
    others_above.sort(key=lambda method: -method.over.mean)
    label, diverged = study.settings[setting.setting].label, setting.diverged(study.baseline)
    return SettingOutcome(label, kind_of(study, setting), setting, diverged, others_above)


def _write_horizon(budget: str) -> str:
    """Return `60 rounds`, or `5 h or 300 rounds`, of a budget."""
    limits = dict(re.findall(r"(\w+)=([\d.]+)", budget))
    parts = [f"{units.seconds(float(limits['virtual_s']))} of virtual time"] if "virtual_s" in limits else []
    parts += [units.bytes_(float(limits["bytes"]))] if "bytes" in limits else []
    parts += [f"{limits['rounds']} rounds"] if "rounds" in limits else []
    return " or ".join(parts) or budget


def compare_overall(study: Study, ranks: Ranks | None) -> Overall | None:
    """Return the claims over all settings; None if methods are not compared over them."""
    if ranks is None or not ranks.overall:
        return None
    means = {method: result.seeds.mean for method, result in ranks.overall.items()}
    order = sorted(means, key=lambda method: means[method] if math.isfinite(means[method]) else -math.inf, reverse=True)
    results = {method: ranks.overall[method] for method in order}
    differences = [(method, result.seeds) for method, result in results.items()]
    signs = {method: result.sign(study.rules) for method, result in results.items()}
    n_families = [result.families.n for result in results.values() if result.families]
    return Overall(
        settings=len(ranks.by_setting),
        seeds=differences[0][1].n,
        methods=len(results),
        families=n_families[0] if n_families else 0,
        better=[(method, difference) for method, difference in differences if signs[method] > 0],
        worse=[(method, difference) for method, difference in reversed(differences) if signs[method] < 0],
        better_over_families=[
            (method, result.families)
            for method, result in results.items()
            if result.families and result.sign_elsewhere(study.rules) > 0
        ],
        largest=differences[0],
    )


def _count_faster(study: Study, speed_ups_by_axis: Speeds) -> dict[str, int] | None:
    """Return the settings where a method is faster after one correction over all methods and settings of the axis."""
    if not any(speed_ups_by_axis.values()):
        return None
    counts = {"settings": len({setting for by_pair in speed_ups_by_axis.values() for setting, _ in by_pair})}
    for axis, by_pair in speed_ups_by_axis.items():
        speed_ups = {pair: speed.up for pair, speed in by_pair.items() if study.role_of(pair[1]) == METHOD}
        ps = adjust_for_claim({pair: up.p for pair, up in speed_ups.items()}, ANYWHERE)
        verdicts = {pair: judge_speed(up, ps[pair], study.rules) for pair, up in speed_ups.items()}
        counts[axis] = len({pair[0] for pair, verdict in verdicts.items() if sign_of(verdict) > 0})
    return counts
