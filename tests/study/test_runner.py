"""A tiny study is run, rerun, interrupted and extended: no run is repeated, and impossible runs are reported."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.jobs.job import JobContext
from fedcohort.record import provenance, sweep_folder
from fedcohort.record.history import read_history
from fedcohort.results.run import average_over_clock
from fedcohort.startup import compose, compose_jobs
from fedcohort.startup.run import run as train
from fedcohort.study import report, runner
from fedcohort.study.definition import RunKey, list_conditions
from fedcohort.study.progress import describe_runs
from fedcohort.study.result_files import DONE, FAILED, REFUSED
from fedcohort.study.results import Results, drop_repeated_runs
from fedcohort.study.results import load_results as load_results
from fedcohort.study.runner import COMPOSITION_NOTE, StudyRunner
from fedcohort.study.tasks import RunOutcome, RunTask, identify_run_config
from image_tables import encode_image, random_images
from image_tables import write_image_table as save
from study.small_study import run_study, run_task, write_study

LIMITED = {"greedy": ["selector=oracle_greedy", "selector.limit=5"]}  # of twelve clients


def forbid(*args: object) -> Any:
    raise AssertionError("something is done again")


def run_with(train_task: Any) -> Any:
    """Play tasks by `by` instead of jobs."""
    return lambda tasks, launch: ((number, train_task(task)) for number, task in enumerate(tasks))


def test_a_metric_that_no_run_has_ends_the_study_after_its_first_run(tmp_path: Path) -> None:
    """Every run of a study was trained, and then refused. The run is read again once the metric is corrected."""
    settings = {"equal": {"overrides": ["heterogeneity=iid"]}}
    lines = list[str]()
    study = write_study(tmp_path / "studies" / "tiny", metric="test/acc_wrst", settings=settings)
    with pytest.raises(OptionError, match=r"metric must be one of .*test/acc, .*, got 'test/acc_wrst'"):
        run_study(study, tmp_path / "logs", None, lines)
    assert lines == ["0 of 4 runs are done, 4 to do"]
    assert {
        row["status"]
        for row in run_study(write_study(study.folder, settings=settings), tmp_path / "logs").rows.values()
    } == {DONE}


def test_runs_rejected_for_missing_data_are_tried_again(tmp_path: Path) -> None:
    """A missing data folder is no mistake in the options, so that the next call tries the run again."""
    path = f"dataset.path={tmp_path / 'mnist'}"
    common = ["dataset=mnist", path, "clients=12", "cohort=4", "rounds=1", "model=logreg"]
    settings = {"equal": {"overrides": ["heterogeneity=iid"]}}
    study = write_study(tmp_path / "studies" / "tiny", common=common, settings=settings)
    lines = list[str]()
    first = run_study(study, tmp_path / "logs", [0], lines)
    assert {row["status"] for row in first.rows.values()} == {FAILED}
    assert "dataset.path" in first.rows["equal", "random", 0]["reason"]
    (tmp_path / "mnist").mkdir()
    images = [encode_image(image) for image in random_images(120, (1, 28, 28))]
    for part in ("train", "test"):
        save(tmp_path / "mnist", part, image=images, label=(np.arange(120) % 10).tolist())
    lines.clear()
    second = run_study(study, tmp_path / "logs", [0], lines)
    assert lines[0] == "0 of 2 runs are done, 2 to do"
    assert {row["status"] for row in second.rows.values()} == {DONE}


def test_the_path_of_the_data_is_not_part_of_a_runs_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine has the same data in another folder: what was done here isn't done again there."""
    words = ("dataset=mnist", "clients=12", "cohort=4", "rounds=1", "model=logreg")

    def identity(*overrides: str) -> dict[str, str]:
        identify_run_config.cache_clear()
        compose_jobs._draft_shared_config.cache_clear()
        compose_jobs._compose_pickled.cache_clear()
        return identify_run_config((*words, *overrides), CONFIGS)

    monkeypatch.setenv("DATA", "here")
    original = identity("dataset.path=${oc.env:DATA,null}")
    monkeypatch.setenv("DATA", "there")
    assert identity("dataset.path=${oc.env:DATA,null}") == original
    monkeypatch.delenv("DATA")
    assert identity("dataset.path=${oc.env:DATA,null}") == original
    assert identity("dataset.path=${oc.env:DATA,null}", "rounds=2") != original
    assert identity("dataset.path=here") not in (original, identity("dataset.path=there"))
    (tmp_path / "logs").mkdir()
    monkeypatch.setenv("DATA", str(tmp_path / "nowhere"))
    task = RunTask((*words, "dataset.path=${oc.env:DATA,null}"), 0, CONFIGS, tmp_path / "logs", "test/acc", False)
    assert run_task(task).reason.endswith("(here by the environment: DATA=folder fedcohort study run ...)")


