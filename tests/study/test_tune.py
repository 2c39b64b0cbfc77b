"""Trials by Optuna, what is written down of them, and the rows that come of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.record import provenance
from fedcohort.results.verdict import Rules
from fedcohort.study import leaderboard, report, tune
from fedcohort.study.checks import read_verdict_rules
from fedcohort.study.definition_file import load_study
from fedcohort.study.result_files import DONE, FAILED
from fedcohort.study.tasks import RunOutcome, RunTask
from study.small_study import SMALL_STUDY, TUNING, make_curve, make_results, write_study
from study.tuning_harness import DEFAULT_OVERRIDES, QuadraticRunner, forbid, replace_runner, rise_late, tune_methods


def test_the_requested_number_of_trials_runs_starting_with_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    player = QuadraticRunner()
    monkeypatch.setattr(tune, "run_tasks", replace_runner(player))
    lines = tune_methods(tmp_path)
    # 1 - .5^2, and .1 less with the other seed: .7 in the mean
    assert lines[0] == "ucb_cs [1/4] selector.discount=0.7 selector.tie=random: 0.7000"
    assert len(lines) == 4
    assert {task.seed for task in player.tasks} == {7, 8}
    assert {task.metric for task in player.tasks} == {"server_val/acc"}
    assert all("heterogeneity=iid" in task.overrides for task in player.tasks)

    study = load_study(tmp_path)
    tuned = study.tunings["ucb_cs_tuned"]
    assert (tuned.method, tuned.trials, list(tuned.seeds)) == ("ucb_cs", 4, [7, 8])
    assert tuned.default == pytest.approx(0.7)
    assert tuned.value >= tuned.default
    discount = float(tuned.overrides[0].partition("=")[2])
    assert tuned.value == pytest.approx(0.95 - (discount - 0.2) ** 2)
    assert study.overrides["ucb_cs_tuned"] == ("selector=ucb_cs", *tuned.overrides)
    assert study.find_role("ucb_cs_tuned") == "method"

    # the same command does nothing again, one with more trials those that are more, and both come to the same
    n_tasks = len(player.tasks)
    assert tune_methods(tmp_path) == lines
    assert len(player.tasks) == n_tasks
    assert tune_methods(tmp_path, 6)[:4] == [line.replace("/4]", "/6]") for line in lines]
    assert len(player.tasks) == n_tasks + 2 * 2
    six_trials = tune_methods(tmp_path / "other", 6)
    assert six_trials[4:] == tune_methods(tmp_path, 6)[4:]


def test_the_page_lists_tuned_methods_and_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    monkeypatch.setattr(tune, "run_tasks", replace_runner(QuadraticRunner()))
    tmp_path = tmp_path / "tiny"
    tune_methods(tmp_path, 1)
    study = load_study(tmp_path)
    late_means = {"equal": {"random": [0.8, 0.8], "ucb_cs_tuned": [0.9, 0.9]}}
    report.write_study_report(study, make_results(study, late_means))
    text = (tmp_path / "README.md").read_text()
    assert (
        "- ucb_cs_tuned: `selector.discount=0.7 selector.tie=random`, the best of 1 trial (seeds 7, 8 in equal;" in text
    )
    assert "Nobody was tuned" not in text
    (tmp_path.parent / "board").mkdir()
    (tmp_path.parent / "board" / "study.yaml").write_text(f"title: t\nquestion: q\nof: {{{tmp_path.name}: digits}}\n")
    assert list(leaderboard.load_leaderboard(tmp_path.parent / "board").study.tunings) == [
        f"ucb_cs_tuned in {tmp_path.name}"
    ]


def test_a_failed_trial_counts_and_has_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    monkeypatch.setattr(tune, "run_tasks", replace_runner(lambda task: RunOutcome(FAILED, "no luck")))
    lines = tune_methods(tmp_path, 1)
    expected = f"ucb_cs [1/1] {' '.join(DEFAULT_OVERRIDES)}: no value, failed: no luck"
    file = tmp_path / "tuned.yaml"
    hint = f"ucb_cs: 1 of 1 trial without a value, not repeated until removed from {file}"
    assert lines == [expected, hint]
    assert not load_study(tmp_path).tunings
    player = QuadraticRunner()
    monkeypatch.setattr(tune, "run_tasks", replace_runner(player))
    assert tune_methods(tmp_path, 1) == lines  # known, and not done again
    assert not player.tasks
    facts = yaml.safe_load(file.read_text())
    facts["ucb_cs"]["tried"] = []
    file.write_text(yaml.safe_dump(facts))
    assert tune_methods(tmp_path, 1) == [f"ucb_cs [1/1] {' '.join(DEFAULT_OVERRIDES)}: 0.7000"]


def test_a_trial_with_a_nan_mean_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    zero = np.array([0.0, 1.0])
    diverged = RunOutcome(DONE, "", {}, make_curve(zero, [0.1, np.nan], zero, zero))
    monkeypatch.setattr(tune, "run_tasks", replace_runner(lambda task: diverged))
    lines = tune_methods(tmp_path, 1)
    assert lines[0] == f"ucb_cs [1/1] {' '.join(DEFAULT_OVERRIDES)}: no value, its mean is nan"
    monkeypatch.setattr(tune, "run_tasks", replace_runner(forbid))
    assert tune_methods(tmp_path, 1) == lines


def test_recorded_trials_are_kept_during_a_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupting a replay at any trial keeps the recorded trials that were not replayed yet."""
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    monkeypatch.setattr(tune, "run_tasks", replace_runner(QuadraticRunner()))
    complete = tune_methods(tmp_path)
    file = tmp_path / "tuned.yaml"
    recorded = file.read_bytes()
    study = load_study(tmp_path)
    assert study.search_space is not None
    monkeypatch.setattr(tune, "run_tasks", replace_runner(forbid))
    for stop in range(1, 5):
        lines: list[str] = []

        def print_line(line: str, stop: int = stop, lines: list[str] = lines) -> None:
            lines.append(line)
            if len(lines) == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tune.MethodTuning(study, study.search_space, CONFIGS, tmp_path / "logs", print_line).tune_methods(
                ["ucb_cs"]
            )
        assert lines == complete[:stop]
        assert file.read_bytes() == recorded
    assert tune_methods(tmp_path) == complete
    assert file.read_bytes() == recorded

    # of fewer trials the others stay, count for nothing, and are there when they are asked for again
    tune_methods(tmp_path, 2)
    facts = yaml.safe_load(file.read_text())["ucb_cs"]
    assert (len(facts["tried"]), len(facts["spare"])) == (2, 2)
    assert facts["value"] == max(trial["value"] for trial in facts["tried"])
    assert sum(load_study(tmp_path).tunings["ucb_cs_tuned"].commits.values()) == 2
    assert tune_methods(tmp_path) == complete
    assert file.read_bytes() == recorded


