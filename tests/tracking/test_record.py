"""The tags, parameters and data set of a run in MLflow."""

import dataclasses
from pathlib import Path
from typing import Any

from fedcohort.console.summary import Summary
from fedcohort.record.journal import Journal
from fedcohort.report.run_figures import Figures
from fedcohort.tracking import record
from optional_values import not_none
from record.example_run import make_run_info, replay_run
from tracking.databases import Logs
from tracking.tracked_run import check_tracked_run, make_observers, run_info


def test_runs_that_differ_only_in_the_seed_share_the_condition_tag(tmp_path: Path) -> None:
    def condition(name: str, **options: Any) -> str:
        return record.list_tags(make_run_info(tmp_path / name, **options), "finished")[record.CONDITION_TAG]

    assert condition("flash-fedavg-digits-a1b2c3d4-s0") == "flash-fedavg-digits a1b2c3d4 rounds=6"
    assert condition("flash-fedavg-digits-a1b2c3d4-s3-2", seed=3) == condition("flash-fedavg-digits-a1b2c3d4-s0")
    assert condition("flash-fedavg-digits-e5f6-s0", config_hash="e5f6") != condition("flash-fedavg-digits-a1b2c3d4-s0")
    assert condition("flash-fedavg-digits-a1b2c3d4-s0", rounds=200) == "flash-fedavg-digits a1b2c3d4 rounds=200"
    timed = condition("flash-fedavg-digits-a1b2c3d4-s0", config={"rounds": 6, "until": {"virtual_s": 90.0}})
    assert timed == "flash-fedavg-digits a1b2c3d4 rounds=6 until.virtual_s=90.0"


def test_an_uploaded_run_has_params_tags_and_files(logs: Logs) -> None:
    facts = run_info(logs, tags={"sweep_id": "s1", "tracking": "mlflow ui", "engine": "sequential: because"})
    (facts.folder).mkdir(parents=True)
    (facts.folder / "config.yaml").write_text("seed: 0\n")
    replay_run([Journal(), Summary(full=False), Figures(["png"], always=True), logs.tracker()], facts)
    run = check_tracked_run(logs, 6)
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
    (used,) = not_none(run.inputs).dataset_inputs
    assert (used.dataset.name, used.tags[0].value) == ("fashion_mnist", "noniid30_noise15")
    assert tags["heterogeneity"] == params["heterogeneity"] == "noniid30_noise15"
    artifact_names = {file.path for file in logs.client().list_artifacts(run.info.run_id)}
    assert artifact_names == {"report.html", "config.yaml", "summary.json", "clients.parquet", "figures"}
    drawn = {file.path for file in logs.client().list_artifacts(run.info.run_id, "figures")}
    assert "figures/accuracy.png" in drawn


def test_heterogeneity_without_a_preset_is_described_by_its_components(logs: Logs) -> None:
    config = {**run_info(logs).config, "partition": {"_target_": "x", "alpha": 0.1}}
    choices = {"selector": "flash", "partition": "dirichlet", "label_noise": "none", "experiment": "flash"}
    facts = run_info(logs, config=config, choices=choices)
    description = "dirichlet(alpha=0.1) + no label noise"
    assert (
        record.list_tags(facts, "running")["heterogeneity"] == record.list_params(facts)["heterogeneity"] == description
    )
    assert record.describe_dataset(facts).tags[0].value == description
    assert record.list_tags(facts, "running")["experiment"] == record.list_params(facts)["experiment"] == "flash"


def test_long_and_unusual_values_are_shortened_for_mlflow(logs: Logs) -> None:
    unusual_values = {"text": "x" * 9000, "nothing": None, "flag": True, "list": [1, 2], "deep": {"er": {"est": 1e-3}}}
    facts = dataclasses.replace(run_info(logs), config=unusual_values | {"cohort": 4}, tags={"long": "y" * 9000})
    params = record.list_params(facts)
    assert (params["nothing"], params["flag"], params["list"], params["deep.er.est"]) == (
        "null",
        "true",
        "[1, 2]",
        "0.001",
    )
    replay_run(make_observers(logs), facts, last=0)
    assert len(logs.only_run().data.params["text"]) == 6000


def test_equal_partitions_are_equal_datasets(logs: Logs) -> None:
    facts = run_info(logs)
    noisier = dataclasses.replace(facts, noise_rate=facts.noise_rate + 0.01)
    digests = [record.describe_dataset(item).dataset.digest for item in (facts, run_info(logs), noisier)]
    assert digests[0] == digests[1] != digests[2]
