"""Which rows are ranked where, from made-up results."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from fedcohort.results.verdict import adjust_p_by_holm
from fedcohort.study import report
from fedcohort.study.definition import Study
from fedcohort.study.judge import judge_study
from fedcohort.study.ranking import collect_ranked_results, find_shared_settings, rank_and_compare, split_ranked_methods
from fedcohort.study.results import Results
from study.small_study import make_results, write_study

SETTINGS = {name: {"overrides": ["heterogeneity=iid"]} for name in ("a", "b", "c")}
LATE_MEANS = {"random": [0.8] * 4, "flash": [0.9] * 4, "powd": [0.7] * 4}
SEEDS = [0, 1, 2, 3]


def test_a_users_own_method_removes_no_setting_from_the_ranking(tmp_path: Path) -> None:
    """A method with eight of random's twelve runs must not remove the third setting from the ranking."""
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd"], seeds=SEEDS)
    late_means = {"a": {**LATE_MEANS, "mine": [1.0] * 4}, "b": {**LATE_MEANS, "mine": [1.0] * 4}, "c": LATE_MEANS}
    results = make_results(study, late_means)
    rows, few = split_ranked_methods(study, collect_ranked_results(study, results))
    assert (rows, few) == (["random", "flash", "powd"], ["mine"])
    ranks = judge_study(study, results).ranks  # a study's own page has the same rule
    assert ranks is not None
    assert (list(ranks.mean_ranks), list(ranks.rank_table)) == (["flash", "random", "powd"], ["a", "b", "c"])


