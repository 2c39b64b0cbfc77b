"""study.yaml is read, and each mistake in it is named."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from config_options import CONFIGS, ROOT
from fedcohort.errors import OptionError
from fedcohort.study import leaderboard
from fedcohort.study.definition import list_conditions, merge_overrides
from fedcohort.study.definition_file import load_study
from fedcohort.study.results import Results
from fedcohort.study.tasks import check_conditions
from fedcohort.study.user_methods import add_user_methods
from study.small_study import write_study


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": 1}, "there is no option 'colour'; there are "),
        ({"title": ""}, "title must be a text that is not empty, got ''"),
        (
            {"metric": "clients/jain"},
            "metric=clients/jain is measured in no round, as studies have eval.clients_every=0: add ",
        ),
        ({"crossing": "mean"}, "crossing must be one of window, first, got 'mean'"),
        ({"result": "mean"}, "result must be one of late, last, best, got 'mean'"),
        ({"horizon": 0}, "horizon must be an integer in [1, inf) or null, got 0"),
        ({"target": "best_of:random"}, "target must be a number, baseline or null, got 'best_of:random'"),
        ({"target": 80}, "target must be a number in [0, 1], got 80"),
        ({"level": 0.9}, "level=0.9 has no effect without target: baseline. Set it, or leave level out"),
        ({"target": "baseline", "level": 1.5}, "level must be a number in (0, 1], got 1.5"),
        ({"seeds": []}, "seeds must be a list of one or more different seeds, got []"),
        ({"seeds": [1, 1]}, "seeds must be a list of one or more different seeds, got [1, 1]"),
        ({"seeds": [-1]}, "seeds must be a list of integers in [0, 9223372036854775808), got [-1]"),
        ({"seeds": [2**63]}, "seeds must be a list of integers in [0, 9223372036854775808), got [9223372036854775808]"),
        ({"verdict": {"alpha": 2}}, "verdict.alpha must be a number in (0, 1), got 2"),
        (
            {"verdict": {"beta": 2}},
            "verdict has no option 'beta'; its options are alpha, min_difference, equivalence_margin, min_seeds, ",
        ),
        (
            {"cells": {}, "selectors": [], "yardsticks": [], "beside": [], "few": {}, "win": {}},
            "cells is called settings now, selectors is called methods now, yardsticks is called oracles now, "
            "beside is called references now, few is called seed_counts now, win is called verdict now: use the new",
        ),
        (
            {"settings": {"a": {"words": [], "rows": [], "axis": "noise"}}},
            "settings.a: words is called overrides now, rows is called methods now, "
            "axis is called heterogeneity_kind now",
        ),
        (
            {"verdict": {"least": 0, "equal": 1, "seeds": 2, "worth": 1}},
            "verdict: least is called min_difference now, equal is called equivalence_margin now, "
            "seeds is called min_seeds now, worth is called detectable_difference now: use the new name",
        ),
        ({"baseline": ""}, "baseline must be a selector, or `name: [overrides]`, got ''"),
        ({"baseline": {"a": [], "b": []}}, "baseline must be a selector, or `name: [overrides]`, got "),
        ({"methods": "flash"}, "methods must be a list of selectors, or of `name"),
        ({"methods": ["flash", "flash"]}, "methods: flash is listed twice"),
        ({"oracles": ["random"]}, "oracles: random is listed twice"),
        (
            {"methods": [{"wide": ["gamma"]}]},
            "methods.wide must be a list of overrides name=value, typed as for train.py, got",
        ),
        (
            {"settings": {"5/50": {"overrides": []}}},
            "settings: the name must be letters, digits and underscores without a digit in front, such as x5_50, got",
        ),
        (
            {"settings": {"../../x": {"overrides": []}}},
            "settings: the name must be letters, digits and underscores without a",
        ),
        (
            {"settings": {"a": {"overrides": [], "bounds": {"../b": []}}}},
            "settings.a.bounds: the name must be letters, digits",
        ),
        ({"variants": {"../a": ["round_robin"]}}, "variants: the name must be letters, digits and underscores"),
        (
            {"methods": [{"../wide": []}]},
            "methods: the name must be letters, digits and underscores without a",
        ),
        ({"common": ["+callback.x._target_=subprocess.Popen"]}, "common: +callback.x._target_=subprocess.Popen names"),
        ({"settings": {}}, "settings must be one setting or more, such as {a: {overrides: []}}, got {}"),
        ({"settings": {"a": {"label": "A"}}}, "settings.a.overrides is missing"),
        ({"settings": {"a": {"overrides": [], "word": []}}}, "settings.a has no option 'word'; its options are "),
        (
            {"settings": {"a": {"overrides": ["+selector=powd"]}}},
            "settings.a.overrides: +selector=powd has no effect: all methods set this option. Leave it out",
        ),
        (
            {"settings": {"a": {"overrides": ["seed=1"]}}},
            "settings.a.overrides: seed is set by the study itself: leave seed=1 out",
        ),
        (
            {"settings": {"a": {"overrides": [], "methods": ["random"]}}},
            "settings.a.methods must be a list of one or more of round_robin,",
        ),
        ({"settings": {"a": {"overrides": [], "bounds": {"b": 3}}}}, "settings.a.bounds.b must be a list of texts"),
        ({"common": ["paths.logs=x"]}, "common: paths.logs is set by the study itself: leave paths.logs=x out"),
        (
            {"settings": {"a": {"overrides": []}, "b": {"overrides": [], "label": "a"}}},
            "settings.a.label must be a label that differs from all others, got 'a'",
        ),
        ({"notes": "flash is blind"}, "notes must be a list of texts, as [id,age], got 'flash is blind'"),
        ({"seed_counts": {"random": 1}}, "seed_counts must be one of round_robin, got 'random'"),
        ({"seed_counts": {"round_robin": 3}}, "seed_counts.round_robin must be an integer in [1, 2], got 3"),
        ({"seed_counts": ["round_robin"]}, "seed_counts must be options by name, got ['round_robin']"),
        ({"variants": {"a": ["random", "round_robin"]}}, "variants.a must be a list of one or more of round_robin"),
        (
            {"variants": {"a": ["round_robin"]}},
            "variants.a must be two or more methods, none of which is in another list",
        ),
        (
            {"methods": ["flash", "powd", "oort"], "variants": {"a": ["flash", "powd"], "b": ["oort", "powd"]}},
            "variants.b must be two or more methods, none of which is in another list, got ['oort', 'powd']",
        ),
        ({"target": "high"}, "target must be a number, baseline or null, got 'high'"),
        (
            {"settings": {"a": {"overrides": [], "oracle": "oracle_fast"}}},
            "settings.a.oracle must be one of (none is defined: leave the option out), got 'oracle_fast'",
        ),
        (
            {"methods": [], "settings": {"a": {"overrides": [], "methods": ["flash"]}}},
            "settings.a.methods must be a list of one or more of (none is defined: leave the option out), none twice",
        ),
    ],
)
def test_an_error_names_the_file(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        write_study(tmp_path, **changes)
    assert str(caught.value).startswith(f"{tmp_path / 'study.yaml'}: {message}")


def test_all_missing_required_keys_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("title: t\nbaseline: random\nseeds: [0]\n")
    with pytest.raises(OptionError, match=r"study\.yaml: question, methods, settings are missing: add them$"):
        load_study(tmp_path)
    (tmp_path / "study.yaml").write_text("title: t\nbaseline: random\nseeds: [0]\nmethods: []\nsettings: {}\n")
    with pytest.raises(OptionError, match=r"study\.yaml: question is missing: add it$"):
        load_study(tmp_path)


def test_existing_studies_are_listed(tmp_path: Path) -> None:
    write_study(tmp_path / "tiny")
    with pytest.raises(OptionError, match="has no study 'tinny': type one of tiny"):
        load_study(tmp_path / "tinny")


def test_conditions_are_methods_in_settings_and_bounds(tmp_path: Path) -> None:
    study = write_study(tmp_path, methods=["flash", {"wide": ["selector=flash", "selector.candidates=30", "cohort=5"]}])
    places = {(place.setting, place.method): place.overrides for place in list_conditions(study)}
    rows = ["random", "flash", "wide"]
    assert list(places) == [*(("equal", r) for r in rows), *(("noisy", r) for r in rows), ("noisy", "bound:clean")]
    wide = places["noisy", "wide"]
    assert "cohort=5" in wide
    assert "cohort=4" not in wide
    assert "heterogeneity=noise_bimodal" in wide
    assert "heterogeneity=iid" in places["noisy", "bound:clean"]
    assert not any(word.startswith("label_noise") for word in places["noisy", "bound:clean"])


def test_the_baselines_overrides_also_apply_to_bounds(tmp_path: Path) -> None:
    mean = {"mean": ["agg=fedavg", "server.lr=0.5"]}
    study = write_study(tmp_path, baseline=mean, methods=[{"fair": ["agg=qffl"]}])
    assert (study.baseline, study.find_role("mean")) == ("mean", "baseline")
    places = {(place.setting, place.method): place.overrides for place in list_conditions(study, ["noisy"])}
    assert list(places) == [("noisy", "mean"), ("noisy", "fair"), ("noisy", "bound:clean")]
    assert {"agg=fedavg", "server.lr=0.5"} <= set(places["noisy", "mean"]) & set(places["noisy", "bound:clean"])
    assert "server.lr=0.5" not in places["noisy", "fair"]


def test_the_last_override_of_an_option_counts() -> None:
    assert merge_overrides(["a=1", "b=2"], ["+a=3"], ["c=4", "b=5"]) == ("+a=3", "c=4", "b=5")


def test_unknown_options_are_listed(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    with pytest.raises(OptionError, match=r"methods must be some of random, round_robin, .*ucb_cs.*, got 'mine'"):
        add_user_methods(study, ["mine"], CONFIGS)
    with pytest.raises(OptionError, match="settings must be some of equal, noisy, got 'loud'"):
        list_conditions(study, ["loud"])


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*/study.yaml")), ids=lambda path: path.parent.name)
def test_the_committed_studies_name_existing_options(path: Path) -> None:
    if leaderboard.is_leaderboard(path.parent):
        assert leaderboard.load_leaderboard(path.parent, lambda study: Results(study.folder)).study.settings
        return
    study = load_study(path.parent)
    for overrides in study.overrides.values():
        choices = [override.split("=") for override in overrides if override.startswith(("selector=", "agg="))]
        assert choices or any(override.startswith("experiment=") for override in study.common_overrides)
        assert all((CONFIGS / group / f"{word}.yaml").exists() for group, word in choices)
    assert list_conditions(study)


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "3"])
def test_an_empty_file_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(OptionError, match=r"study\.yaml must hold options by name"):
        load_study(tmp_path)


def test_the_study_of_the_docs_loads(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "studies.md").read_text().partition("## Define and publish your own study")[2]
    study_yaml = textwrap.dedent(page.partition("```yaml\n")[2].partition("```")[0]).replace("my_method", "flash")
    (tmp_path / "study.yaml").write_text(study_yaml)
    study = load_study(tmp_path)
    check_conditions(study, list_conditions(study), CONFIGS)
    assert (study.baseline, [*study.settings], len(study.seeds)) == ("random", ["noisy", "clean"], 5)
