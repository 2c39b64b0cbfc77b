"""MLflow gets every round exactly once: killed anywhere, started two at a time, moved, deleted."""

import dataclasses
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from fedcohort.errors import TrackingError
from fedcohort.record import history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import identity, record, server, upload
from fedcohort.tracking.follow import RunSender
from process_kills import kill_at_call, run_in_child
from record.example_run import make_report, make_run_info, replay_run
from tracking.databases import Logs, database_template
from tracking.tracked_run import check_tracked_run, make_observers, run_info


def test_a_resumed_run_is_the_same_run(logs: Logs) -> None:
    replay_run(make_observers(logs), run_info(logs), last=3, status="interrupted")
    changed = dataclasses.replace(
        run_info(logs, rounds=8, start=2), config={**run_info(logs).config, "rounds": 8}, tags={"sweep_id": "s2"}
    )
    replay_run(make_observers(logs), changed)
    run = check_tracked_run(logs, 8)
    assert (run.data.params["rounds"], run.data.tags["changed.rounds"]) == ("6", "8")
    assert run.data.tags["sweep_id"] == "s2"


def test_tags_have_the_requested_and_completed_rounds(logs: Logs) -> None:
    def round_tags() -> tuple[str, str]:
        tags = logs.only_run().data.tags
        return tags["rounds"], tags["rounds_done"]

    replay_run(make_observers(logs), run_info(logs), last=4, status="interrupted")
    assert round_tags() == ("6", "4")
    repeat = make_observers(logs)
    for watcher in repeat:
        watcher.start(run_info(logs, rounds=9, start=3))
    assert round_tags() == ("9", "3")
    assert logs.only_run().data.tags["condition"].endswith(" rounds=9"), (
        "an extended run leaves the group of the shorter"
    )
    replay_run(make_observers(logs), run_info(logs, rounds=9, start=3), last=7)  # a callback has ended it
    assert round_tags() == ("9", "7")
    replay_run(make_observers(logs), run_info(logs, rounds=8, start=7))
    assert round_tags() == ("8", "8")


def test_the_name_option_becomes_a_tag(logs: Logs) -> None:
    """So that `compare rows=name` has rows of names that one gave."""
    named_run = dataclasses.replace(run_info(logs), config={**run_info(logs).config, "name": "first_try"})
    replay_run(make_observers(logs), named_run)
    assert logs.only_run().data.tags["name"] == "first_try"


def test_a_tag_names_the_budget_that_ended_the_run(logs: Logs) -> None:
    """A round takes 310 s, four of them 1240; the parameter keeps its first value, and the tag has the latest one."""

    def budget_tags() -> tuple[str | None, ...]:
        run = logs.only_run()
        result = (run.data.params, "until.virtual_s"), (run.data.tags, "until.virtual_s"), (run.data.tags, "ended_by")
        return tuple(values.get(name) for values, name in result)

    config = run_info(logs).config
    first, second = ({**config, "until": {"virtual_s": end, "bytes": None, "acc": None}} for end in (1240.0, 310.0 * 6))
    replay_run(make_observers(logs), run_info(logs, config=first), last=4)
    assert budget_tags() == ("1240.0", "1240.0", "until.virtual_s")
    replay_run(make_observers(logs), run_info(logs, config=second, start=4))
    assert budget_tags() == ("1240.0", "1860.0", "rounds, until.virtual_s")


KILLS: list[tuple[Any, str, int, str]] = [
    (identity, "_write_tracked_run", 1, "before"),  # nothing is known yet
    (identity, "_create_run", 1, "before"),
    (identity, "_create_run", 1, "after"),  # the run exists, the folder doesn't know it
    (identity, "update_mlflow_run", 1, "before"),
    (identity, "update_mlflow_run", 1, "after"),
    (upload, "log_metrics", 1, "before"),
    (upload, "log_metrics", 4, "before"),
    (upload, "log_metrics", 4, "after"),  # the batch has arrived, but the sender did not learn it
    (upload.RunUpload, "set_status_tags", 1, "before"),  # the files are there, the run is not ended
    (upload.RunUpload, "end_run", 1, "after"),
]


