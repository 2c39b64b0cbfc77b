"""What MLflow is told of a run, and that a run never waits for it."""

import dataclasses
import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from fedcohort.console.summary import Summary
from fedcohort.errors import OptionError, TrackingError
from fedcohort.record import history
from fedcohort.record.journal import Journal
from fedcohort.report.run_figures import Figures
from fedcohort.tracking import courier as courier_module
from fedcohort.tracking import record, server
from fedcohort.tracking import tracker as tracker_module
from fedcohort.tracking.courier import Courier
from fedcohort.tracking.feed import open_feed
from fedcohort.tracking.tracker import MlflowTracker
from known import known
from record.made_up import info, play, report
from tracking.databases import EXPERIMENT, Logs
from tracking.tracked import DEAD, check, run_info, watchers


def test_the_seeds_of_a_config_are_alike_and_no_other_runs(tmp_path: Path) -> None:
    def alike(name: str, **other: Any) -> str:
        return record.tags(info(tmp_path / name, **other), "finished")[record.ALIKE]

    assert alike("flash-fedavg-digits-a1b2c3d4-s0") == "flash-fedavg-digits a1b2c3d4 rounds=6"
    assert alike("flash-fedavg-digits-a1b2c3d4-s3-2", seed=3) == alike("flash-fedavg-digits-a1b2c3d4-s0")
    assert alike("flash-fedavg-digits-e5f6-s0", config_hash="e5f6") != alike("flash-fedavg-digits-a1b2c3d4-s0")
    assert alike("flash-fedavg-digits-a1b2c3d4-s0", rounds=200) == "flash-fedavg-digits a1b2c3d4 rounds=200"
    timed = alike("flash-fedavg-digits-a1b2c3d4-s0", config={"rounds": 6, "until": {"virtual_s": 90.0}})
    assert timed == "flash-fedavg-digits a1b2c3d4 rounds=6 until.virtual_s=90.0"


def test_a_run_with_all_its_facts(logs: Logs) -> None:
    facts = run_info(logs, tags={"sweep_id": "s1", "tracking": "mlflow ui", "engine": "sequential: because"})
    (facts.folder).mkdir(parents=True)
    (facts.folder / "config.yaml").write_text("seed: 0\n")
    play([Journal(), Summary(full=False), Figures(), logs.tracker()], facts)
    run = check(logs, 6)
    assert run.info.run_name == "flash-s0"
    tags, params = run.data.tags, run.data.params
    expected = {"selector": "flash", "agg": "scaffold", "sweep_id": "s1", "status": "finished", "fedcohort": "0.1.0"}
    assert {key: tags[key] for key in expected} == expected
    assert (tags["config_hash"], tags["dirty"], tags["folder"]) == ("a1b2c3d4", "false", str(facts.folder))
    assert tags["mlflow.source.git.commit"] == tags["commit"] == facts.commit
    assert "tracking" not in tags
    assert tags["engine"] == "sequential: because", "what auto came to"
    assert params["selector"] == "flash"
    assert params["selector.discount"] == "0.99"
    assert params["client.lr"] == "0.1"
    assert not {"selector._target_", "paths.logs", "name"} & params.keys()
    assert "best" in tags["mlflow.note.content"]
    (used,) = known(run.inputs).dataset_inputs
    assert (used.dataset.name, used.tags[0].value) == ("fashion_mnist", "noniid30_noise15")
    assert tags["heterogeneity"] == params["heterogeneity"] == "noniid30_noise15"
    found = {file.path for file in logs.client().list_artifacts(run.info.run_id)}
    assert found == {"report.html", "config.yaml", "summary.json", "clients.parquet", "figures"}
    drawn = {file.path for file in logs.client().list_artifacts(run.info.run_id, "figures")}
    assert "figures/accuracy.png" in drawn


def test_the_headline_has_a_name_that_sorts_first(logs: Logs) -> None:
    """MLflow's page that compares runs opens on the first metric by the alphabet that all of them have."""
    play(watchers(logs), run_info(logs))
    run = check(logs, 6)
    client, names = logs.client(), sorted(run.data.metrics)
    assert names[0] == record.FIRST
    histories = [client.get_metric_history(run.info.run_id, name) for name in (names[0], "test/acc")]
    first, second = ([(each.step, each.timestamp, each.value) for each in of] for of in histories)
    assert first == second != []


