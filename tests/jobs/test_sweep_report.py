"""The report at the end of a sweep: where it is stored, and that its errors do not end the sweep."""
# ruff: noqa: F811

from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Metric, Param, RunTag

from comparison_harness import ACC
from fedcohort.jobs import sweep
from fedcohort.record import metadata
from fedcohort.report.comparison import figures
from fedcohort.tracking import identity, server, sweeps
from optional_values import not_none
from record.example_run import make_run_info
from tracking.databases import Logs, captured_log, logs  # noqa: F401


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sweep, sweeps):
        monkeypatch.setattr(module, "format_fedcohort_command", lambda verb: f"fedcohort {verb}")


def make_sweep_runs(logs: Logs, *, uri: str | None = None, tracked: bool = True) -> list[sweeps.SweptRun]:
    """The runs of sweep s: two selectors, three seeds; flash is ahead by 10, 11 and 12 points."""
    place = server.locate_server(uri or logs.uri, "fedcohort", logs.path)
    client = logs.client()
    experiment = client.create_experiment("fedcohort", artifact_location=(logs.path / "mlartifacts").as_uri())
    runs: list[sweeps.SweptRun] = []
    for choice in ("random", "flash"):
        for seed in range(3):
            folder = logs.path / "runs" / f"{choice}-{seed}"
            folder.mkdir(parents=True)
            metadata.save_info(make_run_info(folder, choices={"selector": choice}, config={}, tags={"sweep_id": "s"}))
            if tracked:
                identity.register_server_location(folder, place)
            id = client.create_run(experiment).info.run_id
            acc = 0.5 + (0.1 + 0.01 * seed) * (choice == "flash")
            tags = [RunTag("status", "finished"), RunTag("sweep_id", "s")]
            client.log_batch(id, [Metric(ACC, acc, 0, 1)], [Param("selector", choice), Param("seed", str(seed))], tags)
            runs.append((metadata.load_info(folder), (f"selector={choice}", f"seed={seed}")))
    return runs


def test_a_sweep_ends_with_a_verdict_and_a_report(logs: Logs, captured_log: pytest.LogCaptureFixture) -> None:
    """Differences 10, 11, 12: mean 11, s 1, half 4.30265 / sqrt(3) = 2.48."""
    sweep.write_sweep_report(logs.path / "sweeps" / "s", make_sweep_runs(logs))
    page = logs.path / "sweeps" / "s" / "report" / "report.html"
    verdict = (
        "flash is better than random: +11.0 points [8.5, 13.5], p = 0.003 after Holm's correction over 1 method, "
        "3 seeds."
    )
    assert captured_log.messages == [f"report: {page}", verdict]
    assert "flash is better than random: +11.0 points" in page.read_text()
    client = logs.client()
    (run,) = client.search_runs(
        [not_none(client.get_experiment_by_name("fedcohort")).experiment_id], "tags.report = 's'"
    )
    assert run.data.tags["verdict"] == verdict
    artifact_names = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert artifact_names == {file.name for file in page.parent.iterdir()} >= {"report.html", "table.md", "forest.png"}


def test_an_unreachable_server_loses_only_the_sweep_report(logs: Logs, captured_log: pytest.LogCaptureFixture) -> None:
    sweep.write_sweep_report(logs.path / "sweeps" / "s", make_sweep_runs(logs, uri="http://127.0.0.1:9"))
    (line,) = captured_log.messages
    assert line.startswith("the sweep has no report in MLflow (MLflow at http://127.0.0.1:9 can't be read (")
    repeat = "fedcohort compare sweep=s rows=selector baseline=random tracking_uri=http://127.0.0.1:9 report=true"
    assert line.endswith(f"`{repeat}` creates it")


def test_an_error_in_the_report_does_not_end_the_sweep(
    logs: Logs, captured_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise ZeroDivisionError("in a figure")

    monkeypatch.setattr(figures, "draw_comparison", fail)
    sweep.write_sweep_report(logs.path / "sweeps" / "s", make_sweep_runs(logs))
    assert "(ZeroDivisionError: in a figure)" in captured_log.messages[0]


def test_no_report_is_written_for_a_single_or_untracked_run(
    logs: Logs, captured_log: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    runs = make_sweep_runs(logs, tracked=False)
    sweep.write_sweep_report(tmp_path / "s", runs)
    sweep.write_sweep_report(tmp_path / "s", runs[:1])
    assert captured_log.messages == []
    assert not (tmp_path / "s").exists()
