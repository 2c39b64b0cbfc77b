"""A server elsewhere: runs and their report go there, while the runs' folders are here."""
# ruff: noqa: F811

import threading
from collections.abc import Iterator

import pytest
from mlflow import MlflowClient
from werkzeug.serving import make_server

from fedcohort.jobs.sweep import write_sweep_report
from fedcohort.record.journal import Journal
from fedcohort.results.matching.question import ComparisonQuestion
from fedcohort.startup.comparison import compare_tracked_runs
from fedcohort.tracking.runs import RunQuery
from fedcohort.tracking.server import MLFLOW_SETTINGS
from fedcohort.tracking.sweeps import SweptRun
from optional_values import not_none
from record.example_run import make_run_info, replay_run
from tracking.databases import EXPERIMENT, Logs, captured_log, logs  # noqa: F401


@pytest.fixture
def address(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Start MLflow's server in a thread, because a separate process takes seconds to import it."""
    for name, value in MLFLOW_SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("_MLFLOW_SERVER_FILE_STORE", logs.uri)
    monkeypatch.setenv("_MLFLOW_SERVER_SERVE_ARTIFACTS", "true")
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", "mlflow-artifacts:/")
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_DESTINATION", (logs.path / "elsewhere").as_uri())
    from mlflow.server import app, handlers  # noqa: PLC0415 - takes seconds

    for name in ("_tracking_store", "_artifact_repo"):
        monkeypatch.setattr(handlers, name, None)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


def test_a_sweep_with_a_tracking_uri_stores_runs_and_report_on_that_server(
    logs: Logs, address: str, captured_log: pytest.LogCaptureFixture
) -> None:
    runs: list[SweptRun] = []
    for choice in ("random", "flash"):
        for seed in range(2):
            folder = logs.path / "runs" / f"{choice}-{seed}"
            config = {"seed": seed, "cohort": 4, "rounds": 2}
            facts = make_run_info(
                folder, choices={"selector": choice}, config=config, tags={"sweep_id": "s"}, seed=seed
            )
            replay_run([Journal(), logs.tracker(address)], facts, last=2)
            runs.append((facts, (f"selector={choice}", f"seed={seed}")))
    write_sweep_report(logs.path / "sweeps" / "s", runs)
    assert [item.getMessage().partition(":")[0] for item in captured_log.records if item.name == "fedcohort"] == [
        "report",
        "flash has 2 seeds in common with random (+0.0 points)",
        "random is still improving",
    ]
    client = MlflowClient(address)
    experiment = not_none(client.get_experiment_by_name(EXPERIMENT)).experiment_id
    first, *other_runs = client.search_runs([experiment])
    assert (first.data.tags["report"], len(other_runs)) == ("s", 4)
    assert "report.html" in {file.path for file in client.list_artifacts(first.info.run_id)}
    curves = compare_tracked_runs(RunQuery(address, EXPERIMENT, "s"), ComparisonQuestion()).frames.curves
    assert set(curves.groupby("run").size()) == {3}