def test_heterogeneity_without_a_preset_is_told_by_its_parts(logs: Logs) -> None:
    config = {**run_info(logs).config, "partition": {"_target_": "x", "alpha": 0.1}}
    choices = {"selector": "flash", "partition": "dirichlet", "label_noise": "none", "experiment": "flash"}
    facts = run_info(logs, config=config, choices=choices)
    words = "dirichlet(alpha=0.1) + no label noise"
    assert record.tags(facts, "running")["heterogeneity"] == record.params(facts)["heterogeneity"] == words
    assert record.dataset(facts).tags[0].value == words
    assert record.tags(facts, "running")["experiment"] == record.params(facts)["experiment"] == "flash"


@pytest.mark.parametrize(("status", "theirs"), [("interrupted", "KILLED"), ("failed", "FAILED")])
def test_how_a_run_ended(logs: Logs, status: str, theirs: str) -> None:
    play(watchers(logs), run_info(logs), last=2, status=status)
    assert check(logs, 2, theirs).data.tags["status"] == status


def test_while_it_runs_it_says_so(logs: Logs) -> None:
    play(watchers(logs), run_info(logs), last=3, status="interrupted")
    again = watchers(logs)
    for watcher in again:
        watcher.start(run_info(logs, start=3))
    run = logs.only_run()
    assert (run.info.status, run.data.tags["status"]) == ("RUNNING", "running")


def test_without_a_server_the_run_goes_on_and_says_so_once(logs: Logs, said: pytest.LogCaptureFixture) -> None:
    play([Journal(), logs.tracker(DEAD)], run_info(logs))
    (warning,) = [entry for entry in said.records if entry.levelno >= logging.WARNING]
    text = warning.getMessage()
    assert f"MLflow at {DEAD} can't be reached ([Errno 111] Connection refused)" in text
    assert f"fedcohort sync {run_info(logs).folder}" in text
    assert len(history.lines(run_info(logs).folder / "journal.jsonl")[0]) == 7