def test_a_study_runs_all_conditions_and_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write_study(tmp_path / "studies" / "tiny", oracles=[LIMITED])
    logs, lines = tmp_path / "logs", list[str]()
    first = run_study(study, logs, [0], lines)
    assert lines[0] == "0 of 7 runs are done, 7 to do"
    assert [key[:2] for key, _ in first.done_runs()] == [
        ("equal", "random"),
        ("equal", "round_robin"),
        ("noisy", "bound:clean"),
        ("noisy", "random"),
        ("noisy", "round_robin"),
    ]
    refused = first.rows["equal", "greedy", 0]
    assert refused["status"] == REFUSED
    assert refused["reason"].startswith("selector.limit must be an integer of at least 12")
    # the bound is the other setting's run: it is found, not done
    assert any(
        line.split("] ")[1].startswith("noisy bound:clean seed 0: ")
        for line in lines
        if "the same run as equal random" in line
    )
    assert first.rows["noisy", "bound:clean", 0]["fingerprint"] == first.rows["equal", "random", 0]["fingerprint"]
    assert not list((logs / "runs").iterdir())  # what is written down needs no folder

    second = run_study(study, logs)
    columns = ("when", "wall_s", "fingerprint", "late")
    for key, row in first.done_runs():
        assert [second.rows[key][name] for name in columns] == [row[name] for name in columns]
    assert sum(row["status"] == DONE for row in second.rows.values()) == 10
    assert len(drop_repeated_runs(row for _, row in second.done_runs())) == 8  # the bound's two are those of equal

    monkeypatch.setattr(runner, "run_tasks", run_with(forbid))
    lines.clear()
    third_results = run_study(study, logs, log=lines)
    assert list(third_results.rows) == list(second.rows)
    assert lines[0] in (
        "10 of 14 runs are done, 0 to do",
        "10 of 14 runs are done, 4 to do",
    )  # refused: by changed code

    # an edit of the yaml that is none of the runs' costs nothing, another result is had from the curves
    changed = write_study(study.folder, title="Another", result="last")
    repeat = run_study(changed, logs, log=lines)
    assert repeat.rows["equal", "random", 0]["late"] == pytest.approx(
        first.rows["equal", "random", 0]["last"], abs=1e-6
    )
    # configs changed, and the composed one did not: composing tells
    for row in repeat.rows.values():
        row["stamp"] = "other"
    repeat.save_files()
    work = StudyRunner(changed, repeat, CONFIGS, logs, False, lines.append)
    assert work.find_progress(list_conditions(changed), [0, 1]).count_runs(DONE) == 10
    for row in repeat.rows.values():
        row["config_hash"] = "other"
    assert work.find_progress(list_conditions(changed), [0, 1]).count_runs("changed") == 10
    lines.clear()
    run_study(changed, logs, log=lines)
    assert lines[0] == COMPOSITION_NOTE
    assert lines[1:] == ["10 of 10 runs are done, 0 to do"]
    lines.clear()
    work = StudyRunner(changed, load_results(changed), CONFIGS, logs, False, lines.append)
    assert work.find_progress(list_conditions(changed), [0, 1]).count_runs(DONE) == 10
    assert not lines, "no composing"