def tuned_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    """Write tuned.yaml with one synthetic trial, and return its content."""
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    monkeypatch.setattr(tune, "run_tasks", replace_runner(QuadraticRunner()))
    tune_methods(folder, 1)
    file = folder / "tuned.yaml"
    return file, yaml.safe_load(file.read_text())


def test_the_best_trial_is_one_of_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that the search did not suggest neither complete it nor count as its best trial."""
    file, facts = tuned_once(tmp_path, monkeypatch)
    other_trials = [["selector.discount=0.2", "selector.tie=random", f"number={i}"] for i in range(3)]
    facts["ucb_cs"]["tried"] += [
        {"overrides": overrides, "value": 0.95, "commit": "c0ffee"} for overrides in other_trials
    ]
    file.write_text(yaml.safe_dump(facts))
    lines: list[str] = []

    def print_line(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            raise KeyboardInterrupt

    study = write_study(tmp_path, tune=TUNING)
    assert study.search_space is not None
    with pytest.raises(KeyboardInterrupt):
        tune.MethodTuning(study, study.search_space, CONFIGS, tmp_path / "logs", print_line).tune_methods(["ucb_cs"])
    record = yaml.safe_load(file.read_text())["ucb_cs"]
    assert (len(record["tried"]), len(record["spare"])) == (2, 3)
    assert record["value"] < 0.95
    assert not load_study(tmp_path).tunings


def test_each_trial_records_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial records the commit that ran it, not the commit of the last write."""
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    monkeypatch.setattr(tune, "run_tasks", replace_runner(QuadraticRunner()))
    tmp_path = tmp_path / "tiny"
    monkeypatch.setattr(provenance, "current_commit", lambda: ("aaaaaaaaaabbbb", False))
    tune_methods(tmp_path, 3)
    late_means = {"equal": {"random": [0.8, 0.8], "ucb_cs_tuned": [0.9, 0.9]}}

    def commits() -> str:
        study = load_study(tmp_path)
        report.write_study_report(study, make_results(study, late_means))
        return (tmp_path / "README.md").read_text()

    assert "with the defaults; commit aaaaaaaaaa (3))." in commits()
    monkeypatch.setattr(provenance, "current_commit", lambda: ("cccccccccc", True))
    tune_methods(tmp_path, 3)
    assert "with the defaults; commit aaaaaaaaaa (3))." in commits()
    tune_methods(tmp_path, 4)
    assert "with the defaults; commits aaaaaaaaaa (3), cccccccccc with uncommitted changes (1)).\n" in commits()


