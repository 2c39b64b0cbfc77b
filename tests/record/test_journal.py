"""The journal has complete steps only, also after kills, and no step is rewritten."""

import dataclasses
import json
import math
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.console.summary import Summary
from fedcohort.errors import CheckpointError, DamagedFile, IncompatibleConfig
from fedcohort.host import parquet
from fedcohort.record import client_files, client_table, history, journal, metadata
from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import Observer
from fedcohort.report.run_figures import Figures
from fedcohort.tracking.tracker import MlflowTracker
from fedcohort.types import RoundReport
from process_kills import kill_at_call
from record.example_run import make_report, make_run_info, replay_run

TRACKER: dict[str, Any] = {"tracking_uri": None, "experiment": "x", "every_s": 1, "logs": "/a/logs", "wait_s": 120}


def texts(folder: Path) -> list[bytes]:
    return (folder / "journal.jsonl").read_bytes().splitlines()


def check(folder: Path, last: int) -> None:
    """Steps 0 to `last` are there once, with what was reported."""
    history = read_history(folder)
    assert list(history.steps) == list(range(last + 1))
    assert history.metrics["test/acc"].tolist() == [make_report(step).metrics["test/acc"] for step in range(last + 1)]
    assert history.cohorts[last] == make_report(last).cohort.tolist()
    assert history.arrived[last] == make_report(last).arrived.tolist()
    assert history.trace[last]["theta[duration]"] == make_report(last).trace["theta[duration]"]
    table = history.clients()
    assert table["step"].tolist() == [step for step in range(1, last + 1) for _ in range(12)]
    assert table["client"].tolist() == list(range(12)) * last
    assert table[table.step == last]["selected"].tolist() == make_report(last).clients["selected"].tolist()
    assert table["selected"].dtype == bool


def test_a_finished_run_reads_back_from_one_file(tmp_path: Path) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"))
    check(tmp_path / "run", 6)
    assert (tmp_path / "run" / "clients.parquet").exists()
    assert not (tmp_path / "run" / "clients").exists()


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_an_unfinished_run_reads_back_from_its_parts(tmp_path: Path, status: str) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"), status=status)
    check(tmp_path / "run", 6)
    assert not (tmp_path / "run" / "clients.parquet").exists()


def test_step_0_has_no_cohort_and_no_table(tmp_path: Path) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=0, status="interrupted")
    history = read_history(tmp_path / "run")
    assert (history.steps, history.cohorts) == ([0], [[]])
    assert history.clients().empty
    assert history.clients(["selected"]).columns.tolist() == ["step", "client", "selected"]


def test_steps_may_have_different_columns(tmp_path: Path) -> None:
    """Step 0 is evaluated on all clients without a selection; a score appears after the cold start."""
    writer, facts = Journal(), make_run_info(tmp_path / "run", rounds=2)
    writer.start(facts)
    writer.observe(dataclasses.replace(make_report(0), clients={"acc": np.linspace(0, 1, 12)}))
    writer.observe(dataclasses.replace(make_report(1), clients={"selected": np.ones(12, bool)}))
    for form in ("parts", "one file"):
        history = read_history(facts.folder)
        table = history.clients()
        assert table["acc"].isna().tolist() == [False] * 12 + [True] * 12, form
        assert history.clients(["selected"], start=1)["selected"].dtype == bool, form
        writer.finish("finished")


def test_non_finite_numbers_are_kept(tmp_path: Path) -> None:
    writer = Journal()
    writer.start(make_run_info(tmp_path / "run"))
    non_finite = dict(zip("abc", (float("nan"), float("inf"), float("-inf")), strict=True))
    writer.observe(dataclasses.replace(make_report(0), metrics=non_finite))
    values = read_history(tmp_path / "run").metrics.loc[0].to_dict()
    assert math.isnan(values["a"])
    assert (values["b"], values["c"]) == (math.inf, -math.inf)