def test_a_method_with_half_of_the_seeds_in_every_setting_is_ranked(tmp_path: Path) -> None:
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd"], seeds=SEEDS)
    two_seed_method, one_seed_method = {**LATE_MEANS, "mine": [1.0, 1.0]}, {**LATE_MEANS, "mine": [1.0]}
    results = collect_ranked_results(
        study, make_results(study, {"a": two_seed_method, "b": two_seed_method, "c": two_seed_method})
    )
    rows, few = split_ranked_methods(study, results)
    assert (rows, few) == (["random", "flash", "powd", "mine"], [])
    ranks = rank_and_compare(study, results, rows)
    assert ranks is not None
    assert dict(ranks.mean_ranks) == {"mine": 1.0, "flash": 2.0, "random": 3.0, "powd": 4.0}
    assert find_shared_settings(results, rows) == {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    with_one_seed = collect_ranked_results(
        study, make_results(study, {"a": two_seed_method, "b": two_seed_method, "c": one_seed_method})
    )
    assert split_ranked_methods(study, with_one_seed)[1] == ["mine"]


def test_two_own_methods_without_a_common_seed_are_not_both_ranked(tmp_path: Path) -> None:
    """Each method has half of random's seeds, and the two have no common seed."""
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd"], seeds=SEEDS)
    late_means = {
        cell: {**values, "mine": {0: 1.0, 1: 1.0}, "yours": {2: 1.0, 3: 1.0}}
        for cell, values in collect_ranked_results(study, make_results(study, dict.fromkeys("abc", LATE_MEANS))).items()
    }
    assert split_ranked_methods(study, late_means) == (["random", "flash", "powd", "mine"], ["yours"])


def test_a_method_with_few_seeds_is_not_ranked(tmp_path: Path) -> None:
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd"], seeds=SEEDS)
    results = make_results(
        study, {"a": LATE_MEANS, "b": {"random": [0.8] * 4, "flash": [0.8] * 2}, "c": {"random": [0.8] * 4}}
    )
    # random has 12 runs, flash 6, powd 4; random and flash share a, and two seeds of b
    ranked_results = collect_ranked_results(study, results)
    assert split_ranked_methods(study, ranked_results) == (["random", "flash"], ["powd"])
    assert find_shared_settings(ranked_results, ["random", "flash"]) == {"a": SEEDS, "b": [0, 1]}
    assert rank_and_compare(study, ranked_results, ["random"]) is None
    assert judge_study(study, results).ranks is None


def test_the_largest_complete_table_is_ranked(tmp_path: Path) -> None:
    """The table with the most methods times settings is ranked: methods or settings with few results are left out."""
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd", "oort"], seeds=SEEDS)
    two_settings = dict.fromkeys("ab", LATE_MEANS) | {"c": {"random": [0.8] * 4}}
    late_means = {
        name: {**values, "oort": [0.6] * 4} if name == "a" else values for name, values in two_settings.items()
    }
    ranked_results = collect_ranked_results(study, make_results(study, late_means))
    # {a}: four rows; {a, b}: three rows, 6; {a, b, c}: random alone
    assert split_ranked_methods(study, ranked_results) == (["random", "flash", "powd"], ["oort"])
    assert list(find_shared_settings(ranked_results, ["random", "flash", "powd"])) == ["a", "b"]
    with_oort = collect_ranked_results(
        study, make_results(study, {"a": late_means["a"], "b": {"random": [0.8] * 4}, "c": {"random": [0.8] * 4}})
    )
    assert split_ranked_methods(study, with_oort) == (["random", "flash", "powd", "oort"], [])  # 4 against 2 and 3
    separate_tables = collect_ranked_results(
        study, make_results(study, {"a": {"random": [0.8] * 4}, "b": {"flash": [0.9] * 4, "powd": [0.7] * 4}})
    )
    assert split_ranked_methods(study, separate_tables) == (["random"], ["flash", "powd"]), "the baseline is in it"


GAPS = {"a": (0.01, 0.03, 0.02), "b": (0.05, 0.06, 0.07), "c": (0.03, 0.03, 0.03)}  # of flash, by setting and seed


def compare(folder: Path, gaps: Mapping[str, Sequence[float]], powd: float = -0.1, **changes: object) -> dict[str, Any]:
    """Return the claims over all settings on methods that differ from random by `gaps` and `powd` in each setting."""
    settings = {name: {"overrides": ["heterogeneity=iid"]} for name in gaps}
    study = write_study(folder, **{"settings": settings, "methods": ["flash", "powd"], "seeds": [0, 1, 2], **changes})
    base = (0.7, 0.8, 0.75)
    late_means = {
        cell: {
            "random": list(base),
            "flash": [x + gap for x, gap in zip(base, values, strict=True)],
            "powd": [x + powd + 0.001 * i for i, x in enumerate(base)],
        }
        for cell, values in gaps.items()
    }
    return list_claims(study, make_results(study, late_means))


def list_claims(study: Study, results: Results) -> dict[str, Any]:
    """Return which methods are better or worse over all settings, in the order of the page."""
    ranks = judge_study(study, results).ranks
    assert ranks is not None
    signs = {name: result.find_verdict_sign(study.rules) for name, result in ranks.overall_results.items()}
    return {
        "settings": len(ranks.rank_table),
        "first": next(iter(ranks.overall_results.values())),
        "better": [name for name, sign in signs.items() if sign > 0],
        "worse": [name for name, sign in signs.items() if sign < 0],
        "elsewhere": [
            name for name, result in ranks.overall_results.items() if result.find_family_verdict_sign(study.rules) > 0
        ],
    }


def test_a_test_over_settings_has_the_seed_as_its_unit(tmp_path: Path) -> None:
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd"], seeds=[0, 1, 2])
    late_means = {
        cell: {"random": [0.5] * 3, "flash": [0.5 + x for x in values], "powd": [0.4] * 3}
        for cell, values in GAPS.items()
    }
    ranks = judge_study(study, make_results(study, late_means)).ranks
    assert ranks is not None
    contest = ranks.overall_results["flash"]
    means = [0.03, 0.04, 0.04]  # of each seed over the three settings
    assert contest.seeds.mean == pytest.approx(0.11 / 3)
    assert contest.seeds.half_width == pytest.approx(stats.t.ppf(0.975, 2) * stats.sem(means))
    assert contest.seeds.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue), "powd has no p, and Holm counts one"
    assert contest.family_mean is None, "three are too few"


