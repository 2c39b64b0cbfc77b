"""`fedcohort sync`: whatever MLflow lacks of a run, it has afterwards."""
# ruff: noqa: F811

import errno
from pathlib import Path
from unittest.mock import Mock

import pytest

from fedcohort.command.sync import main, send_missing_rounds
from fedcohort.console.summary import Summary
from fedcohort.errors import CheckpointError, TrackingError
from fedcohort.record import folder, history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import RunInfo
from fedcohort.record.status import RunStatus
from fedcohort.tracking import identity, upload
from process_kills import kill_at_call, kill_self, run_in_child
from record.example_run import make_report, make_run_info, replay_run
from tracking.databases import Logs, logs  # noqa: F401

DEAD = "http://127.0.0.1:9"


def run_info(logs: Logs, start: int = 0) -> RunInfo:
    return make_run_info(logs.path / "runs" / "flash-s0", start=start)


def check(logs: Logs, last: int, status: str = "FINISHED") -> None:
    run = logs.only_run()
    lines, _ = history.read_journal_lines(run_info(logs).folder / "journal.jsonl")
    for name in make_report(1).metrics:
        sent_values = [(m.step, m.timestamp, m.value) for m in logs.client().get_metric_history(run.info.run_id, name)]
        assert sorted(sent_values) == [(line.step, line.time_ms, line.metrics[name]) for line in lines[: last + 1]]
    assert run.info.status == status


def test_a_run_without_a_reachable_server_is_sent_later(logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    replay_run([Journal(), Summary(full=False), logs.tracker(DEAD), RunStatus()], run_info(logs))
    folder = run_info(logs).folder
    capsys.readouterr()
    assert main([str(folder), f"tracking_uri={logs.uri}"]) == 0
    check(logs, 6)
    line = capsys.readouterr().out
    assert line == f"{folder}: sent 7 rounds, 2 files, to {logs.uri} (run {logs.only_run().info.run_id})\n"
    assert main([str(folder)]) == 0  # it remembers the new place
    assert "sent 0 rounds, 2 files" in capsys.readouterr().out
    check(logs, 6)


def test_an_untracked_run_is_sent(logs: Logs) -> None:
    replay_run([Journal(), RunStatus()], run_info(logs))
    with pytest.raises(TrackingError, match=r"was never tracked: name the server with tracking_uri="):
        send_missing_rounds(run_info(logs).folder)
    send_missing_rounds(run_info(logs).folder, logs.uri, "selectors")
    check(logs, 6)
    assert logs.only_run().data.params["selector"] == "flash"


def test_a_killed_run_is_marked_as_killed_and_can_resume(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_at_call(
        monkeypatch,
        upload,
        "log_metrics",
        3,
        "after",
        lambda: replay_run([Journal(), logs.tracker(), RunStatus()], run_info(logs)),
    )
    assert "sent 0 rounds" in send_missing_rounds(run_info(logs).folder)
    check(logs, 2, "KILLED")
    replay_run([Journal(), logs.tracker(), RunStatus()], run_info(logs, start=1))
    check(logs, 6)


def test_a_running_run_is_not_ended(logs: Logs) -> None:
    replay_run([Journal(), RunStatus()], run_info(logs), last=3, status="interrupted")
    lock = folder.take_lock(run_info(logs).folder)
    assert lock is not None
    assert "sent 4 rounds, still running" in send_missing_rounds(run_info(logs).folder, logs.uri, "selectors")
    check(logs, 3, "RUNNING")
    lock.close()
    assert "sent 0 rounds, 0 files" in send_missing_rounds(run_info(logs).folder)
    check(logs, 3, "KILLED")


def test_sync_can_be_killed_and_repeated(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    replay_run([Journal(), RunStatus()], run_info(logs))
    folder = run_info(logs).folder
    log_metrics = upload.log_metrics

    def log_three(client: object, run_id: str, batch: list[history.JournalLine]) -> None:
        log_metrics(client, run_id, batch[:3])  # type: ignore[arg-type]
        kill_self()

    with monkeypatch.context() as patched:
        patched.setattr(upload, "log_metrics", log_three)
        run_in_child(lambda: send_missing_rounds(folder, logs.uri, "selectors"))
    assert "sent 4 rounds" in send_missing_rounds(folder, logs.uri, "selectors")
    check(logs, 6)


def test_a_copied_folder_keeps_its_mlflow_run(logs: Logs, tmp_path: Path) -> None:
    replay_run([Journal(), logs.tracker(), RunStatus()], run_info(logs), last=3, status="interrupted")
    moved_folder = run_info(logs).folder.rename(tmp_path / "elsewhere")
    assert "sent 0 rounds" in send_missing_rounds(moved_folder)
    assert logs.only_run().data.tags["folder"] == str(moved_folder)


def test_several_folders_are_sent_and_each_error_is_reported(
    logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay_run([Journal(), RunStatus()], run_info(logs))
    assert main([str(tmp_path), str(run_info(logs).folder), f"tracking_uri={logs.uri}"]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"{tmp_path} is not the folder of a run: it holds no info.json. Name one in logs/runs\n"
    assert "sent 7 rounds" in captured.out
    with pytest.raises(CheckpointError):
        send_missing_rounds(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replay_run([Journal(), RunStatus()], run_info(logs))
    lock_file = run_info(logs).folder / identity.LOCK_FILE
    refuse_lock = Mock(side_effect=PermissionError(errno.EACCES, "Permission denied", str(lock_file)))
    monkeypatch.setattr(identity, "exclusive_lock", refuse_lock)
    assert main([str(run_info(logs).folder), f"tracking_uri={logs.uri}"]) == 2
    message_start = f"{lock_file.parent} is read-only (Permission denied): make the folder and its files writable"
    assert capsys.readouterr().err.startswith(message_start)


def test_an_unreachable_server_is_reported(logs: Logs) -> None:
    replay_run([Journal(), RunStatus()], run_info(logs))
    with pytest.raises(TrackingError, match=rf"MLflow at {DEAD} can't be reached \(.*refused\)"):
        send_missing_rounds(run_info(logs).folder, DEAD)
    assert not (run_info(logs).folder / "mlflow.json").exists()