@pytest.mark.parametrize("incomplete_line", [b"{", b'{"step": 4, "time_ms": 1', b"\x00\x00\x00\n", b'{"step": 4}\n'])
def test_an_incomplete_last_line_is_not_committed(tmp_path: Path, incomplete_line: bytes) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=3, status="interrupted")
    with (tmp_path / "run" / "journal.jsonl").open("ab") as file:
        file.write(incomplete_line)
    check(tmp_path / "run", 3)
    replay_run([Journal()], make_run_info(tmp_path / "run", start=3))
    check(tmp_path / "run", 6)
    assert all(json.loads(text) for text in texts(tmp_path / "run"))


def test_a_damaged_line_inside_is_an_error(tmp_path: Path) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=3, status="interrupted")
    lines = texts(tmp_path / "run")
    (tmp_path / "run" / "journal.jsonl").write_bytes(b"\n".join([lines[0], lines[1][:20], *lines[2:]]) + b"\n")
    with pytest.raises(CheckpointError, match="is damaged at byte"):
        read_history(tmp_path / "run")


def flip(folder: Path, line: int, text: bytes) -> None:
    """Flip a bit of the first character of `text` in a line of the journal."""
    path = folder / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")
    position = lines[line].index(text)
    lines[line] = lines[line][:position] + bytes([lines[line][position] ^ 1]) + lines[line][position + 1 :]
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("text", [b"0.", b"cohort", b"1"])
def test_a_flipped_bit_of_a_line_is_detected(tmp_path: Path, text: bytes) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=3, status="interrupted")
    flip(tmp_path / "run", 2, text)
    with pytest.raises(
        DamagedFile, match=r"journal\.jsonl is damaged at byte \d+: the content of the line after round 1 has changed"
    ):
        read_history(tmp_path / "run")


def test_the_checkpoint_verifies_the_journal_up_to_its_round(tmp_path: Path) -> None:
    """Also if every line is undamaged: the journal of another run."""
    writers = [Journal(), Journal()]
    for writer, name in zip(writers, "ab", strict=True):
        writer.start(make_run_info(tmp_path / name))
        for step in range(4):
            writer.observe(dataclasses.replace(make_report(step), fingerprint=f"{name}{step}"))
    journal.check_journal(tmp_path / "a", 2, writers[0].digest(2))  # the journal may be ahead of the checkpoint
    with pytest.raises(DamagedFile, match="differs from the journal at the checkpoint"):
        journal.check_journal(tmp_path / "a", 2, writers[1].digest(2))
    with pytest.raises(CheckpointError, match=r"its journal\.jsonl lacks round 4"):
        journal.check_journal(tmp_path / "a", 4, writers[0].digest(3))


@pytest.mark.parametrize("fault_name", ["line", "table"])
def test_damaged_rounds_after_the_checkpoint_are_trained_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fault_name: str
) -> None:
    monkeypatch.setattr(journal.log, "propagate", True)
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=5, status="interrupted")
    if fault_name == "line":
        flip(tmp_path / "run", 4, b"0.")
    else:
        client_files.path_of_step(tmp_path / "run", 4).write_bytes(b"PAR1")
    with pytest.raises(DamagedFile):
        journal.check_journal(tmp_path / "run", 4, None)
    replay_run([Journal()], make_run_info(tmp_path / "run", start=3))
    assert "The rounds after round 3 are trained again" in caplog.text
    check(tmp_path / "run", 6)


KILLS = [  # where the process is killed, and the rounds that the journal has and the checkpoint lacks
    (client_table, "write_rows", "before", 1),
    (client_table, "write_rows", "after", 2),
    (journal, "commit_step", "before", 0),
    (journal, "commit_step", "after", 0),
    (journal, "commit_step", "after", 2),
    (os, "fsync", "before", 1),
    (os, "replace", "before", 0),
]