def test_a_result_lists_the_overrides_that_repeat_it(tmp_path: Path) -> None:
    study = write_study(
        tmp_path / "tiny",
        settings={"equal": {"overrides": ["heterogeneity=iid"], "target": 0.2}},
        seeds=[3],
        crossing="first",
    )
    results = run_study(study, tmp_path / "logs")
    row = results.rows["equal", "round_robin", 3]
    folder = train(compose.compose_run([*row["words"].split(), f"paths.logs={tmp_path / 'own'}"], CONFIGS))
    run = read_history(folder)
    assert run.fingerprints[-1] == row["fingerprint"]
    assert folder.name.split("-")[-2] == row["config_hash"]
    values = run.metrics["test/acc"]
    assert row["late"] == pytest.approx(values[1:4].mean(), abs=1e-6)
    target_round = values[1:][values[1:] >= 0.2].index[0]
    assert row["rounds_to_target"] == target_round
    assert row["virtual_s_to_target"] == pytest.approx(run.metrics["time/virtual_s"][target_round], rel=1e-6)
    assert row["bytes"] == run.metrics["comm/down_bytes"][3] + run.metrics["comm/up_bytes"][3]


def test_a_setting_with_a_clock_is_measured_by_time(tmp_path: Path) -> None:
    """The run and the stored file give the same result, the page states it, and other settings do not change."""
    overrides = ["heterogeneity=iid", "device=shifted_exponential", "until.virtual_s=1000"]
    study = write_study(tmp_path / "tiny", settings={"timed": {"overrides": overrides}}, seeds=[0])
    results = run_study(study, tmp_path / "logs")
    key = ("timed", "random", 0)
    assert results.rows[key]["late"] == pytest.approx(
        average_over_clock(results.curves[key].costs["virtual_s"], results.curves[key].values, 1000.0)
    )
    assert results.rows[key]["late"] != pytest.approx(float(results.curves[key].values[-3:].mean()))
    report.write_study_report(study, results)
    assert "where virtual time ends it, over the last sixth of that time" in (study.folder / "README.md").read_text()


def test_an_interrupted_study_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write_study(tmp_path / "tiny", settings={"equal": {"overrides": ["heterogeneity=iid"]}}, seeds=[0])
    logs, save = tmp_path / "logs", Results.save_files

    def fail_to_save(self: Results, changed_run_keys: Sequence[RunKey]) -> None:  # trained, and not written down
        if changed_run_keys:
            raise KeyboardInterrupt

    work = StudyRunner(study, load_results(study), CONFIGS, logs, True, lambda line: None)
    monkeypatch.setattr(Results, "save_files", fail_to_save)
    with pytest.raises(KeyboardInterrupt):
        work.run_conditions(list_conditions(study), [0])
    (folder,) = (logs / "runs").iterdir()
    trained = (folder / "weights.pt").stat().st_mtime_ns
    monkeypatch.setattr(Results, "save_files", save)
    work = StudyRunner(study, load_results(study), CONFIGS, logs, True, lambda line: None)
    work.run_conditions(list_conditions(study), [0])
    assert len(list((logs / "runs").iterdir())) == 2  # one more selector, and no second folder of the first
    assert (folder / "weights.pt").stat().st_mtime_ns == trained
    assert [row["status"] for row in load_results(study).rows.values()] == [DONE, DONE]


