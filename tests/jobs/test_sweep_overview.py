"""The overview that is printed after a sweep's last job."""
# ruff: noqa: F811

import itertools
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Metric, Param, RunTag
from omegaconf import OmegaConf

from comparison_harness import ACC
from fedcohort.command.compare import compare_runs, parse_options
from fedcohort.errors import OptionError
from fedcohort.jobs import cluster
from fedcohort.jobs.job import JobContext
from fedcohort.jobs.launch import Slurm
from fedcohort.jobs.sweep import Sweep
from fedcohort.record import metadata, sweep_folder
from fedcohort.record.sweep_folder import SweepJob, SweepPlan
from fedcohort.tracking import identity, record, server, sweeps
from record.example_run import make_run_info
from tracking.databases import Logs, captured_log, logs  # noqa: F401

GROUPS = ("selector", "agg", "heterogeneity", "client")


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sweeps, "format_fedcohort_command", lambda verb: f"fedcohort {verb}")
    monkeypatch.chdir(tmp_path)


def trained_run(
    folder: Path, *overrides: str, place: server.ServerLocation | None = None, tracked: bool = True, **tags: str
) -> Path:
    """Return the folder of a finished run whose options Hydra composes from `overrides`."""
    config: dict[str, Any] = {}
    choices = {}
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key in GROUPS:
            choices[key] = value
            continue
        *path, last = key.split(".")
        node = config
        for part in path:
            node = node.setdefault(part, {})
        node[last] = float(value) if "." in value else int(value)
    folder.mkdir(parents=True)
    metadata.save_info(make_run_info(folder, choices=choices, config=config, tags=tags))
    if tracked:
        identity.register_server_location(folder, place or server.locate_server(None, "fedcohort", Path("logs")))
    return folder


def job(sweep: Sweep, number: int, how: str, *overrides: str, folder: Path | None = None, reason: str = "") -> None:
    assert sweep.folder is not None
    SweepJob(sweep.folder, number, overrides).write_record(how, folder, reason)


def describe_sweep(*jobs: Sequence[str], **how: Any) -> str:
    """The overview of a sweep whose jobs are all done."""
    sweep = Sweep(Path("sweeps/s").absolute())
    for number, overrides in enumerate(jobs):
        job(sweep, number, "done", *overrides, folder=trained_run(Path(f"runs/{number}").absolute(), *overrides, **how))
    return sweep.describe_results(sweep.read_records())


COMPARED: list[tuple[Sequence[tuple[str, ...]], str]] = [
    ([("selector=random", "seed=0"), ("selector=flash", "seed=1")], " rows=selector baseline=random"),
    ([("selector=ucb_cs",), ("selector=flash",)], " rows=selector"),
    ([("agg=fedavg", "selector=flash"), ("agg=scaffold", "selector=flash")], " rows=agg baseline=fedavg"),
    ([("agg=qffl", "selector=flash"), ("agg=fedavg", "selector=oort")], " rows=selector cols=agg baseline=fedavg"),
    ([("+client.lr=0.10",), ("+client.lr=0.2",)], " rows=client.lr"),
    ([("rounds=3", "selector=random"), ("rounds=20", "selector=flash")], " rows=selector cols=rounds baseline=random"),
    ([("seed=0",), ("seed=1",)], ""),
    ([("selector=flash",)], ""),
    ([("paths.x=1", "logger.every_s=1"), ("paths.x=2", "logger.every_s=2")], ""),
]


@pytest.mark.parametrize(("jobs", "how"), COMPARED)
def test_the_compare_command_has_the_swept_options(jobs: Sequence[tuple[str, ...]], how: str) -> None:
    assert describe_sweep(*jobs) == f"sweep s: {len(jobs)} done. Compare them: fedcohort compare sweep=s{how}"