@pytest.mark.parametrize(("owner", "name", "moment", "n_ahead"), KILLS)
def test_a_kill_at_any_point_neither_loses_nor_repeats_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, moment: str, n_ahead: int
) -> None:
    facts = make_run_info(tmp_path / "run")
    kill_at_call(monkeypatch, owner, name, 5, moment, lambda: replay_run([Journal()], facts))
    before = texts(facts.folder)
    last_step = len(history.read_journal_lines(facts.folder / "journal.jsonl")[0]) - 1
    replay_run([Journal()], make_run_info(tmp_path / "run", start=max(last_step - n_ahead, 0)))
    check(facts.folder, 6)
    assert texts(facts.folder)[: last_step + 1] == before[: last_step + 1]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("owner", "name"), [(parquet, "open_parquet_writer"), (shutil, "rmtree")])
def test_a_kill_while_tables_are_merged_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, moment: str
) -> None:
    facts = make_run_info(tmp_path / "run")
    kill_at_call(monkeypatch, owner, name, 1, moment, lambda: replay_run([Journal()], facts))
    check(facts.folder, 6)
    replay_run([Journal()], make_run_info(tmp_path / "run", start=6))
    check(facts.folder, 6)
    assert not (facts.folder / "clients").exists()


def test_more_rounds_extend_a_finished_run(tmp_path: Path) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run", rounds=3))
    replay_run([Journal()], make_run_info(tmp_path / "run", rounds=5, start=3), status="interrupted")
    check(tmp_path / "run", 5)
    replay_run([Journal()], make_run_info(tmp_path / "run", rounds=6, start=5))
    check(tmp_path / "run", 6)


def make_departed_report(step: int) -> RoundReport:
    return dataclasses.replace(make_report(step), fingerprint="0bad")


def test_a_repeated_step_is_compared_and_not_rewritten(tmp_path: Path) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=3, status="interrupted")
    before = texts(tmp_path / "run")
    writer = Journal()
    writer.start(make_run_info(tmp_path / "run", start=1))
    writer.observe(make_report(2))
    assert texts(tmp_path / "run") == before
    with pytest.raises(CheckpointError, match=r"differs from the journal of .* at round 3 .*0bad.*number of threads"):
        writer.observe(make_departed_report(3))
    assert texts(tmp_path / "run") == before


def test_after_a_force_a_differing_step_is_logged_and_not_rewritten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal.log, "propagate", True)
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=3, status="interrupted")
    before = texts(tmp_path / "run")
    writer = Journal()
    writer.start(make_run_info(tmp_path / "run", start=2, starts=[{"resume": "force"}]))
    writer.observe(make_departed_report(3))
    assert texts(tmp_path / "run") == before
    assert "differs from the journal" in caplog.text


@pytest.mark.parametrize("round", [4, 5])
def test_a_gap_before_the_checkpoint_is_an_error(tmp_path: Path, round: int) -> None:
    replay_run([Journal()], make_run_info(tmp_path / "run"), last=3, status="interrupted")
    with pytest.raises(CheckpointError, match=rf"at round {round} but its journal.jsonl lacks round 4"):
        Journal().start(make_run_info(tmp_path / "run", start=round))
    Journal().start(make_run_info(tmp_path / "run", start=3))


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"{re.escape(str(tmp_path))} is not the folder of a run"):
        read_history(tmp_path)
    with pytest.raises(CheckpointError, match="is not the folder of a run"):
        metadata.load_info(tmp_path)


@pytest.mark.parametrize(
    "reader",
    [
        partial(Summary, full=False),
        partial(Figures, formats=["png"], always=True),
        lambda: MlflowTracker(**TRACKER),
    ],
    ids=["summary", "figures", "mlflow"],
)
def test_a_journal_must_exist_for_its_readers(tmp_path: Path, reader: Callable[[], Observer]) -> None:
    facts = make_run_info(tmp_path / "run")
    facts.folder.mkdir()
    with pytest.raises(IncompatibleConfig, match=r"reads the journal: do not remove callback.journal"):
        reader().start(facts)
