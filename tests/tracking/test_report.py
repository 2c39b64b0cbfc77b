"""A comparison is a separate MLflow run: it is rewritten and not repeated, and not listed among the compared runs."""
# ruff: noqa: F811

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Param, Run

from fedcohort.tracking import report, view
from fedcohort.tracking.report import publish_report
from fedcohort.tracking.server import find_or_create_experiment
from optional_values import not_none
from tracking.databases import EXPERIMENT, Logs, logs  # noqa: F401


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name in ("report.html", "table.md"):
        (tmp_path / name).write_text(f"{name} of the first")
    return [tmp_path / "report.html", tmp_path / "table.md"]


def make_report_facts(sweep: str | None, files: list[Path], verdict_text: str = "ucb is ahead") -> dict[str, Any]:
    facts = {"name": "report: test/acc by selector", "sweep": sweep, "subject": sweep or "all runs"}
    return {**facts, "verdict": verdict_text, "note": f"> {verdict_text}", "files": files}


def runs_of(logs: Logs, *sweeps: str, start: int = 1) -> None:
    """A run for each of `sweeps`, which begin one after the other."""
    client = logs.client()
    experiment = find_or_create_experiment(client, logs.place())
    for number, tag in enumerate(sweeps):
        client.create_run(experiment, start_time=start + number, tags={"sweep_id": tag})


def reports(logs: Logs) -> list[Run]:
    return [run for run in logs.runs() if "report" in run.data.tags]


def note(logs: Logs) -> list[str]:
    return not_none(logs.client().get_experiment_by_name(EXPERIMENT)).tags[view.NOTE_TAG].split("\n\n")


def test_the_report_is_the_first_run_with_its_files_and_verdict(logs: Logs, files: list[Path]) -> None:
    runs_of(logs, "a", "a")
    id = publish_report(logs.place(), **make_report_facts("a", files))
    first = logs.runs()[0]
    assert (first.info.run_id, first.info.run_name, first.info.status) == (
        id,
        "report: test/acc by selector",
        "FINISHED",
    )
    assert first.data.tags["report"] == "a"
    assert {file.path for file in logs.client().list_artifacts(id)} == {"report.html", "table.md"}
    link = f"#/experiments/{first.info.experiment_id}/runs/{id}/artifacts/report.html?workflowType=machine_learning"
    assert first.data.tags[view.NOTE_TAG] == f"[The page]({link})\n\n> ucb is ahead"
    view_link = f"#/experiments/{first.info.experiment_id}/runs?workflowType=machine_learning&viewStateShareKey=sweep-a"
    messages, remainder = note(logs)
    assert messages.startswith(f"**[Answer]({link})**: ucb is ahead ([sweep a](")
    assert re.search(r"\), 20\d\d-\d\d-\d\d \d\d:\d\d\)$", messages)
    assert view_link in messages
    assert remainder == view.write_experiment_note(first.info.experiment_id)


def test_a_repeated_report_replaces_the_earlier_one(logs: Logs, files: list[Path]) -> None:
    runs_of(logs, "a", "a")
    publish_report(logs.place(), **make_report_facts("a", files))
    files[0].write_text("the second")
    id = publish_report(logs.place(), **make_report_facts("a", files, verdict_text="no method is ahead"))
    (run,) = reports(logs)
    assert run.data.tags["verdict"] == "no method is ahead"
    assert run.info.run_id == id
    assert Path(logs.client().download_artifacts(id, "report.html")).read_text() == "the second"
    assert [line.partition(": ")[2].partition(" (")[0] for line in note(logs)[:-1]] == ["no method is ahead"]


def test_a_report_on_all_runs_keeps_those_on_sweeps(logs: Logs, files: list[Path]) -> None:
    runs_of(logs, "a")
    for sweep in ("a", None, None):
        publish_report(logs.place(), **make_report_facts(sweep, files))
    assert sorted(run.data.tags["report"] for run in reports(logs)) == ["a", "all runs"]
    publish_report(logs.place(), **{**make_report_facts(None, files), "subject": "params.x = '%'"})
    publish_report(logs.place(), **make_report_facts("a", files))
    assert len(reports(logs)) == 3, "a condition is no sweep"