def test_a_trial_without_a_commit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, facts = tuned_once(tmp_path, monkeypatch)
    del facts["ucb_cs"]["tried"][0]["commit"]
    file.write_text(yaml.safe_dump(facts))
    with pytest.raises(OptionError, match=r"ucb_cs: a trial\.commit is missing"):
        load_study(tmp_path)


def test_without_optuna_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(OptionError, match=r"fedcohort study tune needs Optuna: pip install .*\[sweep\]"):
        tune_methods(tmp_path)


def test_every_search_space_is_checked_before_the_first_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the second method's space must be reported before the trials of the first."""
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    monkeypatch.setattr(tune, "run_tasks", replace_runner(forbid))
    spaces = {**TUNING["space"], "round_robin": {"selector.colour": [1, 2]}}
    study = write_study(tmp_path, tune={**TUNING, "space": spaces})
    assert study.search_space is not None
    with pytest.raises(OptionError, match=r"tune\.space\.round_robin has no option .selector\.colour."):
        tune.MethodTuning(study, study.search_space, CONFIGS, tmp_path / "logs", print).tune_methods(
            ["ucb_cs", "round_robin"]
        )


def test_a_small_space_is_searched_completely_without_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three discounts and two ties are six combinations: twenty trials would be some of them, several times."""
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    player, lines = QuadraticRunner(), list[str]()
    monkeypatch.setattr(tune, "run_tasks", replace_runner(player))
    space = {"selector.discount": [0.7, 0.3, 0.1], "selector.tie": ["random", "id"]}
    study = write_study(tmp_path, tune={**TUNING, "trials": 20, "space": {"ucb_cs": space}})
    assert study.search_space is not None
    search = tune.MethodTuning(study, study.search_space, CONFIGS, tmp_path / "logs", lines.append)
    search.tune_methods(["ucb_cs"])
    assert [line.split("]")[0] for line in lines] == [f"ucb_cs [{n}/6" for n in range(1, 7)]
    assert len({line.split(":")[0].split("] ")[1] for line in lines}) == 6
    assert len(player.tasks) == 6 * 2
    tuned = load_study(tmp_path).tunings["ucb_cs_tuned"]
    assert (tuned.trials, sum(tuned.commits.values())) == (6, 6)
    assert tuned.overrides[0] in ("selector.discount=0.3", "selector.discount=0.1")
    monkeypatch.setattr(tune, "run_tasks", replace_runner(forbid))
    repeat = list[str]()
    tune.MethodTuning(study, study.search_space, CONFIGS, tmp_path / "logs", repeat.append).tune_methods(["ucb_cs"])
    assert repeat == lines


def test_the_rules_of_a_verdict_have_defaults() -> None:
    assert read_verdict_rules({}) == Rules(
        alpha=0.05, min_difference=0.005, equivalence_margin=0.01, min_seeds=3, detectable_difference=0.01
    )


def test_a_trial_is_measured_up_to_the_horizon_and_repeated_for_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="an extra: pip install -e .[test] or .[sweep]")
    values = {}
    for horizon in (None, 3, None):
        played_tasks: list[RunTask] = []
        monkeypatch.setattr(
            tune, "run_tasks", replace_runner(lambda task, to=played_tasks: (to.append(task), rise_late(task))[1])
        )
        changes = {"common": [*SMALL_STUDY["common"], "rounds=6"], **({} if horizon is None else {"horizon": horizon})}
        study = write_study(tmp_path, tune={**TUNING, "trials": 1}, **changes)
        assert study.search_space is not None
        tune.MethodTuning(study, study.search_space, CONFIGS, tmp_path / "logs", list[str]().append).tune_methods(
            ["ucb_cs"]
        )
        assert len(played_tasks) == 2, "a trial that was measured otherwise does not count"
        values[horizon] = load_study(tmp_path).tunings["ucb_cs_tuned"].value
    assert values == {None: pytest.approx(0.9), 3: pytest.approx(0.3)}