def test_replicated_settings_add_no_evidence(tmp_path: Path) -> None:
    """A copy of a setting is no further sample of settings; in Wilcoxon's test it was one."""
    study = write_study(
        tmp_path, settings={f"c{i}": SETTINGS["a"] for i in range(8)}, methods=["flash", "powd"], seeds=[0, 1, 2]
    )
    setting = {"random": [0.5] * 3, "flash": [0.51, 0.53, 0.52], "powd": [0.52, 0.46, 0.52]}
    ranks = judge_study(study, make_results(study, {f"c{i}": setting for i in range(8)})).ranks
    assert ranks is not None
    ps = adjust_p_by_holm([stats.ttest_1samp(gaps, 0).pvalue for gaps in ([0.01, 0.03, 0.02], [0.02, -0.04, 0.02])])
    assert [ranks.overall_results[row].seeds.p for row in ("flash", "powd")] == pytest.approx(ps)


def test_settings_of_a_family_count_as_one(tmp_path: Path) -> None:
    settings = {name: {**SETTINGS["a"], "family": "x" if name in "ab" else name} for name in "abc"}
    study = write_study(tmp_path, settings=settings, methods=["flash", "powd"], seeds=[0, 1, 2])
    late_means = {
        cell: {"random": [0.5] * 3, "flash": [0.5 + x for x in values], "powd": [0.4] * 3}
        for cell, values in GAPS.items()
    }
    ranks = judge_study(study, make_results(study, late_means)).ranks
    assert ranks is not None
    # seed 0: ((.01 + .05) / 2 + .03) / 2 = .03, seeds 1 and 2: (.045 + .03) / 2
    assert ranks.overall_results["flash"].seeds.mean == pytest.approx((0.03 + 0.0375 + 0.0375) / 3)


def test_methods_that_are_better_over_the_settings(tmp_path: Path) -> None:
    claims = compare(tmp_path, GAPS)
    assert (claims["better"], claims["worse"], claims["first"].family_mean) == (["flash"], ["powd"], None)
    assert (claims["settings"], claims["first"].seeds.n) == (3, 3)
    assert claims["first"].seeds.mean == pytest.approx(0.11 / 3)
    assert compare(tmp_path, GAPS, verdict={"min_difference": 0.11})["worse"] == []
    assert compare(tmp_path, GAPS, verdict={"min_difference": 0.037})["better"] == []


def test_two_seeds_are_too_few_for_a_test(tmp_path: Path) -> None:
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd"])
    late_means = {cell: {"random": [0.7, 0.8], "flash": [0.9, 0.95], "powd": [0.6, 0.6]} for cell in SETTINGS}
    results = make_results(study, late_means)
    claims = list_claims(study, results)
    assert (claims["first"].seeds.n, claims["better"], claims["worse"]) == (2, [], [])
    report.write_study_report(study, results)
    assert "no method can be tested: 2 common seeds are too few." in (tmp_path / "README.md").read_text()


def test_a_claim_about_new_settings_has_its_own_test(tmp_path: Path) -> None:
    """Six families: each seed's mean is far above 0, and the families differ by more than their mean."""
    different_gaps = {
        name: (gap, gap + 0.001, gap + 0.002) for name, gap in zip("abcdef", (0.2, 0.1, -0.1, 0, 0, 0), strict=True)
    }
    claims = compare(tmp_path, different_gaps)
    assert (claims["better"], claims["elsewhere"], claims["first"].family_mean.n) == (["flash"], [], 6)
    similar_gaps = {name: (0.03 + i / 1000,) * 2 + (0.031,) for i, name in enumerate("abcdef")}
    assert compare(tmp_path, similar_gaps)["elsewhere"] == ["flash"]


def test_a_diverged_run_has_no_test(tmp_path: Path) -> None:
    assert compare(tmp_path, {**GAPS, "c": (0.03, math.nan, 0.03)})["better"] == []


def test_equal_methods_share_the_best_mean_rank(tmp_path: Path) -> None:
    study = write_study(tmp_path, settings=SETTINGS, methods=["flash", "powd"], seeds=SEEDS)
    first = {"random": [0.7] * 4, "flash": [0.9] * 4, "powd": [0.8] * 4}
    second = {"random": [0.7] * 4, "flash": [0.8] * 4, "powd": [0.9] * 4}
    judgement = judge_study(study, make_results(study, {"a": first, "b": second}))
    assert judgement.ranks is not None
    assert judgement.ranks.find_rank_positions() == {"flash": 1, "powd": 1, "random": 3}