def test_a_preset_that_a_swept_option_changes_is_no_swept_option(tmp_path: Path) -> None:
    """With label_noise=linear, `heterogeneity=noise_bimodal` has another recorded value."""
    swept_runs = []
    for selector, noise in itertools.product(("random", "flash"), ("bimodal", "linear")):
        choices = {"selector": selector, "partition": "iid", "label_noise": noise, "feature_noise": "none"}
        if noise == "bimodal":
            choices["heterogeneity"] = "noise_bimodal"
        info = make_run_info(
            tmp_path, choices=choices, config={"partition": {}, "label_noise": {}, "feature_noise": {}}
        )
        swept_runs.append((info, (f"selector={selector}", f"label_noise={noise}", "heterogeneity=noise_bimodal")))
    assert len({record.list_params(info)["heterogeneity"] for info, _ in swept_runs}) == 2
    axes = {"rows": "selector", "cols": "label_noise", "baseline": "random"}
    assert sweeps.choose_axes(swept_runs) == (axes, {})


def test_the_compare_command_fixes_the_third_swept_option(logs: Logs) -> None:
    """The filter is in MLflow's language, and a shell hands it over as it is."""
    client = logs.client()
    experiment = client.create_experiment("fedcohort")
    jobs = [
        (f"selector={a}", f"agg={b}", f"client.lr={c}", f"rounds={d}")
        for a, b, c, d in [("random", "fedavg", 0.1, 3), ("flash", "qffl", 0.1, 3), ("flash", "fedavg", 0.2, 20)]
    ]
    for overrides in jobs:
        pairs = [override.split("=") for override in overrides] + [["seed", "0"]]
        tags = [RunTag("sweep_id", "s"), RunTag("status", "finished"), RunTag("rounds", dict(pairs)["rounds"])]
        run = client.create_run(experiment).info.run_id
        client.log_batch(run, [Metric(ACC, 0.5, 0, 3)], [Param(key, value) for key, value in pairs], tags)
    summary, _, line = describe_sweep(*jobs).partition(": fedcohort ")
    assert summary == "sweep s: 3 done. Compare the runs of client.lr=0.1, rounds=3"
    arguments = shlex.split(line)[1:]
    assert arguments[:4] == ["sweep=s", "rows=selector", "cols=agg", "baseline=random"]
    text, _ = compare_runs(parse_options([*arguments, "curves=false"]))
    assert "| qffl | flash | 1 | 50.0 |" in text
    assert "| fedavg | random | 1 | 50.0 |" in text
    assert "2 runs of sweep s with params.\\`client.lr\\` = " in text


def test_the_compare_command_names_another_tracking_location() -> None:
    place = server.locate_server(None, "mine", Path("/a b/logs"))
    options = "'tracking_uri=sqlite:////a b/logs/mlflow.db' experiment=mine"
    assert describe_sweep(("seed=0",), ("seed=1",), place=place).endswith(f"fedcohort compare sweep=s {options}")


def test_the_compare_command_names_the_server_address() -> None:
    place = server.locate_server("http://127.0.0.1:9", "fedcohort", Path("logs"))
    assert describe_sweep(("seed=0",), place=place).endswith(
        "fedcohort compare sweep=s tracking_uri=http://127.0.0.1:9"
    )


def test_without_tracking_no_compare_command_is_printed() -> None:
    assert describe_sweep(("selector=flash",), tracked=False) == "sweep s: 1 done."


