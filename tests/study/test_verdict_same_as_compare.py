"""`fedcohort compare` and `fedcohort study report` give the same verdicts on the same runs."""

import math

import pytest

from fedcohort.results.compare import Options, compare
from fedcohort.results.frame import Frames, read_study
from fedcohort.study.definition import BASELINE, METHOD, ORACLE
from fedcohort.study.definition_file import load
from fedcohort.study.judge import judge_settings
from fedcohort.study.results import load as load_results
from yaml_words import ROOT


@pytest.mark.parametrize("name", ["paper_fedmaba", "norms_digits"])
def test_both_give_the_same_verdict(name: str) -> None:
    """Difference, p after Holm and verdict of each method and oracle in each setting, from the committed files."""
    study = load(ROOT / "studies" / name)
    frames = read_study(study.folder)
    roles = frames.runs["condition"].map(study.role_of)
    runs = frames.runs.assign(oracle=roles == ORACLE)[roles.isin((METHOD, ORACLE, BASELINE))]
    entries = compare(Frames(runs, frames.curves), Options(study.metric, study.baseline, rules=study.rules)).entries
    methods = {
        (method.setting, method.method): method
        for method in judge_settings(study, load_results(study)).methods
        if method.role in (METHOD, ORACLE)
    }
    assert set(methods) == {pair for pair in entries if pair[1] != study.baseline}
    assert {method.verdict for method in methods.values()} >= {"better", "not settled"}
    for pair, method in methods.items():
        entry = entries[pair]
        assert entry.difference is not None
        assert entry.verdict == method.verdict, pair
        assert entry.difference.mean == pytest.approx(method.over.mean, abs=1e-6)
        assert entry.p == pytest.approx(method.ps.in_setting, abs=1e-6) or math.isnan(entry.p), pair
