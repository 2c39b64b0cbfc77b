"""The summary: the same numbers for programs and for people, of the whole run."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.observe import console
from fedcohort.observe.summary import Summary, more_rows
from fedcohort.record import card
from fedcohort.record.journal import Journal
from fedcohort.record.observer import Observer, RunInfo
from observe.made_up import info, play, report


def watchers() -> list[Observer]:
    return [Journal(), Summary(full=True)]


def written(folder: Path) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return dict(json.loads((folder / "summary.json").read_text(), parse_constant=refuse))


def test_what_it_holds(tmp_path: Path) -> None:
    facts = info(tmp_path / "run", tags={"sweep_id": "s1", "tracking": "mlflow ui"})
    play(watchers(), facts)
    found, last = written(facts.folder), report(6)
    assert found["final"] == last.metrics
    best = max(range(7), key=lambda step: report(step).metrics["test/acc"])
    assert found["best"]["test/acc"] == {"value": report(best).metrics["test/acc"], "round": best}
    assert (found["status"], found["rounds"], found["rounds_asked"]) == ("finished", 6, 6)
    assert found["fingerprint"] == last.fingerprint
    assert (found["virtual_s"], found["client_flops"], found["server_flops"]) == (1860.0, 3.2e11 * 6, 6e9)
    assert found["bytes"] == {"down": 1.5e7, "up": 2.4e6 * 6, "probe": 24_000.0}
    assert (found["seed"], found["config_hash"], found["commit"]) == (0, "a1b2c3d4", facts.commit)
    assert found["versions"]["torch"] == "2.13.0"
    assert found["tags"] == {"sweep_id": "s1"}
    assert 0 < found["wall_s"] < 60


def test_it_says_which_budget_ended_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A round takes 310 s, so that 900 s are reached in the third; an interrupted run was ended by none."""
    config = {**info(tmp_path).config, "until": {"virtual_s": 900, "bytes": None, "acc": None}}
    play(watchers(), info(tmp_path / "run", config=config), last=3)
    assert written(tmp_path / "run")["ended_by"] == ["until.virtual_s"]
    assert "run: finished after 3 of 6 rounds: until.virtual_s=900 is reached (930)\n" in capsys.readouterr().out
    play(watchers(), info(tmp_path / "other", config=config), last=3, status="interrupted")
    assert written(tmp_path / "other")["ended_by"] == []
    play(watchers(), info(tmp_path / "whole"))
    assert written(tmp_path / "whole")["ended_by"] == ["rounds"]


def test_a_resumed_run_counts_the_processes_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(watchers(), info(tmp_path / "run"), last=3, status="interrupted")
    assert (written(tmp_path / "run")["status"], written(tmp_path / "run")["rounds"]) == ("interrupted", 3)
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    ago = 3_600_000
    shifted = [{**line, "time_ms": line["time_ms"] - ago + 5_000 * line["step"]} for line in lines]
    (tmp_path / "run" / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in shifted))
    earlier = card.starts_ms(tmp_path / "run")[0] - ago
    monkeypatch.setattr(card, "starts_ms", lambda folder: [earlier, lines[-1]["time_ms"]])
    play(watchers(), info(tmp_path / "run", start=3))
    found = written(tmp_path / "run")
    assert 15 < found["wall_s"] < 60  # not the hour in between
    assert (found["rounds"], found["final"]) == (6, report(6).metrics)


def test_the_last_measured_value_is_the_final_one(tmp_path: Path) -> None:
    rounds = [{"test/acc": 0.5, "test/loss": 2.0}, {"test/acc": 0.7, "test/loss": float("inf")}, {"comm/up_bytes": 9.0}]
    found = play_metrics(info(tmp_path / "run", rounds=2), *rounds)
    assert found["final"] == {"test/acc": 0.7, "test/loss": None, "comm/up_bytes": 9.0}
    assert found["earlier"] == {"test/acc": 1, "test/loss": 1}
    assert found["best"] == {"test/acc": {"value": 0.7, "round": 1}}
    assert found["bytes"] == {"down": None, "up": 9.0, "probe": None}


def play_metrics(facts: RunInfo, *rounds: dict[str, float]) -> dict[str, Any]:
    """The summary of a run whose rounds, from 0 on, measured these."""
    journal, summary = watchers()
    for watcher in (journal, summary):
        watcher.start(facts)
    for step, metrics in enumerate(rounds):
        journal.observe(dataclasses.replace(report(step), metrics=metrics))
    for watcher in (journal, summary):
        watcher.finish("finished")
    return written(facts.folder)


