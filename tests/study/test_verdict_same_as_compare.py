"""`fedcohort compare` and `fedcohort study report` give the same verdicts on the same runs, with the same options."""

import math
from dataclasses import replace
from typing import Any

import pytest

from config_options import ROOT
from fedcohort.results.compare import compare_conditions
from fedcohort.results.compare_cost import compare_cost
from fedcohort.results.frame import RunFrames
from fedcohort.results.target import Target
from fedcohort.study.definition import BASELINE, METHOD, ORACLE, Study
from fedcohort.study.definition_file import load_study
from fedcohort.study.judge import judge_settings
from fedcohort.study.results import load_results as load_results
from fedcohort.study.speed import measure_speed_ups
from study.committed_frames import read_study


def read_frames(study: Study) -> RunFrames:
    """The committed runs of the study's settings; the study says which methods are oracles."""
    frames = read_study(study.folder)
    roles = frames.runs["condition"].map(study.find_role)
    is_tested = roles.isin((METHOD, ORACLE, BASELINE)) & frames.runs["setting"].isin(study.settings)
    return RunFrames(frames.runs.assign(oracle=roles == ORACLE)[is_tested], frames.curves)


@pytest.mark.parametrize(
    ("name", "options", "target"),
    [
        ("paper_fedmaba", {}, Target()),
        ("norms_digits", {"result": "best"}, Target(0.8, crossing="first")),
        ("norms_digits", {"result": "last", "horizon": 20}, Target(level=0.9)),
        ("paper_fedbalancer", {}, Target(level=0.8)),  # virtual time ends these runs
    ],
)
def test_compare_and_report_give_the_same_verdict(name: str, options: dict[str, Any], target: Target) -> None:
    """Difference, p after Holm, verdict, target and speed-up of each method and oracle in each setting."""
    study = replace(load_study(ROOT / "studies" / name), **options)
    study = replace(study, settings={key: replace(s, target=target) for key, s in study.settings.items()})
    frames, results = read_frames(study), load_results(study)
    entries = compare_conditions(frames, study.comparison_options).results
    times = compare_cost(frames, study.comparison_options, target, "rounds")
    verdicts = judge_settings(study, results).methods
    methods = {(v.setting, v.method): v for v in verdicts if v.role in (METHOD, ORACLE)}
    assert set(methods) == {pair for pair in entries if pair[1] != study.baseline}
    for pair, method in methods.items():
        entry = entries[pair]
        assert entry.difference is not None
        assert entry.verdict == method.verdict, pair
        assert entry.difference.mean == pytest.approx(method.difference.mean, abs=1e-6)
        assert entry.p == pytest.approx(method.p_values.p_within_setting, abs=1e-6) or math.isnan(entry.p), pair
    for key, row in results.done_runs():
        if key[:2] in methods:
            assert row["target"] == pytest.approx(times.targets[key[0]][key[2]])
    speeds = measure_speed_ups(study, results)
    assert any(pair in methods for pair in speeds["rounds"])
    for axis, speeds_by_pair in speeds.items():
        for pair in set(speeds_by_pair) & set(methods):
            speed, compared_speed = speeds_by_pair[pair], times.results[axis][pair]
            assert compared_speed.speed_up is not None
            assert speed.speed_up.ratio == pytest.approx(compared_speed.speed_up.ratio)
            assert (speed.verdict, speed.speed_up.bound) == (compared_speed.verdict, compared_speed.speed_up.bound), (
                axis,
                pair,
            )