def test_finished_and_skipped_jobs_are_compared_as_one_sweep(
    logs: Logs, captured_log: pytest.LogCaptureFixture
) -> None:
    """Done, skipped, failed, stopped, killed and never started: those with a result are found by this sweep's id."""
    place, client = server.locate_server(logs.uri, "fedcohort", logs.path), logs.client()
    experiment = client.create_experiment("fedcohort")
    sweep = Sweep(logs.path / "sweeps" / "new", SweepPlan([[f"seed={n}"] for n in range(6)], launcher="BasicLauncher"))
    for number, (how, selector, tag) in enumerate([("skipped", "random", "old"), ("done", "flash", "new")]):
        overrides = (f"selector={selector}", "seed=0")
        folder = trained_run(logs.path / "runs" / selector, *overrides, place=place, sweep_id=tag)
        pairs = dict(override.split("=") for override in overrides)
        run = client.create_run(experiment, tags={"sweep_id": tag, "status": "finished", "rounds": "3"}).info.run_id
        client.log_batch(run, [Metric(ACC, 0.5, 0, 3)], [Param(key, value) for key, value in pairs.items()])
        (folder / identity.TRACKED_FILE).write_text(
            (folder / identity.TRACKED_FILE).read_text().replace('"run_id": null', f'"run_id": "{run}"')
        )
        if how == "skipped":
            sweeps.add_sweep_to_run(folder, "new")
        job(sweep, number, how, *overrides, folder=folder)
    job(sweep, 2, "failed", "cohort=40", reason="it exceeds clients=12")
    job(sweep, 3, "running", "seed=3", folder=logs.path / "runs" / "gone")
    job(sweep, 4, "stopped", "seed=4")
    assert sweep.finish_sweep() == 1
    assert captured_log.messages[:3] == [
        "failed: cohort=40: it exceeds clients=12",
        "failed: seed=3: its process was killed (kill -9, or the kernel for lack of memory)",
        "failed: seed=5: it was never started",
    ]
    messages, _, line = captured_log.messages[3].partition(" Compare them: fedcohort compare ")
    assert messages == "sweep new: 1 done, 1 skipped (finished before), 3 failed, 1 stopped."
    assert line.startswith("sweep=new rows=selector baseline=random")
    for id, rows in (("new", {"random", "flash"}), ("old", {"random"})):
        arguments = [argument for argument in shlex.split(line) if not argument.startswith(("sweep=", "baseline="))]
        text, _ = compare_runs(parse_options([*arguments, f"sweep={id}", "curves=false", f"out={logs.path / 'out'}"]))
        assert {name for name in ("random", "flash") if f"| {name} |" in text} == rows


def test_a_sweep_filter_does_not_match_longer_sweep_names(logs: Logs) -> None:
    client = logs.client()
    experiment = client.create_experiment("fedcohort")
    for number, tag in enumerate(["a", "ab", "b, a", "b"]):
        run = client.create_run(experiment, tags={"sweep_id": tag, "status": "finished"}).info.run_id
        params = [Param("seed", str(number)), Param("selector", f"s{number}")]
        client.log_batch(run, [Metric(ACC, 0.5, 0, 3)], params)
    arguments = [f"tracking_uri={logs.uri}", "sweep=a", "curves=false", f"out={logs.path / 'out'}"]
    text, _ = compare_runs(parse_options(arguments))
    assert [f"| s{n} |" in text for n in range(4)] == [True, False, True, False]


def test_a_run_keeps_the_sweeps_that_it_was_in(tmp_path: Path) -> None:
    folder = trained_run(tmp_path / "run", "seed=0", sweep_id="old")
    started = metadata.read_start_times(folder)
    sweeps.add_sweep_to_run(folder, "new")
    sweeps.add_sweep_to_run(folder, "new")
    assert metadata.load_info(folder).tags["sweep_id"] == "old, new"
    assert metadata.read_start_times(folder) == started, "nothing has started"
    assert sweeps.make_sweeps_tag(folder, None) == {"sweep_id": "old, new"}, "resumed by itself"
    assert sweeps.make_sweeps_tag(tmp_path / "none yet", None) == {}
    assert sweeps.make_sweeps_tag(tmp_path / "none yet", "new") == {"sweep_id": "new"}


def test_skipped_jobs_without_tracking_are_only_counted(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path / "sweeps" / "new")
    job(sweep, 0, "skipped", "seed=0", folder=trained_run(tmp_path / "untracked", "seed=0", tracked=False))
    (tmp_path / "without a journal").mkdir()
    job(sweep, 1, "skipped", "seed=1", folder=tmp_path / "without a journal")
    assert sweep.describe_results(sweep.read_records()) == "sweep new: 2 skipped (finished before)."


