"""The numbers of a report, by hand, from made-up results."""

import math
from pathlib import Path

import pytest

from fedcohort.results.compare import CellResult
from fedcohort.results.difference import Difference, estimate_mean
from fedcohort.study.judge import adjust_p_values, judge_study
from fedcohort.study.results import load_results
from fedcohort.study.same_cost import compare_with_references
from study.small_study import make_results, write_study

BASE = [0.80, 0.81, 0.82]
# differences of `flash` to it, and of the oracles, seed by seed
LATE_MEANS = {
    "equal": {
        "random": BASE,
        "flash": [0.82, 0.84, 0.83],  # +.02 +.03 +.01
        "powd": [0.79, 0.80, 0.78],  # -.01 -.01 -.04
        "oracle_clean": [0.8999, 0.9101, 0.92],  # +.0999 +.1001 +.1
        "oracle_diverse": [0.81, 0.81, 0.82],
        "full": [0.90, 0.95, 0.99],
    },
    "noisy": {
        "random": BASE,
        "flash": [0.8999, 0.9101, 0.92],
        "powd": [0.81, 0.80, 0.82],  # +.01 -.01 0
        "oracle_clean": [0.85, 0.80, 0.82],  # +.05 -.01 0
    },
}
METHODS = {"methods": ["flash", "powd"], "oracles": ["oracle_clean", "oracle_diverse"], "references": ["full"]}


def p_of(t: float) -> float:
    """With n = 3 the paired t has two degrees of freedom, where P(|T| > t) = 1 - t / sqrt(t^2 + 2)."""
    return 1 - t / math.sqrt(t * t + 2)


def test_differences_headroom_and_holm_corrected_p(tmp_path: Path) -> None:
    verdict = judge_study(study := write_study(tmp_path, **METHODS), make_results(study, LATE_MEANS))
    equal_setting, noisy = verdict.settings["equal"], verdict.settings["noisy"]
    flash = equal_setting.methods["flash"]
    assert flash.has_difference
    # mean .02, deviation .01: t = .02 sqrt(3) / .01
    assert flash.difference.mean == pytest.approx(0.02)
    assert flash.difference.std == pytest.approx(0.01)
    assert flash.difference.p == pytest.approx(p_of(2 * math.sqrt(3)))
    # of the two methods of a setting flash has the smaller p, times 2; of flash's two settings this one has the larger
    expected_p = p_of(0.1 * math.sqrt(3) / 1e-4)
    assert flash.p_values.p_within_setting == pytest.approx(2 * p_of(2 * math.sqrt(3)))
    assert flash.p_values.p_within_method == pytest.approx(p_of(2 * math.sqrt(3)))
    assert noisy.methods["flash"].p_values.p_within_setting == pytest.approx(2 * expected_p, rel=1e-3)
    assert (flash.sign, noisy.methods["flash"].sign, equal_setting.methods["powd"].sign) == (0, 1, 0)
    # the best oracle is clean: .1; flash closes a fifth of it, powd, at -.02, none; `full` is no oracle
    assert equal_setting.headroom.oracle == "oracle_clean"
    assert equal_setting.headroom.has_headroom
    shares = [
        method.headroom_share.share
        for row in ("flash", "powd", "full")
        if (method := equal_setting.methods[row]).headroom_share is not None
    ]
    assert shares == pytest.approx([0.2, -0.2, (0.1 + 0.14 + 0.17) / 3 / 0.1])
    # without an oracle that is significantly above 0 there is no headroom to close
    assert noisy.headroom.oracle == "oracle_clean"
    assert not noisy.headroom.has_headroom
    assert noisy.methods["flash"].headroom_share is None
    assert [method.method for method in noisy.find_better_methods()] == ["flash"]
    assert not equal_setting.find_better_methods()


