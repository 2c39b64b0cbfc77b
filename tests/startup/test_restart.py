"""The state from which a run resumes: a damaged checkpoint is never used, and other code never silently."""

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedcohort.errors import CheckpointError, DamagedCheckpoint, DamagedFile
from fedcohort.lightning import checkpoint
from fedcohort.record import manifest, provenance
from fedcohort.startup import load
from fedcohort.tracking import record
from process_kills import kill_at_call
from run_harness import FinishedRun, run_training, same_bits

OVERRIDES = ("agg=scaffold", "client_store.limit_gb=0", "callback=default", "callback.figures=null", "rounds=5")


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("whole"), *OVERRIDES)


@pytest.fixture(scope="module")
def three_round_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of a run of three rounds, of which there are two checkpoints."""
    logs = tmp_path_factory.mktemp("three")
    run_training(logs, *OVERRIDES, "rounds=3")
    return logs


@pytest.fixture
def logs(three_round_logs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(three_round_logs, tmp_path / "logs"))


def home(logs: Path) -> Path:
    (run_folder,) = (logs / "runs").iterdir()
    return run_folder


def resume_run(logs: Path, how: str = "true", *overrides: str) -> FinishedRun:
    return run_training(logs, *OVERRIDES, *overrides, f"resume={how}")


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def own_hash(path: Path) -> str:
    callbacks = torch.load(path, weights_only=True)["callbacks"].values()
    return str(next(state["config_hash"] for state in callbacks if "config_hash" in state))


# --- damage --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["clients.parquet", "journal.jsonl", "info.npz", "weights.pt"])
def test_a_damaged_file_of_a_finished_run_is_named_before_anything_is_written(logs: Path, name: str) -> None:
    flip(home(logs) / name, 4 * (home(logs) / name).stat().st_size)
    before = {path.name: path.read_bytes() for path in home(logs).iterdir() if path.is_file()}
    with pytest.raises(DamagedFile, match=rf"{name} is damaged: its content differs from manifest\.json"):
        resume_run(logs)
    assert {path.name: path.read_bytes() for path in home(logs).iterdir() if path.is_file()} == before


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", ["remove_manifest", "write_manifest"])
def test_a_kill_during_manifest_changes_leaves_a_resumable_run(
    finished_run: FinishedRun, logs: Path, monkeypatch: pytest.MonkeyPatch, name: str, moment: str
) -> None:
    kill_at_call(monkeypatch, manifest, name, 1, moment, lambda: resume_run(logs))
    run = resume_run(logs)  # it may have finished before the kill
    assert bool((run.weights() == finished_run.weights()).all())
    manifest.check_all_files(run.folder)


def test_each_of_fifty_flipped_bits_is_detected(logs: Path) -> None:
    path = home(logs) / "last.ckpt"
    assert checkpoint.count_checkpoint_rounds(checkpoint.load_checkpoint(path, own_hash(path))) == 3
    for bit in np.random.default_rng(50).choice(8 * path.stat().st_size, 50, replace=False):
        flip(path, int(bit))
        with pytest.raises(DamagedCheckpoint, match=r"last\.ckpt is damaged and can't be resumed"):
            checkpoint.load_checkpoint(path, "any")
        flip(path, int(bit))
    checkpoint.load_checkpoint(path, own_hash(path))


@pytest.mark.parametrize("kept_bytes", [0, 1, 1000, -1, -100])
def test_a_truncated_checkpoint_is_detected(logs: Path, kept_bytes: int) -> None:
    path = home(logs) / "last.ckpt"
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(DamagedCheckpoint):
        checkpoint.load_checkpoint(path, "any")


def test_the_checkpoint_before_a_damaged_one_is_offered(
    finished_run: FinishedRun, logs: Path, captured_log: pytest.LogCaptureFixture
) -> None:
    flip(home(logs) / "last.ckpt", 4321)
    with pytest.raises(
        CheckpointError, match=r"damaged.*; the previous checkpoint, of round 2, is intact: .*=previous$"
    ):
        resume_run(logs)
    run = resume_run(logs, "previous")
    assert run.reports[0].step == 3
    assert same_bits(finished_run, run)
    assert "resuming from the previous checkpoint, of round 2" in captured_log.text
    assert json.loads((run.folder / "summary.json").read_text())["forced"] == []


def test_without_an_undamaged_checkpoint_there_is_an_error(logs: Path) -> None:
    for name in ("last.ckpt", "previous.ckpt"):
        flip(home(logs) / name, 4321)
    with pytest.raises(
        CheckpointError, match=r"the previous checkpoint is damaged, too: start a new run with resume=false"
    ):
        resume_run(logs, "previous")
    (home(logs) / "previous.ckpt").unlink()
    with pytest.raises(CheckpointError, match=r"there is no previous checkpoint: start a new run with resume=false"):
        resume_run(logs, "force")


def test_a_kill_between_the_two_renames_keeps_the_previous_checkpoint(finished_run: FinishedRun, logs: Path) -> None:
    (home(logs) / "last.ckpt").unlink()
    run = resume_run(logs)
    assert run.reports[0].step == 3
    assert same_bits(finished_run, run)


def test_stored_client_files_are_checked_too(finished_run: FinishedRun, logs: Path) -> None:
    callback_states = torch.load(home(logs) / "last.ckpt", weights_only=True)["callbacks"].values()
    slots = next(state["clients"]["slots"] for state in callback_states if "clients" in state).tolist()
    before = torch.load(home(logs) / "previous.ckpt", weights_only=True)["callbacks"].values()
    slots_before = next(state["clients"]["slots"] for state in before if "clients" in state).tolist()
    client = next(k for k, slot in enumerate(slots) if slot >= 0 and slot != slots_before[k])
    path = home(logs) / "client_store.c"
    row = path.stat().st_size // (3 * len(slots))
    flip(path, 8 * row * (3 * client + slots[client]) + 77)
    with pytest.raises(CheckpointError, match=rf"the stored vectors of client {client} differ .*resume=previous"):
        resume_run(logs)
    assert same_bits(finished_run, resume_run(logs, "previous"))


class UnsafePickle:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("evil"),)


def test_a_checkpoint_with_code_is_rejected_without_running_it(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs)
    path = home(logs) / "last.ckpt"
    checkpoint.write_checkpoint({"fedcohort": {"format": checkpoint.CHECKPOINT_FORMAT}, "state": UnsafePickle()}, path)
    assert checkpoint.has_intact_digest(path)
    with pytest.raises(DamagedCheckpoint, match="UnpicklingError"):
        checkpoint.load_checkpoint(path, "any")
    assert not (logs / "evil").exists()
    with pytest.raises(CheckpointError):
        resume_run(logs)
    assert not (logs / "evil").exists()
    pickle.loads(pickle.dumps(UnsafePickle()))
    assert (logs / "evil").exists(), "it would have been run"


def test_an_unsupported_format_names_the_version_that_reads_it(logs: Path) -> None:
    path = home(logs) / "last.ckpt"
    content = torch.load(path, weights_only=True)
    checkpoint.write_checkpoint(
        {**content, "fedcohort": {**content["fedcohort"], "format": 5, "commit": "0" * 40}}, path
    )
    with pytest.raises(CheckpointError, match=r"has the format 5, .* reads 4; fedcohort 0\.\S+ at commit 0{40} reads"):
        checkpoint.load_checkpoint(path, "any")
    checkpoint.write_checkpoint({**content, "fedcohort": {**content["fedcohort"], "format": 2}}, path)
    with pytest.raises(CheckpointError, match=r"the format 2, "):
        checkpoint.load_checkpoint(path, "any")
    torch.save({**content, "fedcohort": {"format": 1}}, path)  # as it was: no digest
    with pytest.raises(CheckpointError, match=r"the format 1, .*; fedcohort 0\.1\.0 up to commit 2e9eefb reads it"):
        resume_run(logs, "force")


# --- other code, versions, processes -------------------------------------------------------------------------------
def other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "digest_sources", lambda config: "0badc0de0bad")


def other_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = provenance.package_versions()
    monkeypatch.setattr(provenance, "package_versions", lambda: {**versions, "torch": "9.9"})


def other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a hub that has a newer commit, or of a large file whose middle was changed: no option names it."""
    load_federation = load.load_federation
    monkeypatch.setattr(
        load, "load_federation", lambda *arguments: replace(load_federation(*arguments), checksum="0badda7a")
    )


