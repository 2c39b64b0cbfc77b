"""The summary: the same numbers for programs and for people, of the whole run."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from console.summary_harness import make_observers, play_metrics, read_summary
from fedcohort.console import terminal
from fedcohort.console.summary import Summary
from fedcohort.errors import OptionError
from fedcohort.record import metadata
from fedcohort.record.journal import Journal
from fedcohort.results.summary_rows import list_further_rows
from record.example_run import make_report, make_run_info, replay_run


def test_the_summary_has_all_fields(tmp_path: Path) -> None:
    facts = make_run_info(tmp_path / "run", tags={"sweep_id": "s1", "tracking": "mlflow ui"})
    replay_run(make_observers(), facts)
    summary, last = read_summary(facts.folder), make_report(6)
    assert summary["final"] == last.metrics
    best = max(range(7), key=lambda step: make_report(step).metrics["test/acc"])
    assert summary["best"]["test/acc"] == {"value": make_report(best).metrics["test/acc"], "round": best}
    assert (summary["status"], summary["rounds"], summary["rounds_asked"]) == ("finished", 6, 6)
    assert summary["fingerprint"] == last.fingerprint
    assert (summary["virtual_s"], summary["client_flops"], summary["server_flops"]) == (1860.0, 3.2e11 * 6, 6e9)
    assert summary["bytes"] == {"down": 1.5e7, "up": 2.4e6 * 6, "probe": 24_000.0}
    assert (summary["seed"], summary["config_hash"], summary["commit"]) == (0, "a1b2c3d4", facts.commit)
    assert summary["versions"]["torch"] == "2.13.0"
    assert summary["tags"] == {"sweep_id": "s1"}
    assert 0 < summary["wall_s"] < 60


def test_the_summary_names_the_budget_that_ended_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A round takes 310 s, so that 900 s are reached in the third; an interrupted run was ended by none."""
    config = {**make_run_info(tmp_path).config, "until": {"virtual_s": 900, "bytes": None, "acc": None}}
    replay_run(make_observers(), make_run_info(tmp_path / "run", config=config), last=3)
    assert read_summary(tmp_path / "run")["ended_by"] == ["until.virtual_s"]
    assert "run: finished after 3 of 6 rounds: until.virtual_s=900 is reached (930)\n" in capsys.readouterr().out
    replay_run(make_observers(), make_run_info(tmp_path / "other", config=config), last=3, status="interrupted")
    assert read_summary(tmp_path / "other")["ended_by"] == []
    replay_run(make_observers(), make_run_info(tmp_path / "whole"))
    assert read_summary(tmp_path / "whole")["ended_by"] == ["rounds"]


def test_a_resumed_run_includes_earlier_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay_run(make_observers(), make_run_info(tmp_path / "run"), last=3, status="interrupted")
    assert (read_summary(tmp_path / "run")["status"], read_summary(tmp_path / "run")["rounds"]) == ("interrupted", 3)
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    for line in lines:
        del line["digest"]  # as in a journal of an older version, as the line is changed
    hour_ms = 3_600_000
    shifted = [{**line, "time_ms": line["time_ms"] - hour_ms + 5_000 * line["step"]} for line in lines]
    (tmp_path / "run" / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in shifted))
    start_ms = metadata.read_start_times(tmp_path / "run")[0] - hour_ms
    monkeypatch.setattr(metadata, "read_start_times", lambda folder: [start_ms, lines[-1]["time_ms"]])
    replay_run(make_observers(), make_run_info(tmp_path / "run", start=3))
    summary = read_summary(tmp_path / "run")
    assert 15 < summary["wall_s"] < 60  # not the hour in between
    assert (summary["rounds"], summary["final"]) == (6, make_report(6).metrics)