def test_one_correction_over_all_methods_and_cells(tmp_path: Path) -> None:
    verdict = judge_study(study := write_study(tmp_path, **METHODS), make_results(study, LATE_MEANS))
    # four tests of the two methods in two settings, without oracles: flash in `noisy` has the smallest p, then flash in
    # `equal`, t = .02 sqrt(3) / .01, then powd there, mean -.02, deviation sqrt(3) / 100: t = 2; powd in `noisy` has 0
    flash, powd = (verdict.settings["equal"].methods[row] for row in ("flash", "powd"))
    assert verdict.n_tests == 4
    assert verdict.settings["noisy"].methods["flash"].p_values.p_in_study == pytest.approx(
        4 * p_of(0.1 * math.sqrt(3) / 1e-4), rel=1e-3
    )
    assert flash.p_values.p_in_study == pytest.approx(3 * p_of(2 * math.sqrt(3)))
    assert powd.p_values.p_in_study == pytest.approx(2 * p_of(2.0))
    assert math.isnan(verdict.settings["equal"].methods["oracle_clean"].p_values.p_in_study)
    assert verdict.settings["noisy"].has_sure_winner(0.05)
    assert not verdict.settings["noisy"].has_sure_winner(1e-6)


def test_ranks_and_numbers_of_seeds(tmp_path: Path) -> None:
    verdict = judge_study(study := write_study(tmp_path, **METHODS), make_results(study, LATE_MEANS))
    equal_setting = verdict.settings["equal"]
    # flash is first on each seed, random second, powd third; oracles have no rank
    ranks = {row: method.rank for row, method in equal_setting.methods.items() if math.isfinite(method.rank)}
    assert ranks == {"random": 2.0, "flash": 1.0, "powd": 3.0}
    # deviations of the methods: flash .01, powd sqrt(3) / 100; the median is between: (1 + sqrt(3)) / 200 = .01366
    # a true difference of .01 is .732 of it, which 17 seeds show with a chance of 80 %
    assert equal_setting.power.seeds_needed == 17
    assert verdict.ranks is not None
    assert list(verdict.ranks.rank_table) == ["equal", "noisy"]
    # the settings' means: flash, random, powd; and in `noisy` flash, then random and powd, both .81, share 2 and 3
    assert dict(verdict.ranks.mean_ranks) == {"flash": 1.0, "random": 2.25, "powd": 2.75}


