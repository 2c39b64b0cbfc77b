"""What a study tunes is checked where it is read, and a space holds what the row has without tuning."""

from pathlib import Path
from typing import Any

import pytest

from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.study import tune
from study.small_study import TUNING, write_study


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 0}, "tune.trials must be an integer in [1, inf), got 0"),
        ({"seeds": [1, 7]}, "tune.seeds must be seeds that the study does not use, unlike 1, got [1, 7]"),
        ({"cells": ["equal"]}, "tune: cells is called settings now: use the new name"),
        ({"settings": ["loud"]}, "tune.settings must be a list of one or more of equal, noisy"),
        ({"metric": "test/acc"}, "tune.metric must be one of server_val/acc, got 'test/acc'"),
        ({"colour": 1}, "tune has no option 'colour'"),
        ({"space": {"flash": {}}}, "tune.space.flash must be one option or more"),
        (
            {"space": {"flash": {"a": 1}}},
            "tune.space.flash.a must be a list of two or more different values",
        ),
        ({"space": {"flash": {"a": {"low": 1, "high": 1}}}}, "tune.space.flash.a must be an interval with low < high"),
        (
            {"space": {"flash": {"a": {"low": 0, "high": 1, "log": True}}}},
            "tune.space.flash.a must be an interval with",
        ),
    ],
)
def test_errors_in_a_search_space_are_reported(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        write_study(tmp_path, tune={**TUNING, **changes})
    assert str(caught.value).startswith(f"{tmp_path / 'study.yaml'}: {message}")


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            {"selector.discount": {"low": 0.8, "high": 1.0}},
            "tune.space.ucb_cs.selector.discount must include the default 0.7",
        ),
        (
            {"selector.colour": [1, 2]},
            "study.yaml: tune.space.ucb_cs has no option 'selector.colour'; its options are",
        ),
        ({"colour": [1, 2]}, "tune.space.ucb_cs has no option 'colour'; its options are"),
    ],
)
def test_a_search_space_contains_the_default(tmp_path: Path, space: dict[str, Any], message: str) -> None:
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    study = write_study(tmp_path, tune={**TUNING, "space": {"ucb_cs": space}})
    assert study.search_space is not None
    with pytest.raises(OptionError, match=message):
        tune.MethodTuning(study, study.search_space, CONFIGS, tmp_path / "logs", print).tune_methods(["ucb_cs"])
