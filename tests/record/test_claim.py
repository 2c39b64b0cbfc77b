"""The folder that a run takes, and the folders that are removed."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedcohort.errors import CheckpointError, OptionError
from fedcohort.record.claim import Request, Use, claim
from fedcohort.record.folder import status_of
from fedcohort.round.budget import Budget

STOP = {"_target_": "lightning.pytorch.callbacks.EarlyStopping", "monitor": "server_val/loss"}
TIMER = {"_target_": "lightning.pytorch.callbacks.Timer", "duration": "00:01:00:00"}
RUN = Request("9326706e", 0, Budget(50))


def left(logs: Path, name: str, born: float, *, checkpoint: bool = True, **status: Any) -> Path:
    """What a run leaves behind; born: when it was started, seconds."""
    path = logs / "runs" / name
    path.mkdir(parents=True)
    (path / "config.yaml").write_text("")
    os.utime(path / "config.yaml", (born, born))
    if checkpoint:
        (path / "last.ckpt").write_bytes(b"")
    if status:
        (path / "status.json").write_text(json.dumps({"rounds": 50, "early": False, **status}))
    return path


def ended(done: int, **other: Any) -> dict[str, Any]:
    return {"status": "finished", "rounds_done": done, **other}


def early(*callbacks: Any) -> dict[str, Any]:
    return ended(12, early=True, callbacks=list(callbacks))


def wanting(rounds: int, *callbacks: Any) -> Request:
    return Request("9326706e", 0, Budget(rounds), callbacks)


CASES: list[tuple[dict[str, Any], Request, Use]] = [
    ({}, RUN, Use.UNFINISHED),  # killed before it wrote its status
    ({}, wanting(50, STOP), Use.UNRELATED),  # nobody knows which callbacks it had
    ({"status": "running", "rounds_done": 3}, RUN, Use.UNFINISHED),
    ({"status": "running", "rounds_done": 3}, wanting(3), Use.EXTENSION),
    ({"status": "running", "rounds_done": 3}, wanting(80), Use.EXTENSION),
    ({"status": "running", "rounds_done": 3}, wanting(2), Use.UNRELATED),
    ({"status": "running", "rounds_done": 3}, wanting(50, STOP), Use.UNRELATED),
    ({"status": "running", "rounds_done": 3, "callbacks": [STOP]}, wanting(50, STOP), Use.UNFINISHED),
    ({"status": "running", "rounds_done": 3, "callbacks": [STOP]}, RUN, Use.UNRELATED),
    ({"checkpoint": False, "status": "running", "rounds_done": 0}, wanting(20, STOP), Use.EMPTY),
    ({"status": "interrupted", "rounds_done": 50}, RUN, Use.UNFINISHED),  # its figures are missing
    ({"checkpoint": False, "status": "running", "rounds_done": 0}, RUN, Use.EMPTY),
    (ended(50), RUN, Use.FINISHED),
    (
        ended(50),
        wanting(20),
        Use.UNRELATED,
    ),  # 20 rounds are not the first 20 of 50
    (ended(50), wanting(80), Use.EXTENSION),
    (ended(50), wanting(50, STOP), Use.UNRELATED),
    (ended(50, callbacks=[STOP]), RUN, Use.UNRELATED),
    (ended(50, callbacks=[STOP]), wanting(80, STOP), Use.EXTENSION),
    (early(STOP), wanting(50, STOP), Use.FINISHED),
    (early(STOP), wanting(80, STOP), Use.FINISHED),  # with more rounds it would have ended there, too
    (early(STOP), wanting(12, STOP), Use.FINISHED),
    (early(STOP), wanting(11, STOP), Use.UNRELATED),
    (early(STOP), RUN, Use.UNRELATED),
    (early(STOP), wanting(50, TIMER), Use.UNRELATED),
    (early(STOP), wanting(12, TIMER), Use.UNRELATED),
    (early(STOP), wanting(50, {**STOP, "patience": 9}), Use.UNRELATED),
]


@pytest.mark.parametrize(("status", "request_", "use"), CASES)
def test_what_a_folder_is_to_a_run(tmp_path: Path, status: dict[str, Any], request_: Request, use: Use) -> None:
    assert request_.use_of(left(tmp_path, "a", 0, **status)) is use


def taken(logs: Path, request: Request = RUN) -> tuple[str, bool, bool]:
    home = claim(logs, "run", request, resume=True)
    home.release()
    return home.path.name, home.is_new, home.finished


@pytest.mark.parametrize("empty_born", [1, 9])
def test_a_start_that_was_broken_off_hides_nothing(tmp_path: Path, empty_born: int) -> None:
    left(tmp_path, "run-9326706e-s0-2", empty_born, checkpoint=False)
    assert taken(tmp_path) == ("run-9326706e-s0-2", False, False), "alone it is used again"
    left(tmp_path, "run-9326706e-s0-3", 5, **ended(20))
    assert taken(tmp_path) == ("run-9326706e-s0-3", False, False)
    left(tmp_path, "run-9326706e-s0", 4, **ended(50))
    assert taken(tmp_path) == ("run-9326706e-s0", False, True)
    left(tmp_path, "run-9326706e-s0-4", 3, status="interrupted", rounds_done=10)
    assert taken(tmp_path) == ("run-9326706e-s0-4", False, False)


def test_the_newest_of_equals(tmp_path: Path) -> None:
    for number, born in ((2, 5), (3, 9), (4, 7)):
        left(tmp_path, f"run-9326706e-s0-{number}", born, status="interrupted", rounds_done=number)
    assert taken(tmp_path)[0] == "run-9326706e-s0-3"


def test_an_extension_begins_where_most_is_done(tmp_path: Path) -> None:
    for number, (born, done) in enumerate([(5, 3), (6, 20), (7, 20), (9, 10)], start=2):
        left(tmp_path, f"run-9326706e-s0-{number}", born, **ended(done))
    assert taken(tmp_path)[0] == "run-9326706e-s0-4"


def test_each_number_of_rounds_finds_its_own_run(tmp_path: Path) -> None:
    """As after a sweep over rounds, of which one job was broken off."""
    stem = "run-9326706e-s0"
    left(tmp_path, stem, 1, **ended(10, rounds=10))
    left(tmp_path, f"{stem}-2", 2, **ended(20, rounds=20))
    left(tmp_path, f"{stem}-3", 3, status="interrupted", rounds=30, rounds_done=5)
    found = {rounds: taken(tmp_path, wanting(rounds)) for rounds in (10, 20, 30, 50)}
    assert found[10] == (stem, False, True)
    assert found[20] == (f"{stem}-2", False, True)
    assert found[30] == (f"{stem}-3", False, False)
    assert found[50] == (f"{stem}-2", False, False), "it goes on from where most is done"
    assert taken(tmp_path, wanting(4)) == (f"{stem}-4", True, False)


def test_a_job_leaves_the_runs_of_its_sweeps_other_jobs_alone(tmp_path: Path) -> None:
    """But for a finished one that it would equal; those of earlier sweeps are extended as ever."""
    stem = "run-9326706e-s0"
    other = left(tmp_path, stem, 1, **ended(3, rounds=3))
    siblings = frozenset([other])
    assert taken(tmp_path, wanting(5)) == (stem, False, False)
    assert taken(tmp_path, replace(wanting(5), siblings=siblings)) == (f"{stem}-2", True, False)
    assert taken(tmp_path, replace(wanting(3), siblings=siblings)) == (stem, False, True)


def test_nothing_to_resume_is_a_new_folder(tmp_path: Path) -> None:
    left(tmp_path, "run-9326706e-s01", 1)
    left(tmp_path, "run-00000000-s0", 1)
    left(tmp_path, "run-9326706e-s0", 1, **early(STOP))
    assert taken(tmp_path, Request("9326706e", 0, Budget(50), [TIMER])) == ("run-9326706e-s0-2", True, False)


@pytest.mark.parametrize("status", [ended(50), {"status": "interrupted", "rounds_done": 3}])
def test_a_folder_that_is_in_use_is_refused(tmp_path: Path, status: dict[str, Any]) -> None:
    left(tmp_path, "run-9326706e-s0", 1, **status)
    first = claim(tmp_path, "run", RUN, resume=True)
    with pytest.raises(CheckpointError, match="is being run by another process"):
        claim(tmp_path, "run", RUN, resume=True)
    first.release()


@pytest.mark.parametrize(
    ("resume", "checkpoint", "rounds_done", "goes"),
    [
        (False, False, None, True),
        (False, False, 0, True),
        (False, False, 1, False),
        (False, True, 0, False),
        (True, False, 0, False),
    ],
)
def test_only_a_folder_of_our_own_with_nothing_in_it_goes(
    tmp_path: Path, resume: bool, checkpoint: bool, rounds_done: int | None, goes: bool
) -> None:
    if resume:
        left(tmp_path, "run-9326706e-s0", 1, checkpoint=False)
    home = claim(tmp_path, "run", RUN, resume)
    if checkpoint:
        home.checkpoint.write_bytes(b"")
    if rounds_done is not None:
        (home.path / "status.json").write_text(json.dumps({"status": "dropped", "rounds_done": rounds_done}))
    home.discard()
    home.release()
    assert home.path.exists() != goes


@pytest.mark.parametrize(
    "status", [b"", b"{", b"[]", b"\xff\x00", b'{"status": "finished", "rounds_done": "12"}', b'{"rounds": null}']
)
def test_a_damaged_status_is_none(tmp_path: Path, status: bytes) -> None:
    path = left(tmp_path, "run-9326706e-s0", 1)
    (path / "status.json").write_bytes(status)
    assert status_of(path) == {}
    assert taken(tmp_path) == ("run-9326706e-s0", False, False), "its checkpoint says how far it is"


def test_a_run_without_a_config_is_still_found(tmp_path: Path) -> None:
    path = left(tmp_path, "run-9326706e-s0", 1, status="running", rounds_done=3)
    (path / "config.yaml").unlink()
    left(tmp_path, "run-9326706e-s0-2", 1, status="running", rounds_done=3)
    assert taken(tmp_path)[0] == "run-9326706e-s0", "it is the newer one"


def test_a_kill_between_the_renames_of_a_checkpoint_leaves_a_run(tmp_path: Path) -> None:
    path = left(tmp_path, "run-9326706e-s0", 1, status="running", rounds_done=3)
    (path / "last.ckpt").rename(path / "previous.ckpt")
    (path / "last.partial").write_bytes(b"half")
    assert RUN.use_of(path) is Use.UNFINISHED
    home = claim(tmp_path, "run", RUN, resume=False)
    (home.path / "previous.ckpt").write_bytes(b"")
    home.discard()
    home.release()
    assert home.path.exists()


def test_what_is_no_folder_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "old-9326706e-s0").write_text("")
    assert taken(tmp_path) == ("run-9326706e-s0", True, False)


def test_logs_may_be_a_link(tmp_path: Path) -> None:
    left(tmp_path / "disk", "run-9326706e-s0", 1, status="running", rounds_done=3)
    (tmp_path / "logs").symlink_to("disk")
    assert taken(tmp_path / "logs") == ("run-9326706e-s0", False, False)
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises(OptionError, match=r"paths\.logs must be a folder that can be written"):
        claim(tmp_path / "broken", "run", RUN, resume=True)


def test_a_slurm_job_goes_on_with_its_own_run(tmp_path: Path) -> None:
    """Not with that of another job of the same words, be it newer or at work; where it has none yet, with nobody's."""
    stem = "a-9326706e-s0"
    left(tmp_path, stem, 1, status="running", rounds_done=3, slurm_job="7_1")
    left(tmp_path, f"{stem}-2", 2, status="running", rounds_done=9, slurm_job="7_2")
    again = {job: Request("9326706e", 0, Budget(50), slurm_job=job) for job in ("7_1", "7_2", "7_3")}
    at_work = claim(tmp_path, "a", again["7_2"], resume=True)
    assert at_work.path.name == f"{stem}-2"
    with claim(tmp_path, "a", again["7_1"], resume=True).lock:
        own = claim(tmp_path, "a", again["7_3"], resume=True)
        assert own.is_new
        assert own.path.name == f"{stem}-3"
    with pytest.raises(CheckpointError, match="being run by another process"):
        claim(tmp_path, "a", RUN, resume=True)
    at_work.release()