def test_the_last_measured_value_is_the_final_one(tmp_path: Path) -> None:
    rounds = [{"test/acc": 0.5, "test/loss": 2.0}, {"test/acc": 0.7, "test/loss": float("inf")}, {"comm/up_bytes": 9.0}]
    summary = play_metrics(make_run_info(tmp_path / "run", rounds=2), *rounds)
    assert summary["final"] == {"test/acc": 0.7, "test/loss": None, "comm/up_bytes": 9.0}
    assert summary["earlier"] == {"test/acc": 1, "test/loss": 1}
    assert summary["best"] == {"test/acc": {"value": 0.7, "round": 1}}
    assert summary["bytes"] == {"down": None, "up": 9.0, "probe": None}


def test_a_value_of_an_earlier_round_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With eval.every=2 the third round isn't evaluated; what was told once, of the data, has no round."""
    watch = make_observers()
    for watcher in watch:
        watcher.start(make_run_info(tmp_path / "run", rounds=3))
    evaluated = {"test/acc": 0.5, "test/loss": 2.0, "clients/acc_worst5": 0.25}
    for step, metrics in enumerate([{**evaluated, "skew/global_ci": 0.1}, {}, evaluated, {"time/virtual_s": 30.0}]):
        watch[0].observe(dataclasses.replace(make_report(step), metrics=metrics))
    for watcher in watch:
        watcher.finish("finished")
    output = capsys.readouterr().out
    for label in (
        "test accuracy, of round 2 ",
        "clients: accuracy of the worst 5 %, of round 2 ",
        "test loss, of round 2 ",
    ):
        assert f"│ {label}" in output
    assert "│ class imbalance of all data  " in output


def test_the_summary_table_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay_run(make_observers(), make_run_info(tmp_path / "run"))
    output = capsys.readouterr().out
    cells = {
        line.split("│")[1].strip(): line.split("│")[2].strip() for line in output.splitlines() if line.count("│") == 3
    }
    metrics = make_report(6).metrics
    assert "run: finished after 6 of 6 rounds" in output
    assert cells["test accuracy"] == f"{100 * metrics['test/acc']:.1f} %"
    assert "at round" in cells["best so far (early stop)"]
    assert cells["clients: accuracy of the worst 5 %"] == f"{100 * metrics['clients/acc_worst5']:.1f} %"
    assert (cells["virtual time (the simulated clock)"], cells["bytes down"], cells["client computation"]) == (
        "31 min 0 s",
        "15 MB",
        "1.92 TFLOP",
    )
    assert cells["share of rounds that selected a client, min to max"] == "0.0 % to 5.0 %"
    assert len({client for step in range(7) for client in make_report(step).cohort.tolist()}) == 11
    assert cells["clients selected at least once"] == "11 of 12"
    assert cells["fingerprint (equal for equal runs)"] == make_report(6).fingerprint
    assert f"folder  {tmp_path / 'run'}" in output


def test_the_short_table_names_the_command_for_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay_run([Journal(), Summary(full=False)], make_run_info(tmp_path / "run"))
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.count("│") == 3]
    cells = [(label.strip(), value.strip()) for _, label, value, _ in lines]
    assert [label for label, _ in cells][:4] == [
        "test accuracy",
        "best so far (early stop)",
        "clients: accuracy of the worst 5 %",
        "rounds",
    ]
    assert dict(cells)["rounds"] == "6 of 6"
    assert dict(cells)["bytes, down and up"] == "29.4 MB"
    last = ["virtual time", "bytes, down and up", "wall time", "fingerprint"]
    assert [label.partition(" (")[0] for label, _ in cells][-5:-1] == last
    assert dict(cells)["fingerprint (equal for equal runs)"] == make_report(6).fingerprint, (
        "two runs are compared by it, without another option"
    )
    count, option = cells[-1]
    assert option == "callback.summary.full=true"
    replay_run(make_observers(), make_run_info(tmp_path / "full"))
    full = [line for line in capsys.readouterr().out.splitlines() if line.count("│") == 3]
    assert len(full) == len(cells) - 1 + int(count.removesuffix(" lines more"))
    with pytest.raises(OptionError, match="full must be true or false, got 1"):
        Summary(full=1)  # type: ignore[arg-type]


