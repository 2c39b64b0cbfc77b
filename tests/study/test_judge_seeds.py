"""Methods and oracles that ran on few seeds, and the number of seeds that a difference needs."""

import math
from pathlib import Path

import pytest

from fedcohort.study.judge import judge_study
from study.small_study import make_results, write_study
from study.test_judge import BASE, LATE_MEANS, METHODS


def test_rows_are_ranked_on_the_seeds_that_they_share(tmp_path: Path) -> None:
    """Of all seeds random's mean would be first in `equal`: .95 to .9; on the two that powd has, too, it is last."""
    study = write_study(tmp_path, **(METHODS | {"seeds": [0, 1, 2]}))
    late_means = {"random": [0.7, 0.7, 1.45], "flash": [0.9, 0.9, 0.9], "powd": [0.8, 0.8]}
    verdict = judge_study(study, make_results(study, {"equal": late_means, "noisy": late_means}))
    assert verdict.ranks is not None
    assert dict(verdict.ranks.mean_ranks) == {"flash": 1.0, "powd": 2.0, "random": 3.0}
    # a row that was just begun has no part in it, and costs the others no seed
    with_one_seed = {**late_means, "mine": [0.99]}
    second_verdict = judge_study(study, make_results(study, {"equal": with_one_seed, "noisy": with_one_seed}))
    assert second_verdict.ranks is not None
    assert set(second_verdict.ranks.mean_ranks) == {"flash", "powd", "random"}


def test_an_oracle_with_few_seeds_is_not_the_best(tmp_path: Path) -> None:
    study = write_study(tmp_path, **(METHODS | {"seeds": [0, 1, 2]}))
    setting = {"random": [0.8, 0.8, 0.8], "oracle_clean": [0.9, 0.91, 0.92], "oracle_diverse": [0.99]}
    assert (
        judge_study(study, make_results(study, {"equal": setting})).settings["equal"].headroom.oracle == "oracle_clean"
    )
    late_means = {**setting, "oracle_clean": [0.9]}
    assert (
        judge_study(study, make_results(study, {"equal": late_means})).settings["equal"].headroom.oracle
        == "oracle_diverse"
    )


def test_a_share_of_headroom_uses_the_methods_seeds(tmp_path: Path) -> None:
    """The oracle has too few seeds with two, and does not win on the three seeds of `mine`, unlike on the others."""
    study = write_study(tmp_path, **(METHODS | {"seeds": list(range(9))}))
    gaps = [-0.01, -0.01, -0.02, 0.1, 0.11, 0.1, 0.1, 0.1, 0.1]
    late_means = {"random": [0.8] * 9, "oracle_clean": [0.8 + gap for gap in gaps], "mine": [0.81, 0.82, 0.83]}
    cell = judge_study(study, make_results(study, {"equal": {**late_means, "flash": [0.9, 0.91]}})).settings["equal"]
    assert cell.headroom.has_headroom
    assert [cell.methods[row].headroom_share for row in ("mine", "flash")] == [None, None]
    full_share = cell.methods["oracle_clean"].headroom_share
    assert full_share is not None
    assert full_share.share == 1.0


def test_a_method_with_one_seed_does_not_change_the_ranks(tmp_path: Path) -> None:
    study = write_study(tmp_path, seeds=[0, 1, 2], **METHODS)
    late_means = {"equal": {**LATE_MEANS["equal"], "mine": [0.99]}}
    rows = judge_study(study, make_results(study, late_means)).settings["equal"].methods
    assert math.isnan(rows["mine"].rank)
    assert rows["flash"].rank == 1.0


def test_a_method_with_few_seeds_is_not_missing_the_others(tmp_path: Path) -> None:
    study = write_study(tmp_path, seed_counts={"oracle_clean": 1}, **METHODS)
    verdict = judge_study(study, make_results(study, {"equal": {"random": [0.8], "oracle_clean": [0.9]}}))
    assert verdict.missing_seed_counts["equal", "random"] == 1
    assert ("equal", "oracle_clean") not in verdict.missing_seed_counts
    assert verdict.missing_seed_counts["noisy", "oracle_clean"] == 1


def test_an_oracle_with_few_seeds_does_not_define_the_headroom(tmp_path: Path) -> None:
    """Three of seven seeds are less than half; of six they are half, and it is the best."""
    study = write_study(tmp_path, **(METHODS | {"seeds": list(range(7))}))
    for n, best in ((7, "oracle_clean"), (6, "oracle_diverse")):
        late_means = {
            "random": [0.8] * n,
            "oracle_clean": [0.9, 0.91] * 3 + [0.9],
            "oracle_diverse": [0.99, 0.98, 0.99],
        }
        cell = judge_study(study, make_results(study, {"equal": late_means})).settings["equal"]
        assert cell.headroom.oracle == best
        assert ("oracle_diverse" in cell.headroom.oracles) == (n == 6)


def test_a_copy_of_the_baseline_does_not_change_the_seeds_needed(tmp_path: Path) -> None:
    """Its differences are 0 on every seed, which must not lower the typical spread and the number of seeds needed."""
    study = write_study(tmp_path, **METHODS)
    late_means = {"random": BASE, "flash": LATE_MEANS["equal"]["flash"]}
    without_copy, with_copy = (
        judge_study(study, make_results(study, {"equal": {**late_means, **copies}})) for copies in ({}, {"powd": BASE})
    )
    assert with_copy.settings["equal"].power.seeds_needed == without_copy.settings["equal"].power.seeds_needed
    setting = judge_study(study, make_results(study, {"equal": {"random": BASE, "powd": BASE}})).settings["equal"]
    assert setting.power.seeds_needed is None


def test_a_method_with_few_seeds_does_not_change_the_seeds_needed(tmp_path: Path) -> None:
    """Two seeds of a user's own method must not change the verdicts on the other methods."""
    study = write_study(tmp_path, seeds=[0, 1, 2], **METHODS)
    without_method, with_method = (
        judge_study(study, make_results(study, {"equal": {**LATE_MEANS["equal"], **added_rows}}))
        .settings["equal"]
        .power.seeds_needed
        for added_rows in ({}, {"mine": [0.2, 0.9]})
    )
    assert without_method == with_method


def test_the_best_oracle_is_selected_on_the_other_seeds(tmp_path: Path) -> None:
    """Each is better by .2 on one seed: whichever is chosen without that seed gains .1 there."""
    study = write_study(tmp_path, seeds=list(range(6)), **METHODS)
    late_means = {"random": [0.5] * 6, "oracle_clean": [0.6] * 5 + [0.7], "oracle_diverse": [0.7] + [0.6] * 5}
    headroom = judge_study(study, make_results(study, {"equal": late_means})).settings["equal"].headroom
    assert headroom.difference is not None
    assert headroom.difference.mean == pytest.approx(0.1)
    assert headroom.has_headroom


def test_a_method_with_too_few_seeds_is_in_no_family(tmp_path: Path) -> None:
    study = write_study(tmp_path, seeds=[0, 1, 2], **METHODS)
    late_means = {"equal": {"random": BASE, "flash": LATE_MEANS["equal"]["flash"], "powd": [0.7, 0.72]}}
    verdict = judge_study(study, make_results(study, late_means))
    flash = verdict.settings["equal"].methods["flash"]
    assert (flash.p_values.p_within_setting, flash.p_values.p_in_study) == (flash.difference.p, flash.difference.p)
    assert verdict.n_tests == 1