def test_an_unreachable_server_loses_only_the_sweep_tag(tmp_path: Path, captured_log: pytest.LogCaptureFixture) -> None:
    place = server.locate_server(f"sqlite:///{tmp_path / 'no' / 'such.db'}", "fedcohort", tmp_path)
    folder = trained_run(tmp_path / "run", "seed=0", place=place, sweep_id="old, new")
    path = folder / identity.TRACKED_FILE
    path.write_text(path.read_text().replace('"run_id": null', '"run_id": "0"'))
    (tmp_path / "no").touch()
    sweeps.send_sweep_tags([metadata.load_info(folder)])
    assert "cannot record that run belongs to this sweep, too" in captured_log.text


def test_only_a_sweep_has_an_overview(tmp_path: Path, captured_log: pytest.LogCaptureFixture) -> None:
    assert Sweep().finish_sweep() == 0
    assert Sweep(tmp_path / "no job ran", SweepPlan([["seed=0"]])).finish_sweep() == 0, "the error was reported before"
    assert captured_log.messages == []


def test_a_stopped_sweep_names_the_jobs_that_have_failed(
    tmp_path: Path, captured_log: pytest.LogCaptureFixture
) -> None:
    sweep = Sweep(tmp_path / "s", SweepPlan([["seed=0"], ["seed=1"], ["seed=2"]], launcher="BasicLauncher"))
    job(sweep, 0, "failed", "seed=0", reason="why")
    job(sweep, 1, "stopped", "seed=1")
    sweep.stop_sweep(143)
    assert captured_log.messages == ["failed: seed=0: why"]
    sweep.plan = replace(sweep.plan, launcher="JoblibLauncher")
    sweep.stop_sweep(143)
    assert captured_log.messages[1:] == ["failed: seed=0: why", "stopped; resume with the same sweep and resume=true"]


def test_on_slurm_the_jobs_outlive_the_sweep(
    tmp_path: Path, captured_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = Sweep(tmp_path / "s", SweepPlan(launcher="hydra_plugins.x.SlurmLauncher"))
    for name in ("12", "12_0", "12_1", "%j"):
        (tmp_path / "s" / ".submitit" / name).mkdir(parents=True)
    (tmp_path / "squeue").write_text("#!/bin/sh\nprintf '12_1\\n7\\n'\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    sweep.stop_sweep(130)
    assert captured_log.messages == ["the jobs continue without this process; `scancel 12` ends them"]


def test_an_unwritable_record_is_reported(tmp_path: Path, captured_log: pytest.LogCaptureFixture) -> None:
    (tmp_path / "s").touch()
    SweepJob(tmp_path / "s", 0, ("seed=0",)).write_record("done")
    assert "cannot be written" in captured_log.text
    assert sweep_folder.read_job_records(tmp_path / "s") == {}


def test_a_sweep_that_does_not_wait_leaves_its_jobs_to_slurm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, captured_log: pytest.LogCaptureFixture
) -> None:
    """It ends well, whatever the jobs do by then, and says how to look at them; a search has to wait."""
    sweep = Sweep(tmp_path / "s", SweepPlan(launcher="hydra_plugins.fedcohort.Slurm"), waits_for_jobs=False)
    job(sweep, 0, "running", "seed=0")
    monkeypatch.setattr(cluster, "list_array_ids", lambda folder: ["17"])
    assert sweep.finish_sweep() == 0
    assert re.fullmatch(
        r"submitted the jobs to SLURM \(17\); `.*fedcohort sweep status s` shows their status",
        captured_log.messages[-1],
    )
    monkeypatch.setattr(cluster, "submit_jobs", lambda context, jobs, options: dict.fromkeys(jobs, "17_0"))
    launcher = Slurm(partition="gpu")
    launcher.config = OmegaConf.create({"sweep": {"wait": False}})
    jobs, context = {0: ("seed=0",)}, JobContext(tmp_path / "s", tmp_path)
    assert list(launcher._run(context, jobs)) == []
    with pytest.raises(OptionError, match="a search, which chooses its jobs one by one"):
        list(launcher._run(replace(context, is_search=True), jobs))