def test_a_loss_that_has_only_risen_is_told(tmp_path: Path) -> None:
    """25 is 12.5 times 2.0; 19 isn't ten times it, and one that wasn't measured before training says nothing."""
    high = play_metrics(info(tmp_path / "high", rounds=2), *({"test/loss": loss} for loss in (2.0, 9.0, 25.0)))
    assert [line for line in high["warnings"] if line.startswith("test/loss is 25 at round 2, 12 times the untrained")]
    others = ([{"test/loss": 2.0}, {"test/loss": 19.0}], [{"test/acc": 0.1}, {"test/loss": 2.0}, {"test/loss": 900.0}])
    for number, rounds in enumerate(others):
        found = play_metrics(info(tmp_path / str(number), rounds=len(rounds) - 1), *rounds)
        assert not any("untrained model's" in line for line in found["warnings"])


def test_a_diverged_run_says_so(tmp_path: Path) -> None:
    """The loss of round 1 isn't the final one: that was measured, and is no number."""
    rounds = [{"test/acc": 0.1, "test/loss": loss} for loss in (2.3, 2.0, float("nan"), float("nan"))]
    found = play_metrics(info(tmp_path / "run", rounds=3), *rounds)
    assert found["final"] == {"test/acc": 0.1, "test/loss": None}
    assert "the model has diverged: test/loss is nan at round 3, last finite at round 1" in found["warnings"]
    sound = play_metrics(info(tmp_path / "sound", rounds=1), {"test/loss": 2.3}, {"test/loss": 2.0})
    assert not any("diverged" in line for line in sound["warnings"])


def test_a_value_of_an_earlier_round_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With eval.every=2 the third round isn't evaluated; what was told once, of the data, has no round."""
    watch = watchers()
    for watcher in watch:
        watcher.start(info(tmp_path / "run", rounds=3))
    evaluated = {"test/acc": 0.5, "test/loss": 2.0, "clients/acc_worst5": 0.25}
    for step, metrics in enumerate([{**evaluated, "skew/global_ci": 0.1}, {}, evaluated, {"time/virtual_s": 30.0}]):
        watch[0].observe(dataclasses.replace(report(step), metrics=metrics))
    for watcher in watch:
        watcher.finish("finished")
    said = capsys.readouterr().out
    for label in ("test accuracy, of round 2 ", "clients: worst 5 %, of round 2 ", "test loss, of round 2 "):
        assert f"│ {label}" in said
    assert "│ class imbalance of all data  " in said


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play(watchers(), info(tmp_path / "run"))
    said = capsys.readouterr().out
    cells = {
        line.split("│")[1].strip(): line.split("│")[2].strip() for line in said.splitlines() if line.count("│") == 3
    }
    metrics = report(6).metrics
    assert "run: finished after 6 of 6 rounds" in said
    assert cells["test accuracy"] == f"{100 * metrics['test/acc']:.1f} %"
    assert "at round" in cells["best so far (early stop)"]
    assert cells["clients: worst 5 %"] == f"{100 * metrics['clients/acc_worst5']:.1f} %"
    assert (cells["virtual time (the simulated clock)"], cells["bytes down"], cells["client computation"]) == (
        "31 min 0 s",
        "15 MB",
        "1.92 TFLOP",
    )
    assert cells["rounds that a client was selected in, least and most"] == "0.0 % to 5.0 %"
    assert cells["fingerprint"] == report(6).fingerprint
    assert f"folder  {tmp_path / 'run'}" in said


def test_a_first_look_is_short_and_names_how_to_see_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play([Journal(), Summary(full=False)], info(tmp_path / "run"))
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.count("│") == 3]
    cells = [(label.strip(), value.strip()) for _, label, value, _ in lines]
    assert [label for label, _ in cells][:4] == [
        "test accuracy",
        "best so far (early stop)",
        "clients: worst 5 %",
        "rounds",
    ]
    assert dict(cells)["rounds"] == "6 of 6"
    assert dict(cells)["bytes, down and up"] == "29.4 MB"
    last = ["virtual time", "bytes, down and up", "wall time", "fingerprint"]
    assert [label.partition(" (")[0] for label, _ in cells][-5:-1] == last
    assert dict(cells)["fingerprint"] == report(6).fingerprint, "two runs are compared by it, without another option"
    count, option = cells[-1]
    assert option == "callback.summary.full=true"
    play(watchers(), info(tmp_path / "full"))
    full = [line for line in capsys.readouterr().out.splitlines() if line.count("│") == 3]
    assert len(full) == len(cells) - 1 + int(count.removesuffix(" lines more"))
    with pytest.raises(OptionError, match="full must be true or false, got 1"):
        Summary(full=1)  # type: ignore[arg-type]


def test_a_run_that_failed_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Summary(full=True).finish("failed")
    assert capsys.readouterr().out == ""
    facts = info(tmp_path / "run")
    both = watchers()
    for watcher in both:
        watcher.start(facts)
    for watcher in both:
        watcher.finish("failed")
    found = written(facts.folder)
    assert (found["status"], found["rounds"], found["final"], found["fingerprint"]) == ("failed", 0, {}, None)


def test_nothing_is_shown_of_no_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play(watchers(), info(tmp_path / "run"), last=0, status="interrupted")
    assert capsys.readouterr().out == ""
    assert written(tmp_path / "run")["rounds"] == 0
    play(watchers(), info(tmp_path / "dropped"), last=0, status="dropped")
    assert not (tmp_path / "dropped" / "summary.json").exists()