@pytest.mark.parametrize(("owner", "name", "call", "moment"), KILLS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_a_follower_killed_at_any_call_sends_every_round_exactly_once(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, moment: str
) -> None:
    kill_at_call(monkeypatch, owner, name, call, moment, lambda: replay_run(make_observers(logs), run_info(logs)))
    lines, _ = history.read_journal_lines(run_info(logs).folder / "journal.jsonl")
    replay_run(make_observers(logs), run_info(logs, start=max(len(lines) - 3, 0)))
    check_tracked_run(logs, 6)


def test_sending_again_changes_nothing(logs: Logs) -> None:
    """The sender queries what the server has; if the reply is lost, the primary key prevents duplicates."""
    replay_run(make_observers(logs), run_info(logs))
    lines, _ = history.read_journal_lines(run_info(logs).folder / "journal.jsonl")
    upload.log_metrics(logs.client(), logs.only_run().info.run_id, lines)
    check_tracked_run(logs, 6)


def run_and_track(logs: Logs, facts: RunInfo) -> None:
    replay_run(make_observers(logs), facts)


def test_two_processes_can_create_the_same_database(tmp_path: Path) -> None:
    empty_logs = Logs(tmp_path / "logs")
    children = []
    for number in range(2):
        facts = make_run_info(empty_logs.path / "runs" / f"run-{number}", rounds=2)
        pid = os.fork()
        if pid == 0:
            os._exit(0 if run_in_child(partial(run_and_track, empty_logs, facts)) == 0 else 1)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 2
    assert sorted(run.info.status for run in empty_logs.runs()) == ["FINISHED"] * 2
    steps = [
        m.step for run in empty_logs.runs() for m in empty_logs.client().get_metric_history(run.info.run_id, "test/acc")
    ]
    assert sorted(steps) == sorted([0, 1, 2] * 2)


def test_a_kill_during_table_creation_leaves_no_partial_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_logs = Logs(tmp_path / "logs")
    kill_at_call(
        monkeypatch, os, "replace", 4, "before", lambda: replay_run(make_observers(empty_logs), run_info(empty_logs))
    )
    assert not (empty_logs.path / "mlflow.db").exists()
    assert (empty_logs.path / ".mlflow.db.fedcohort-draft").exists()


def test_after_an_outage_the_missing_rounds_are_sent(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, captured_log: pytest.LogCaptureFixture
) -> None:
    log_metrics = upload.log_metrics

    def fail_in_rounds_2_to_4(client: Any, run_id: str, batch: list[history.JournalLine]) -> None:
        if 2 <= batch[-1].step <= 4:
            raise MlflowException("connection refused")
        log_metrics(client, run_id, batch)

    monkeypatch.setattr(upload, "log_metrics", fail_in_rounds_2_to_4)
    monkeypatch.setattr(RunSender, "_choose_pause_s", lambda self, took: 0.0)
    replay_run(make_observers(logs), run_info(logs))
    check_tracked_run(logs, 6)
    texts = [entry.getMessage() for entry in captured_log.records]
    assert [("can't be reached" in text, "is reachable again" in text) for text in texts] == [
        (True, False),
        (False, True),
    ]


def test_a_locked_database_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    errors: list[Exception] = [MlflowException("(sqlite3.OperationalError) database is locked")] * 3

    def action() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert server.retry_after_conflicts(action) == "done"
    errors += [MlflowException("no such table")]
    with pytest.raises(MlflowException, match="no such table"):
        server.retry_after_conflicts(action)
    errors += [MlflowException("database is locked")] * 5
    with pytest.raises(MlflowException, match="locked"):
        server.retry_after_conflicts(action)


def test_rounds_that_another_follower_is_sending_are_sent_again(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    log_metrics, conflicts = (
        upload.log_metrics,
        [MlflowException("UNIQUE constraint failed: metrics.key, metrics.timestamp")],
    )

    def conflict_once(client: Any, run_id: str, batch: list[history.JournalLine]) -> None:
        if batch[-1].step == 6 and conflicts:
            raise conflicts.pop()
        log_metrics(client, run_id, batch)

    monkeypatch.setattr(upload, "log_metrics", conflict_once)
    replay_run([Journal(), logs.tracker(every_s=3600)], run_info(logs))  # all rounds are sent at the end
    assert not conflicts
    check_tracked_run(logs, 6)


def test_rounds_are_sent_in_batches(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    log_metrics = upload.log_metrics

    def count(client: Any, run_id: str, batch: list[history.JournalLine]) -> None:
        batches.append(len(batch))
        log_metrics(client, run_id, batch)

    monkeypatch.setattr(upload, "log_metrics", count)
    replay_run([Journal(), logs.tracker(every_s=3600)], run_info(logs, rounds=60))
    check_tracked_run(logs, 60)
    limit = 1000 // len(make_report(1).metrics)
    assert batches == [limit, 61 - limit]


def test_a_deleted_run_is_created_again(logs: Logs) -> None:
    replay_run(make_observers(logs), run_info(logs), last=3, status="interrupted")
    logs.client().delete_run(logs.only_run().info.run_id)
    replay_run(make_observers(logs), run_info(logs, start=3))
    check_tracked_run(logs, 6)


@pytest.mark.parametrize("text", ["{", "[]", '{"tracking_uri": "a", "colour": 1}'])
def test_a_damaged_mlflow_json_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mlflow.json").write_text(text)
    with pytest.raises(TrackingError, match=r"mlflow\.json is damaged"):
        identity.load_tracked_run(tmp_path)


def test_another_tracking_uri_creates_another_mlflow_run(logs: Logs, tmp_path: Path) -> None:
    replay_run(make_observers(logs), run_info(logs), last=3, status="interrupted")
    other_uri = f"sqlite:///{tmp_path / 'other.db'}"
    (tmp_path / "other.db").write_bytes(database_template())
    replay_run([Journal(), logs.tracker(other_uri)], run_info(logs, start=3))
    assert logs.only_run().info.status == "KILLED"  # where it was first it stays as it ended
    assert json.loads((run_info(logs).folder / "mlflow.json").read_text())["tracking_uri"] == other_uri
    replay_run(make_observers(logs), run_info(logs, rounds=8, start=6))
    check_tracked_run(logs, 8)


def test_the_main_metric_has_a_name_that_sorts_first(logs: Logs) -> None:
    """MLflow's page that compares runs opens on the first metric by the alphabet that all of them have."""
    replay_run(make_observers(logs), run_info(logs))
    run = check_tracked_run(logs, 6)
    client, names = logs.client(), sorted(run.data.metrics)
    assert names[0] == record.FIRST_METRIC_NAME
    histories = [client.get_metric_history(run.info.run_id, name) for name in (names[0], "test/acc")]
    first, second = ([(item.step, item.timestamp, item.value) for item in values] for values in histories)
    assert first == second != []
