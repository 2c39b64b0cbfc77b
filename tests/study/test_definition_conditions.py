"""The conditions of a study, including a user's selector, and what the row of a run stores."""

import json
from pathlib import Path

import pytest

from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.record.history import read_history
from fedcohort.study.definition import list_conditions
from fedcohort.study.results import Results, mark_oracle_methods
from fedcohort.study.results import load_results as load_results
from fedcohort.study.runner import StudyRunner
from fedcohort.study.user_methods import add_user_methods
from study.small_study import run_study, write_study


def test_a_users_own_selector_is_a_method_of_the_study(tmp_path: Path) -> None:
    study = add_user_methods(write_study(tmp_path / "tiny"), ["random", "ucb_cs"], CONFIGS)
    rows = [place.method for place in list_conditions(study, ["equal"], ["ucb_cs"])]
    assert rows == ["random", "ucb_cs"]
    assert study.find_role("ucb_cs") == "method"


def test_a_reference_of_equal_bytes_is_added_by_its_name(tmp_path: Path) -> None:
    """Its role is in its name, so that pages without its definition do not test it; its runs are kept as the user's."""
    changes = {"methods": [{"wide": ["selector=powd", "cohort=6"]}]}
    study = add_user_methods(write_study(tmp_path / "tiny", **changes), ["same_bytes:wide"], CONFIGS)
    reference = study.same_cost["same_bytes:wide"]
    assert (reference.method, reference.cost_name, reference.overrides) == (
        "wide",
        "bytes",
        ("selector=random", "cohort=6"),
    )
    rows = [condition.method for condition in list_conditions(study, ["equal"], ["same_bytes:wide"])]
    assert rows == ["random", "wide", "same_bytes:wide"]
    assert study.find_role("same_bytes:wide") == "reference"
    assert study.is_user_method("same_bytes:wide")
    assert not study.is_user_method("wide")
    for name in ("random", "same_bytes:wide"):
        with pytest.raises(
            OptionError, match=r"methods must be some of|needs a selector other than random and a study"
        ):
            add_user_methods(study, [f"same_bytes:{name}"], CONFIGS)
    with pytest.raises(OptionError, match="a study without horizon"):
        add_user_methods(write_study(tmp_path / "tiny", horizon=2), ["same_bytes:round_robin"], CONFIGS)


def test_a_users_own_selector_with_oracle_signals_is_an_oracle(tmp_path: Path) -> None:
    study = write_study(
        tmp_path / "tiny", settings={"noisy": {"overrides": ["heterogeneity=noise_bimodal"]}}, seeds=[0]
    )
    extended = add_user_methods(study, ["oracle_clean", "ucb_cs"], CONFIGS)
    assert extended.find_role("oracle_clean") == "method"
    results = mark_oracle_methods(extended, run_study(extended, tmp_path / "logs"))
    assert [results.find_role(row) for row in ("random", "oracle_clean", "ucb_cs")] == [
        "baseline",
        "oracle",
        "method",
    ]


def test_a_method_with_few_seeds_runs_only_on_these_unless_named(tmp_path: Path) -> None:
    study = write_study(tmp_path, seed_counts={"round_robin": 1})
    runner = StudyRunner(study, Results(tmp_path), CONFIGS, tmp_path / "logs", False, print)
    planned = [
        (place.setting, place.method, seed) for place, seed in runner.find_progress(list_conditions(study), [0, 1]).runs
    ]
    assert [key for key in planned if key[1] == "round_robin"] == [
        ("equal", "round_robin", 0),
        ("noisy", "round_robin", 0),
    ]
    assert ("equal", "random", 1) in planned
    conditions = list_conditions(study, None, ["round_robin"])
    runs = runner.find_progress(conditions, [0, 1]).runs
    assert [seed for place, seed in runs if place.method == "round_robin" and place.setting == "equal"] == [0, 1]


def test_a_setting_can_list_its_methods_unless_others_are_named(tmp_path: Path) -> None:
    settings = {
        "equal": {"overrides": ["heterogeneity=iid"], "methods": ["powd"]},
        "noisy": {"overrides": ["heterogeneity=noise15"]},
    }
    study = write_study(tmp_path, settings=settings, methods=["round_robin", "powd"])
    planned = [(place.setting, place.method) for place in list_conditions(study)]
    assert planned == [("equal", "random"), ("equal", "powd"), *(("noisy", row) for row in study.overrides)]
    conditions = [(place.setting, place.method) for place in list_conditions(study, ["equal"], ["round_robin"])]
    assert conditions == [("equal", "random"), ("equal", "round_robin")]
    extended = add_user_methods(study, ["ucb_cs"], CONFIGS)
    assert ("equal", "ucb_cs") in [(place.setting, place.method) for place in list_conditions(extended)]


def test_reward_correlations_are_kept_without_client_evaluations(tmp_path: Path) -> None:
    """The correlations that FLASH's run logs, of its reward with the rates of wrong labels, here 0 or .9."""
    settings = {"noisy": {"overrides": ["heterogeneity=noise_bimodal", "device=shifted_exponential"]}}
    study = write_study(tmp_path / "studies" / "tiny", methods=["flash"], settings=settings)
    work = StudyRunner(study, load_results(study), CONFIGS, tmp_path / "logs", True, list[str]().append)
    work.run_conditions(list_conditions(study), [0])
    results = load_results(study)
    correlations = json.loads(results.rows["noisy", "flash", 0]["follows"])
    assert {"score_noise", "exploit_noise", "reward_noise", "reward_samples"} <= set(correlations)
    (folder,) = [path for path in (tmp_path / "logs").rglob("journal.jsonl") if "flash" in path.parent.name]
    reward_noise = read_history(folder.parent).metrics["select/reward_noise"]
    assert correlations["reward_noise"] == pytest.approx(reward_noise.mean(), abs=1e-4)
    assert reward_noise.notna().any()
    assert json.loads(results.rows["noisy", "random", 0]["follows"]) == {}