def test_a_run_that_failed_at_once_has_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Summary(full=True).finish("failed")
    assert capsys.readouterr().out == ""
    facts = make_run_info(tmp_path / "run")
    observers = make_observers()
    for watcher in observers:
        watcher.start(facts)
    for watcher in observers:
        watcher.finish("failed")
    summary = read_summary(facts.folder)
    assert (summary["status"], summary["rounds"], summary["final"], summary["fingerprint"]) == ("failed", 0, {}, None)


def test_without_rounds_there_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay_run(make_observers(), make_run_info(tmp_path / "run"), last=0, status="interrupted")
    assert capsys.readouterr().out == ""
    assert read_summary(tmp_path / "run")["rounds"] == 0
    replay_run(make_observers(), make_run_info(tmp_path / "dropped"), last=0, status="dropped")
    assert not (tmp_path / "dropped" / "summary.json").exists()


def test_the_table_has_lines_for_skew_and_uniform_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal, summary = make_observers()
    facts = make_run_info(tmp_path / "run", rounds=1)
    for watcher in (journal, summary):
        watcher.start(facts)
    journal.observe(dataclasses.replace(make_report(0), metrics={"skew/global_ci": 0.0123, "skew/client_ci": 0.3}))
    departure = {"select/departure": 0.25, "select/departure_uniform": 0.125}
    journal.observe(dataclasses.replace(make_report(1), metrics=departure))
    for watcher in (journal, summary):
        watcher.finish("finished")
    output = capsys.readouterr().out
    for label, value in (
        ("class imbalance of all data", "0.0123"),
        ("class imbalance of a client, mean", "0.3"),
        ("departure from uniform selection", "0.25 (a uniform draw: 0.125)"),
    ):
        assert re.search(rf"{label}\s*│\s*{re.escape(value)} │", output), label
    assert "attribute" not in output
    assert read_summary(facts.folder)["final"]["skew/global_ci"] == 0.0123


def test_metadata_without_skew_are_still_read(tmp_path: Path) -> None:
    """A folder of a version that did not report it."""
    skew = {"global_ci": 0.5, "client_ci": 0.25}
    replay_run(make_observers(), make_run_info(tmp_path / "run", skew=skew))
    assert metadata.load_info(tmp_path / "run").skew == skew
    path = tmp_path / "run" / metadata.INFO_FILE
    stored = json.loads(path.read_text())
    del stored["info"]["skew"], stored["digest"]
    path.write_text(json.dumps(stored))
    assert metadata.load_info(tmp_path / "run").skew == {}


def test_a_long_name_is_not_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "UNWRAPPED_LINE_WIDTH", 40)
    replay_run(make_observers(), make_run_info(tmp_path / ("a-name-" * 15)), last=2, status="interrupted")
    assert f"{'a-name-' * 15}: interrupted after 2 of 6 rounds" in capsys.readouterr().out


def test_values_that_vary_between_rounds_cover_all_rounds(tmp_path: Path) -> None:
    """Attackers had none of the weight, then half of it; in a round without arrivals it is unknown: .25 on average.

    The server's step was excluded in the second of the three rounds.
    """
    facts = make_run_info(tmp_path / "run", rounds=3)
    watching = make_observers()
    for watcher in watching:
        watcher.start(facts)
    weights: tuple[dict[str, float], ...] = (
        {},
        {"attack/weight": 0.0},
        {"attack/weight": 0.5, "round/dropped_step": 1.0},
        {},
    )
    for step, metrics in enumerate(weights):
        arrivals = np.arange(4 if metrics else 0)
        round_report = dataclasses.replace(make_report(step), arrived=arrivals, metrics={"test/acc": 0.1, **metrics})
        for watcher in watching:
            watcher.observe(round_report)
    for watcher in watching:
        watcher.finish("finished")
    summary = read_summary(tmp_path / "run")
    assert summary["means"] == {"attack/weight": 0.25}
    assert dict(list_further_rows(summary))["aggregation weight of attackers, mean over rounds"] == "25.0 %"
    assert summary["rounds_without_update"] == 2
