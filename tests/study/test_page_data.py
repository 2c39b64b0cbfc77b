"""The kinds of settings, and the sentences on all of them, from made-up results."""

from pathlib import Path

import pytest

from fedcohort.study import report
from fedcohort.study.judge import judge_study
from fedcohort.study.page_data import classify_setting, summarise_study
from study.small_study import make_results, write_study
from study.test_judge import LATE_MEANS, METHODS

BASE = [0.8, 0.8, 0.8]


@pytest.mark.parametrize(
    ("rows", "kind", "text"),
    [
        ({"flash": [0.9, 0.91, 0.92]}, "won", "**A method is significantly better than random** (paired t-test of the"),
        (  # +.04, .05, .08: p = .042, which one correction doubles
            {"flash": [0.84, 0.85, 0.88], "powd": [0.7, 0.9, 0.8]},
            "open",
            "**No method is significantly better than random** (paired t-tests, Holm over all 2 methods)",
        ),
        ({"oracle_clean": [0.9, 0.91, 0.92]}, "unused", "In 1 setting, the headroom is above 0, and no method"),
        (
            {"oracle_clean": [0.8, 0.801, 0.8]},
            "nothing",
            "In 1, the 95 % interval of every oracle ends at or below 1 p",
        ),
        ({"oracle_clean": BASE}, "nothing", "In 1, the 95 % interval of every oracle ends at or below 1 point."),
        ({"oracle_clean": [0.7, 0.9, 0.8]}, "open", "In 1, headroom is neither shown nor excluded."),
        # the oracle with the largest mean is surely small; the interval of the other reaches far above a point
        (
            {"oracle_clean": [0.801, 0.802, 0.801], "oracle_diverse": [0.84, 0.77, 0.79]},
            "open",
            "Headroom not distinguishable from 0: +0.1 [",
        ),
        ({"bound:clean": [0.9, 0.92, 0.88]}, "open", "The headroom is unknown: no oracle has a difference to random."),
    ],
)
def test_each_setting_is_classified_by_its_headroom_and_verdicts(
    tmp_path: Path, rows: dict[str, list[float]], kind: str, text: str
) -> None:
    study = write_study(tmp_path, **METHODS)
    cell = "noisy" if "bound:clean" in rows else "equal"
    results = make_results(study, {cell: {"random": BASE, "flash": [0.8, 0.79, 0.8], **rows}})
    assert classify_setting(study, judge_study(study, results).settings[cell]) == kind
    report.write_study_report(study, results)
    page = (tmp_path / "README.md").read_text()
    assert text in page
    if "bound:clean" in rows:
        assert "For reference: bound clean +10.0 [5.0, 15.0]." in page


def test_settings_are_counted_by_their_kind(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    results = make_results(study, LATE_MEANS)
    summary = summarise_study(study, results, judge_study(study, results), {})
    assert summary["counts"] == {"won": 1, "unused": 1, "nothing": 0, "open": 0}
    assert (summary["tests"], summary["won_over_all"], summary["seeds"]) == (4, 1, "3")
    assert [setting.setting for _, setting in summary["settings"]] == ["noisy", "equal"]
    assert summary["faster"] is None


def test_different_budgets_are_stated_as_horizons(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    results = make_results(study, LATE_MEANS)
    for (cell, _, _), facts in results.rows.items():
        seconds = "None" if cell == "equal" else "36000"
        facts["budget"] = f"Budget(rounds=60, virtual_s={seconds}, bytes=None, acc=None)"
    summary = summarise_study(study, results, judge_study(study, results), {})
    assert summary["horizons"] == ["60 rounds", "10 h 0 min of virtual time or 60 rounds"]


def test_a_study_without_oracles_says_so_once_and_names_its_tuning(tmp_path: Path) -> None:
    study = write_study(tmp_path, **{**METHODS, "oracles": []})
    results = make_results(study, {cell: {"random": BASE, "flash": [0.8, 0.79, 0.8]} for cell in ("equal", "noisy")})
    report.write_study_report(study, results)
    page = (tmp_path / "README.md").read_text()
    assert page.count("The study has no oracle, so that it does not measure headroom.") == 1
    assert "headroom is unknown" not in page
    assert "tuning.csv" not in page
    (tmp_path / "tuning.csv").write_text("setting,lr,seed_900\n")
    report.write_study_report(study, results)
    assert "The learning rate was tuned before, on other seeds (tuning.csv" in (tmp_path / "README.md").read_text()