def test_a_loss_is_judged_like_its_negative_as_an_accuracy(tmp_path: Path) -> None:
    """Losses are 1 - accuracy: the same differences, ranks, headroom and gains at equal cost, as smaller is better."""
    same_cost = {"random_same": {"of": "flash", "equal": "bytes"}}
    accuracies = {name: {**methods, "random_same": methods["random"]} for name, methods in LATE_MEANS.items()}
    losses = {name: {m: [1 - x for x in v] for m, v in methods.items()} for name, methods in accuracies.items()}
    verdicts, gains = [], list[float]()
    for metric, late_means in (("test/acc", accuracies), ("test/loss", losses)):
        study = write_study(tmp_path / metric, **METHODS, metric=metric, same_cost=same_cost)
        results = make_results(study, late_means)
        verdicts.append(judge_study(study, results))
        for comparison in compare_with_references(study, results):
            assert isinstance(comparison["difference"], Difference)
            gains.append(comparison["difference"].mean)
    of_accuracy, of_loss = verdicts
    assert of_accuracy.ranks is not None
    assert of_loss.ranks is not None
    assert of_loss.ranks.rank_table == of_accuracy.ranks.rank_table
    assert gains[len(gains) // 2 :] == pytest.approx(gains[: len(gains) // 2])
    assert gains[0] != 0
    for method, loss_method in zip(of_accuracy.methods, of_loss.methods, strict=True):
        assert loss_method.difference.mean == pytest.approx(method.difference.mean, abs=1e-12, nan_ok=True)
        assert (loss_method.method, loss_method.sign) == (method.method, method.sign)
        assert loss_method.rank == pytest.approx(method.rank, nan_ok=True)
        assert loss_method.value.mean == pytest.approx(1 - method.value.mean)
    for name, setting in of_accuracy.settings.items():
        assert of_loss.settings[name].headroom.oracle == setting.headroom.oracle
        assert of_loss.settings[name].headroom.has_headroom == setting.headroom.has_headroom
    flash_results = [v.ranks.overall_results["flash"].seeds.mean for v in verdicts if v.ranks]
    assert flash_results[1] == pytest.approx(flash_results[0])


def test_equal_differences_have_no_p_in_single_precision_either(tmp_path: Path) -> None:
    """Three seeds, each 1/60 better: as written to curves.parquet they differ in the eighth digit."""
    study = write_study(tmp_path, **METHODS)
    late_means = {"random": [0.70, 0.80, 0.90], "flash": [x + 1 / 60 for x in (0.70, 0.80, 0.90)]}
    make_results(study, {"equal": late_means}).save_files()
    flash = judge_study(study, load_results(study)).settings["equal"].methods["flash"]
    assert flash.has_difference
    assert flash.difference.mean == pytest.approx(1 / 60)
    assert (math.isnan(flash.difference.p), flash.sign) == (True, 0)


def test_a_diverged_run_ranks_last(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    late_means = {**LATE_MEANS, "noisy": {**LATE_MEANS["noisy"], "flash": [0.9, math.nan, 0.9]}}
    ranks = judge_study(study, make_results(study, late_means)).ranks
    assert ranks is not None
    # in `equal` flash, random, powd; in `noisy` random and powd share 1 and 2, and flash is third
    assert dict(ranks.mean_ranks) == {"random": 1.75, "flash": 2.0, "powd": 2.25}
    assert (
        ranks.overall_results["flash"].find_verdict_sign(study.rules),
        math.isnan(ranks.overall_results["flash"].seeds.p),
    ) == (
        0,
        True,
    )


def test_missing_runs_are_listed(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    verdict = judge_study(study, make_results(study, {"equal": {"random": [0.8], "flash": [0.9]}}))
    assert verdict.missing_seed_counts["equal", "random"] == 1
    assert verdict.missing_seed_counts["noisy", "flash"] == 2
    assert verdict.missing_seed_counts["noisy", "bound:clean"] == 2
    flash = verdict.settings["equal"].methods["flash"]
    assert flash.sign == 0
    assert math.isnan(flash.p_values.p_within_setting)
    assert verdict.settings["equal"].power.seeds_needed is None
    assert verdict.ranks is None


def test_a_method_without_the_baseline_is_not_judged(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    cell = judge_study(study, make_results(study, {"equal": {"flash": [0.9, 0.8]}})).settings["equal"]
    assert cell.methods["flash"].has_difference is False
    assert cell.headroom.difference is None
    assert not cell.find_better_methods()


def test_a_verdict_needs_a_minimum_difference_and_enough_seeds(tmp_path: Path) -> None:
    small = [0.8029, 0.8130, 0.8231]  # +.0029 +.003 +.0031: t = 52
    late_means = {"equal": {"random": BASE, "flash": small}}
    for rules, sign in (
        ({"min_difference": 0.0}, 1),
        ({"min_difference": 0.0029}, 1),
        ({"min_difference": 0.0031}, 0),
        ({"min_difference": 0, "min_seeds": 4}, 0),
        ({"min_difference": 0, "alpha": 1e-4}, 0),
    ):
        study = write_study(tmp_path, verdict=rules, **METHODS)
        assert judge_study(study, make_results(study, late_means)).settings["equal"].methods["flash"].sign == sign


def test_variants_are_corrected_together(tmp_path: Path) -> None:
    """Two variants in two settings give four tests, as many as in the correction over all methods."""
    study = write_study(tmp_path, variants={"tries": ["flash", "powd"]}, **METHODS)
    settings = judge_study(study, make_results(study, LATE_MEANS)).settings
    for cell in settings.values():
        for row in ("flash", "powd"):
            assert cell.methods[row].p_values.p_within_method == cell.methods[row].p_values.p_in_study
    assert settings["equal"].methods["flash"].p_values.p_within_method == pytest.approx(3 * p_of(2 * math.sqrt(3)))
    # an oracle is in no family
    oracle = settings["equal"].methods["oracle_clean"]
    assert oracle.p_values.p_within_setting == pytest.approx(p_of(0.1 * math.sqrt(3) / 1e-4), rel=1e-3)


def test_a_users_own_method_does_not_change_the_others(tmp_path: Path) -> None:
    """A user's method with many seeds must not remove the ranks and the headroom of methods with fewer seeds."""
    study = write_study(tmp_path, seeds=[0, 1, 2], **METHODS)
    mine_rows = {"random": [*BASE, *[0.8] * 7], "mine": [0.9, 0.95] * 5}
    without_mine, with_mine = (
        judge_study(study, make_results(study, {cell: {**values, **user_rows} for cell, values in LATE_MEANS.items()}))
        for user_rows in ({}, mine_rows)
    )
    assert with_mine.ranks is not None
    assert without_mine.ranks is not None
    assert set(with_mine.ranks.mean_ranks) == {*without_mine.ranks.mean_ranks, "mine"}
    for cell in LATE_MEANS:
        before, after = without_mine.settings[cell], with_mine.settings[cell]
        assert after.headroom.oracle == before.headroom.oracle
        assert after.headroom.difference is not None
        assert before.headroom.difference is not None
        assert after.headroom.difference.mean == before.headroom.difference.mean
        assert all(math.isfinite(after.methods[row].rank) for row in ("random", "flash", "powd"))


def test_the_oracle_that_a_setting_names_defines_the_headroom(tmp_path: Path) -> None:
    """Not the one whose mean is larger, which three seeds don't show."""
    study = write_study(tmp_path, settings={"equal": {"overrides": [], "oracle": "oracle_clean"}}, **METHODS)
    spread_means = [0.80, 0.81, 1.03]
    late_means = {"random": BASE, "oracle_clean": [0.85, 0.86, 0.875], "oracle_diverse": spread_means}
    cell = judge_study(study, make_results(study, {"equal": late_means})).settings["equal"]
    assert cell.headroom.has_headroom
    assert cell.headroom.oracle == "oracle_clean"


def test_adjusted_p_values_keep_their_order(tmp_path: Path) -> None:
    """The order of a set differs between processes, so that equal values used to change places on the page."""
    study = write_study(tmp_path, **METHODS)
    difference = Difference(0.1, 0.1, 3, 0.1, p=0.01)
    pairs = [(cell, row) for cell in ("equal", "noisy") for row in ("flash", "powd", "mine")]
    entries = {pair: CellResult({}, estimate_mean([0.5]), difference, p=0.03) for pair in pairs}
    adjusted = adjust_p_values(study, entries)
    assert {pair: p.p_in_study for pair, p in adjusted.items()} == pytest.approx(dict.fromkeys(pairs, 0.06))
    assert list(adjusted) == pairs


def test_a_method_that_collapses_on_some_seeds_is_named(tmp_path: Path) -> None:
    settings: dict[str, dict[str, list[str]]] = {f"c{i}": {"overrides": []} for i in range(10)}
    study = write_study(tmp_path, settings=settings, seeds=list(range(10)), **METHODS)
    base, fall = [0.8 + i / 1000 for i in range(10)], [0.01, 0.012, 0.011, 0.013, 0.01, 0.012, 0.011, 0.013, 0.01, -0.3]
    late_means = {
        "random": base,
        "flash": [x + d for x, d in zip(base, fall, strict=True)],
        "powd": [x * x for x in base],
    }
    assert judge_study(study, make_results(study, dict.fromkeys(settings, late_means))).collapsing == {"flash"}