def test_the_table_has_a_line_for_what_was_measured_of_skew_and_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal, summary = watchers()
    facts = info(tmp_path / "run", rounds=1)
    for watcher in (journal, summary):
        watcher.start(facts)
    journal.observe(dataclasses.replace(report(0), metrics={"skew/global_ci": 0.0123, "skew/client_ci": 0.3}))
    departure = {"select/departure": 0.25, "select/departure_uniform": 0.125}
    journal.observe(dataclasses.replace(report(1), metrics=departure))
    for watcher in (journal, summary):
        watcher.finish("finished")
    said = capsys.readouterr().out
    for label, value in (
        ("class imbalance of all data", "0.0123"),
        ("class imbalance of a client, mean", "0.3"),
        ("departure from uniform selection", "0.25 (chance: 0.125)"),
    ):
        assert re.search(rf"{label}\s*│\s*{re.escape(value)} │", said), label
    assert "attribute" not in said
    assert written(facts.folder)["final"]["skew/global_ci"] == 0.0123


def test_a_card_without_skew_is_still_read(tmp_path: Path) -> None:
    """A folder of a version that did not report it."""
    skew = {"global_ci": 0.5, "client_ci": 0.25}
    play(watchers(), info(tmp_path / "run", skew=skew))
    assert card.load(tmp_path / "run").skew == skew
    path = tmp_path / "run" / card.NAME
    kept = json.loads(path.read_text())
    del kept["info"]["skew"]
    path.write_text(json.dumps(kept))
    assert card.load(tmp_path / "run").skew == {}


def test_a_long_name_is_in_one_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "UNFOLDED", 40)
    play(watchers(), info(tmp_path / ("a-name-" * 15)), last=2, status="interrupted")
    assert f"{'a-name-' * 15}: interrupted after 2 of 6 rounds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cohort", "arrived", "dropped", "steps", "line"),
    [
        (4, 4, 0.0, "taken", None),
        (
            0,
            0,
            0.0,
            "none",
            "in any of the 2 rounds, the model is the untrained one: nobody was selected (availability=",
        ),
        (4, 0, 0.0, "none", ": none of those selected was done in time (deadline="),
        (4, 0, 4.0, "none", ": what clients sent was left out, not finite or longer than update_limit allows"),
        (4, 4, 0.0, "left out", ": the server's steps were left out, not finite or longer"),
        (
            4,
            3,
            1.0,
            "left out",
            ": what clients sent was left out, not finite or longer than update_limit allows, and the",
        ),
        (4, 4, 0.0, "of nothing", "the model is still the one that the run began with: no update moved it"),
    ],
)
def test_a_run_that_taught_the_model_nothing_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cohort: int, arrived: int, dropped: float, steps: str, line: Any
) -> None:
    watching = watchers()
    for watcher in watching:
        watcher.start(info(tmp_path / "run", rounds=2))
    for step in range(3):
        made = dataclasses.replace(
            report(step),
            cohort=np.arange(cohort if step else 0),
            arrived=np.arange(arrived if step else 0),
            fingerprint=f"{step}:{step if steps == 'taken' else 'w0'}",
            metrics={"test/acc": 0.1, "round/dropped_nonfinite": dropped, "round/dropped_step": steps == "left out"},
        )
        for watcher in watching:
            watcher.observe(made)
    for watcher in watching:
        watcher.finish("finished")
    found = written(tmp_path / "run")
    assert found["rounds_without_update"] == (0 if steps in ("taken", "of nothing") else 2)
    assert found["warnings"] == [record.getMessage() for record in caplog.records]
    assert len(found["warnings"]) == (line is not None)
    assert line is None or line in found["warnings"][0]


def test_what_differs_from_round_to_round_is_of_all_rounds(tmp_path: Path) -> None:
    """Liars had none of the weight, half of it, and in a round that nobody came in it isn't known: .25 on average.

    The second of the three rounds left the server's step out.
    """
    facts = info(tmp_path / "run", rounds=3)
    watching = watchers()
    for watcher in watching:
        watcher.start(facts)
    weights: tuple[dict[str, float], ...] = (
        {},
        {"attack/weight": 0.0},
        {"attack/weight": 0.5, "round/dropped_step": 1.0},
        {},
    )
    for step, metrics in enumerate(weights):
        came = np.arange(4 if metrics else 0)
        made = dataclasses.replace(report(step), arrived=came, metrics={"test/acc": 0.1, **metrics})
        for watcher in watching:
            watcher.observe(made)
    for watcher in watching:
        watcher.finish("finished")
    found = written(tmp_path / "run")
    assert found["means"] == {"attack/weight": 0.25}
    assert dict(more_rows(found))["weight that liars got, mean over rounds"] == "25.0 %"
    assert found["rounds_without_update"] == 2