def test_user_text_in_the_experiment_note_is_kept(logs: Logs, files: list[Path]) -> None:
    runs_of(logs, "a")
    client, experiment = logs.client(), find_or_create_experiment(logs.client(), logs.place())
    client.set_experiment_tag(experiment, view.NOTE_TAG, "Ours.\n\nTwo lines.")
    for verdict_text in ("one", "two"):
        publish_report(logs.place(), **make_report_facts("a", files, verdict_text))
    assert note(logs)[1:] == ["Ours.", "Two lines."]
    client.set_experiment_tag(experiment, view.NOTE_TAG, "x" * 4900)
    publish_report(logs.place(), **make_report_facts("a", files))
    assert note(logs) == ["x" * 4900], "no room"


def test_long_verdicts_are_cut_to_the_length_of_a_note(logs: Logs, files: list[Path]) -> None:
    runs_of(logs, "a")
    for subject in ("a", *"bcdefg"):
        publish_report(logs.place(), **{**make_report_facts(None, files, "y" * 2000), "subject": subject})
    assert len("\n\n".join(note(logs))) <= 5000
    assert len(note(logs)) == 3, "two of them, and the rest"


def test_the_view_groups_seeds_and_sorts_by_the_headline(logs: Logs) -> None:
    """Under a name that sorts before all others: MLflow's columns and compare page go by the alphabet."""
    find_or_create_experiment(logs.client(), logs.place())
    tags = not_none(logs.client().get_experiment_by_name(EXPERIMENT)).tags
    state = json.loads(json.loads(tags["mlflow.sharedViewState.fedcohort"])["state"])
    assert state["groupBy"]["groupByKeys"] == [{"mode": "tag", "groupByData": "condition"}]
    assert state["groupsExpanded"] == {"tag.condition": True}
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`acc`", False)
    metrics = [column for column in state["selectedColumns"] if column.startswith("metrics.")]
    assert min(metrics) == "metrics.`acc`"
    sections = {section["uuid"]: section["name"] for section in state["compareRunSections"]}
    assert [(chart["metricKey"], sections[chart["metricSectionId"]]) for chart in state["compareRunCharts"]] == [
        ("acc", "test")
    ]


def test_special_characters_in_a_sweep_name_match_no_other_sweep() -> None:
    assert report._list_runs_of_sweep(None, "1", "100 %") == []  # type: ignore[arg-type]


def test_a_sweep_has_a_view_of_its_runs_and_their_options(logs: Logs, files: list[Path]) -> None:
    client = logs.client()
    experiment = find_or_create_experiment(client, logs.place())
    for number, selector in enumerate(("random", "flash", "flash")):
        run = client.create_run(experiment, tags={"sweep_id": "s"})
        facts = {"selector": selector, f"selector.of_{selector}": "1", "client.lr": f"0.{number // 2}"}
        facts |= {"seed": f"{number}", "agg": "fedavg"}
        client.log_batch(run.info.run_id, params=[Param(name, value) for name, value in facts.items()])
    publish_report(logs.place(), **make_report_facts("s", files))
    tags = not_none(client.get_experiment(experiment)).tags
    stored_view = json.loads(tags["mlflow.sharedViewState.sweep-s"])
    state = json.loads(stored_view["state"])
    assert stored_view["name"] == "Sweep s"
    assert state["searchFilter"] == "tags.sweep_id LIKE '%s%'"
    assert set(state["selectedColumns"]) == {
        "metrics.`acc`",
        "params.`selector`",
        "params.`client.lr`",
        "params.`seed`",
    }
    assert "`selector=" in note(logs)[0]
    assert "client.lr=" in note(logs)[0]
    assert view.list_sweep_views(tags) == ["s"]
