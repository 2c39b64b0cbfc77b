"""A connection to MLflow's database or server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fedcohort.errors import OptionError
from fedcohort.tracking import server
from fedcohort.tracking.tracker import MlflowTracker
from optional_values import not_none
from record.example_run import make_report, replay_run
from tracking.databases import EXPERIMENT, Logs
from tracking.tracked_run import make_observers, run_info


def test_an_experiment_shows_the_columns_that_matter(logs: Logs) -> None:
    replay_run(make_observers(logs), run_info(logs), last=0, status="interrupted")
    tags = not_none(logs.client().get_experiment_by_name(EXPERIMENT)).tags
    view = json.loads(json.loads(tags["mlflow.sharedViewState.fedcohort"])["state"])
    assert view["selectedColumns"][:3] == ["params.`selector`", "params.`agg`", "tags.`rounds`"]
    assert [section["name"] for section in view["compareRunSections"]][:2] == ["test", "clients"]
    assert {name.split("/")[0] for name in make_report(1).metrics} <= {
        item["name"] for item in view["compareRunSections"]
    }
    number = not_none(logs.client().get_experiment_by_name(EXPERIMENT)).experiment_id
    link = f"#/experiments/{number}/runs?workflowType=machine_learning&viewStateShareKey=fedcohort"
    assert tags["mlflow.note.content"].count(link) == 2


def test_an_invalid_database_is_reported_immediately(tmp_path: Path, logs: Logs) -> None:
    """MLflow itself tries to open it for minutes."""
    (tmp_path / "mlflow.db").mkdir()
    with pytest.raises(OptionError, match=r"tracking_uri must be the path of a file \(not of a folder\) .*mlflow\.db'"):
        MlflowTracker(tracking_uri=None, experiment="x", every_s=1, wait_s=9, logs=str(tmp_path))
    with pytest.raises(OptionError, match=r"path of a file .* without .*, got '.*why\?/mlflow.db'"):
        MlflowTracker(tracking_uri=None, experiment="x", every_s=1, wait_s=9, logs=str(tmp_path / "why?"))
    database = not_none(logs.place().database)
    database.write_text("no database")
    with pytest.raises(OSError, match=r"mlflow\.db is no database that can be opened \(file is not a database\)"):
        server.connect(logs.place())


def test_mlflow_prints_nothing(tmp_path: Path) -> None:
    """Not alembic's fifty lines for a fresh database either, whatever level the root logger has."""
    code = f"""
import logging
logging.basicConfig(level=logging.INFO)
from fedcohort.tracking import server
where = server.locate_server(None, "x", __import__("pathlib").Path({str(tmp_path)!r}))
server.find_or_create_experiment(server.connect(where), where)
"""
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert process.stdout + process.stderr == ""