@pytest.mark.parametrize(
    ("change", "overrides", "how", "reason"),
    [
        (other_code, (), "true", r"other code of fedcohort \(commit .*, now commit .*, sources 0badc0de0bad\)"),
        (other_torch, (), "previous", r"torch 9\.9 \(was .*\)"),
        (other_data, (), "true", r"the dataset has other data than before \(checksum 0badda7a, was \w{16}\)"),
        (None, ("trainer.threads=2",), "true", r"trainer\.threads=2 \(was 1\)"),
        (None, ("trainer.devices=2",), "previous", r"trainer\.devices=2 \(was 1\)"),
    ],
)
def test_changes_that_may_alter_results_are_rejected(
    logs: Path, monkeypatch: pytest.MonkeyPatch, change: Any, overrides: tuple[str, ...], how: str, reason: str
) -> None:
    if change:
        change(monkeypatch)
    before = {path.name: path.read_bytes() for path in home(logs).iterdir() if path.is_file()}
    with pytest.raises(CheckpointError, match=rf"{reason}\. Restore these, .* resume=force"):
        resume_run(logs, how, *overrides)
    assert {path.name: path.read_bytes() for path in home(logs).iterdir() if path.is_file()} == before


def test_a_forced_resume_continues_and_is_recorded(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other_code(monkeypatch)
    run = resume_run(logs, "force", "rounds=4")
    assert run.reports[0].step == 4
    capsys.readouterr()
    last = resume_run(logs)  # with the same code again: nothing to force
    first, second, third = provenance.read_start_records(last.folder)
    assert [start["round"] for start in (first, second, third)] == [0, 3, 4]
    assert [start["forced"] is None for start in (first, second, third)] == [True, False, True]
    assert first["sources"] != second["sources"] == third["sources"] == "0badc0de0bad"
    assert {"commit", "dirty", "versions", "options", "time"} <= first.keys()
    summary = json.loads((last.folder / "summary.json").read_text())
    (line,) = summary["forced"]
    assert line.startswith("after round 3: other code of fedcohort (commit ")
    assert [start["round"] for start in summary["starts"]] == [0, 3, 4]
    assert "resume=force" in capsys.readouterr().out
    tags = record.list_tags(last.info, "running")
    assert (tags["starts"], tags["forced"]) == ("3", line)
    assert tags["commits"].split(", ") == provenance.list_commits([first, second, third])


def test_a_run_without_a_forced_resume_has_no_tag(finished_run: FinishedRun) -> None:
    tags = record.list_tags(finished_run.info, "running")
    assert tags["starts"] == "1"
    assert "forced" not in tags


def test_an_incomplete_record_of_a_start_affects_no_other(tmp_path: Path) -> None:
    start = {"round": 0, "forced": None, **provenance.describe_start({}, {}, "")}
    provenance.append_start_record(tmp_path, start)
    with (tmp_path / provenance.START_RECORDS_FILE).open("a") as file:
        file.write('{"round": 3, "forc')
    provenance.append_start_record(tmp_path, {**start, "round": 5})
    assert [result["round"] for result in provenance.read_start_records(tmp_path)] == [0, 5]


# --- what changes no result ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("override", ["checkpoint.every_s=5", "checkpoint.every=2", "engine.slices=3"])
def test_options_that_do_not_alter_results_may_change(finished_run: FinishedRun, logs: Path, override: str) -> None:
    run = resume_run(logs, "true", override)
    assert run.folder == home(logs)
    assert same_bits(finished_run, run)


def test_stored_client_values_can_move_to_memory_and_back(finished_run: FinishedRun, logs: Path) -> None:
    resume_run(logs, "true", "client_store.limit_gb=4", "rounds=4")
    run = resume_run(logs)
    assert run.reports[0].step == 5
    assert same_bits(finished_run, run)


def test_a_resume_without_a_run_starts_a_new_one(logs: Path, captured_log: pytest.LogCaptureFixture) -> None:
    run_training(logs, *OVERRIDES, "rounds=1", "client.lr=0.2", "resume=true")
    expected = "nothing to resume for this config and seed; starting a new run"
    assert expected in [entry.getMessage() for entry in captured_log.records]