def test_runs_of_another_commit_are_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a bug was mended nothing else would do it: equal configs are runs that are done, whatever code they had."""
    settings = {"equal": {"overrides": ["heterogeneity=iid"], "bounds": {"same": ["heterogeneity=iid"]}}}
    study = write_study(tmp_path / "tiny", settings=settings, seeds=[0])
    monkeypatch.setattr(provenance, "current_commit", lambda: ("old", False))
    run_study(study, tmp_path / "logs")
    monkeypatch.setattr(provenance, "current_commit", lambda: ("new", False))
    lines, tasks = list[str](), list[RunTask]()

    def repeat(stop: int = 99) -> Results:
        def counted(task: RunTask) -> RunOutcome:
            tasks.append(task)
            if len(tasks) > stop:
                raise KeyboardInterrupt
            return run_task(task)

        monkeypatch.setattr(runner, "run_tasks", run_with(counted))
        work = StudyRunner(study, load_results(study), CONFIGS, tmp_path / "logs", False, lines.append, "true")
        work.run_conditions(list_conditions(study), [0])
        return load_results(study)

    with pytest.raises(KeyboardInterrupt):
        repeat(stop=1)
    assert lines[0] == "0 of 3 runs are done, 3 to do"
    assert sorted(row["commit"] for row in load_results(study).rows.values()) == ["new", "new", "old"]
    tasks.clear()
    results = repeat()  # goes on
    assert "2 of 3 runs are done, 1 to do" in lines
    assert {row["commit"] for row in results.rows.values()} == {"new"}
    assert [task.overrides[-1] for task in tasks] == ["selector=round_robin"]  # the bound is random's new run
    assert not any(task.resume for task in tasks)  # what is in logs/ is other code's
    tasks.clear()
    repeat()
    assert not tasks
    monkeypatch.setattr(provenance, "current_commit", lambda: ("new", True))
    with pytest.raises(
        OptionError, match="again=true repeats runs of other commits, but this code has uncommitted changes"
    ):
        repeat()


def test_a_failed_run_is_reported_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write_study(tmp_path / "tiny", settings={"equal": {"overrides": ["heterogeneity=iid"]}}, seeds=[0])
    monkeypatch.setattr(runner, "run_tasks", run_with(lambda task: RunOutcome(FAILED, "RuntimeError: no luck")))
    results = run_study(study, tmp_path / "logs")
    work = StudyRunner(study, results, CONFIGS, tmp_path / "logs", False, print)
    progress = work.find_progress(list_conditions(study), [0])
    description = describe_runs(study, progress, results)
    assert "failed   2\n  random in equal, round_robin in equal: RuntimeError: no luck" in description
    assert "missing  0\n" in description
    lines: list[str] = []
    run_study(study, tmp_path / "logs", log=lines)
    assert lines[0] == "0 of 2 runs are done, 2 to do"


def test_results_of_earlier_jobs_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster has one of two jobs: the other is written down, and no second array is submitted."""
    study = write_study(tmp_path / "tiny", settings={"equal": {"overrides": ["heterogeneity=iid"]}}, seeds=[0])
    places, logs, lines = list_conditions(study), tmp_path / "logs", list[str]()
    work = StudyRunner(study, load_results(study), CONFIGS, logs, False, lines.append)
    sweep = logs / "sweeps" / "a"
    jobs = [work.make_task(place, 0).job_overrides for place in places]
    sweep_folder.save_plan(sweep, sweep_folder.SweepPlan(jobs))
    (sweep / ".submitit" / "12_0").mkdir(parents=True)
    JobContext(sweep, CONFIGS).run(0, jobs[0])
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 12_1\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(runner, "run_tasks", forbid)
    with pytest.raises(OptionError, match=r"sweep a: 1 done, 1 left.*\n  fedcohort sweep cancel a logs="):
        work.run_conditions(places, [0])
    assert [key[1] for key, _ in load_results(study).done_runs()] == ["random"]
    assert not list((logs / "runs").iterdir())
    (tmp_path / "squeue").write_text("#!/bin/sh\necho\n")
    assert work.collect_ended_jobs(places, [0]) == []
    assert not sweep.exists()