def test_a_dead_server_is_not_asked_every_round(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(*args: object, **kwargs: object) -> None:
        asked.append(args)
        raise MlflowException("connection refused")

    monkeypatch.setattr(courier_module, "open_feed", refuse)
    play(watchers(logs), run_info(logs, rounds=50))
    assert len(asked) == 2  # at the start and at the end


def test_pauses_grow_with_failures_and_with_the_time_that_sending_takes(logs: Logs) -> None:
    courier = Courier(run_info(logs), logs.place(), 1, wait_s=60)
    assert (courier._pause(0.01), courier._pause(0.5)) == (1, 10)  # at most a twentieth of the time is spent sending
    courier._failures = 1
    assert courier._pause(0.01) == 2
    courier._failures = 60
    assert courier._pause(0.01) == 600
    assert Courier(run_info(logs), logs.place(), 0, wait_s=60)._pause(0.5) == 0


def test_the_first_rounds_are_sent_soon(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long importing MLflow and connecting took."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    planned = open_feed

    def slow(*args: Any) -> Any:
        clock[0] += 30
        return planned(*args)

    monkeypatch.setattr(courier_module, "open_feed", slow)
    journal, tracker = Journal(), logs.tracker(every_s=1)
    for watcher in (journal, tracker):
        watcher.start(run_info(logs))
    for step in range(3):
        clock[0] += 0.6
        for watcher in (journal, tracker):
            watcher.observe(report(step))
    run = logs.only_run()
    assert [m.step for m in logs.client().get_metric_history(run.info.run_id, "test/acc")] == [0, 1]


def test_a_deleted_experiment_is_named(logs: Logs) -> None:
    logs.client().delete_experiment(logs.client().create_experiment(EXPERIMENT))
    with pytest.raises(TrackingError, match=r"'selectors' is deleted .* logger.experiment"):
        play(watchers(logs), run_info(logs))


def test_an_experiment_shows_the_columns_that_matter(logs: Logs) -> None:
    play(watchers(logs), run_info(logs), last=0, status="interrupted")
    tags = known(logs.client().get_experiment_by_name(EXPERIMENT)).tags
    view = json.loads(json.loads(tags["mlflow.sharedViewState.fedcohort"])["state"])
    assert view["selectedColumns"][:3] == ["params.`selector`", "params.`agg`", "tags.`rounds`"]
    assert [section["name"] for section in view["compareRunSections"]][:2] == ["test", "clients"]
    assert {name.split("/")[0] for name in report(1).metrics} <= {each["name"] for each in view["compareRunSections"]}
    number = known(logs.client().get_experiment_by_name(EXPERIMENT)).experiment_id
    link = f"#/experiments/{number}/runs?workflowType=machine_learning&viewStateShareKey=fedcohort"
    assert tags["mlflow.note.content"].count(link) == 2


@pytest.mark.parametrize("uri", ["file:/tmp/mlruns", "file:///tmp/mlruns", "mlruns", "./mlruns"])
def test_a_folder_of_files_is_refused_by_name(tmp_path: Path, uri: str) -> None:
    with pytest.raises(OptionError, match=r"tracking_uri must be null, sqlite:///<file>, .* got '.*mlruns'"):
        MlflowTracker(tracking_uri=uri, experiment="x", every_s=1, wait_s=9, logs=str(tmp_path))


def test_a_database_that_cant_be_one_is_said_at_once(tmp_path: Path, logs: Logs) -> None:
    """MLflow itself tries to open it for minutes."""
    (tmp_path / "mlflow.db").mkdir()
    with pytest.raises(OptionError, match=r"tracking_uri must be the path of a file, not of a folder .*mlflow\.db'"):
        MlflowTracker(tracking_uri=None, experiment="x", every_s=1, wait_s=9, logs=str(tmp_path))
    database = known(logs.place().database)
    database.write_text("no database")
    with pytest.raises(OSError, match=r"mlflow\.db is no database that can be opened \(file is not a database\)"):
        server.connect(logs.place())


@pytest.mark.parametrize(("every_s", "experiment"), [(-1, "x"), (None, "x"), (True, "x"), (1, ""), (1, None)])
def test_options_out_of_range(tmp_path: Path, every_s: Any, experiment: Any) -> None:
    with pytest.raises(OptionError, match=r"(every_s|experiment) must be .*got"):
        MlflowTracker(tracking_uri=None, experiment=experiment, every_s=every_s, wait_s=9, logs=str(tmp_path))


@pytest.mark.parametrize(
    ("uri", "line"),
    [
        (None, "mlflow ui --backend-store-uri sqlite:////a/logs/mlflow.db"),
        ("sqlite:////b c/m.db", "mlflow ui --backend-store-uri 'sqlite:////b c/m.db'"),
        ("https://mlflow.example", "https://mlflow.example"),
    ],
)
def test_the_line_that_opens_the_page(monkeypatch: pytest.MonkeyPatch, uri: str | None, line: str) -> None:
    monkeypatch.setattr(tracker_module, "command", lambda name: name)
    assert MlflowTracker(tracking_uri=uri, experiment="x", every_s=1, wait_s=9, logs="/a/logs").opening_line() == line


def test_long_and_odd_values_fit_into_mlflow(logs: Logs) -> None:
    odd = {"text": "x" * 9000, "nothing": None, "flag": True, "list": [1, 2], "deep": {"er": {"est": 1e-3}}}
    facts = dataclasses.replace(run_info(logs), config=odd | {"cohort": 4}, tags={"long": "y" * 9000})
    params = record.params(facts)
    assert (params["nothing"], params["flag"], params["list"], params["deep.er.est"]) == (
        "null",
        "true",
        "[1, 2]",
        "0.001",
    )
    play(watchers(logs), facts, last=0)
    assert len(logs.only_run().data.params["text"]) == 6000


def test_equal_partitions_are_equal_datasets(logs: Logs) -> None:
    facts = run_info(logs)
    noisier = dataclasses.replace(facts, noise_rate=facts.noise_rate + 0.01)
    digests = [record.dataset(each).dataset.digest for each in (facts, run_info(logs), noisier)]
    assert digests[0] == digests[1] != digests[2]


def test_nothing_slow_is_imported_before_a_run_starts() -> None:
    modules = "fedcohort.tracking.tracker, fedcohort.record.journal, fedcohort.report.run_figures, "
    modules += "fedcohort.console.progress, fedcohort.console.summary"
    slow = "{'mlflow', 'matplotlib', 'pandas', 'rich', 'pyarrow', 'torch', 'sqlalchemy'}"
    code = f"import sys, {modules}; found = {slow} & sys.modules.keys(); assert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_mlflow_says_nothing_by_itself(tmp_path: Path) -> None:
    """Not alembic's fifty lines for a fresh database either, whatever level the root logger has."""
    code = f"""
import logging
logging.basicConfig(level=logging.INFO)
from fedcohort.tracking import server
where = server.place(None, "x", __import__("pathlib").Path({str(tmp_path)!r}))
server.experiment_id(server.connect(where), where)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout + done.stderr == ""
