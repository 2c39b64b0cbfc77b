"""A signal at any moment of a run: the files that remain, the message, the exit code, and the resumed run."""

import json
import logging
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedcohort.errors import CheckpointError, FedcohortError, OptionError, TrackingError
from fedcohort.host import messages
from fedcohort.lightning import trainer
from fedcohort.process_ranks import rank_of_process
from fedcohort.record import claim, manifest
from fedcohort.selector.base import first_round_notice
from fedcohort.training.local import LocalTrainer
from run_harness import CollectReports, FinishedRun, run_training, same_bits

START_NOTICE = f"{first_round_notice('flash')}\n"  # said at the start
OVERRIDES = ("selector=flash", "agg=scaffold", "split.limit=240", "rounds=4")
INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.fixture(scope="module", autouse=True)  # so that forked children have their imports done
def uninterrupted_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("whole"), *OVERRIDES)


@pytest.fixture
def captured_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """What the package says, whatever an entry point did to its logger."""
    monkeypatch.setattr(logging.getLogger("fedcohort"), "propagate", True)
    caplog.set_level(logging.INFO, "fedcohort")
    return caplog


def child(tmp_path: Path, *overrides: str) -> tuple[int, str]:
    """Train with `overrides` in a forked child; return its exit code and its output."""
    pid = os.fork()
    if pid == 0:
        signal.signal(INT, signal.default_int_handler)  # a test run in the background ignores it
        messages.log_to_terminal()
        handler = logging.FileHandler(tmp_path / "said")
        logging.getLogger("fedcohort").addHandler(handler)
        try:
            run_training(tmp_path / "logs", *overrides)
        except SystemExit as error:
            os._exit(int(error.code or 0))
        except KeyboardInterrupt as error:
            os._exit(getattr(error, "code", 1))
        except BaseException:
            os._exit(70)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, (tmp_path / "said").read_text()


def signals(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    *numbers: int,
    call: int = 1,
    to: Callable[[], int | None] = os.getpid,
) -> None:
    """Send the signals, one after the other, just before the `call`-th call of owner.name."""
    original = getattr(owner, name)
    count = {"n": 0}

    def count_call(*args: Any, **kwargs: Any) -> Any:
        count["n"] += 1
        if count["n"] == call and (process := to()):
            for number in numbers:
                os.kill(process, number)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, count_call)


def read_single_run(logs: Path) -> tuple[Path, dict[str, Any]]:
    (path,) = (logs / "runs").iterdir()
    return path, json.loads((path / "status.json").read_text())


MOMENTS = [
    (claim, "_make_run_folder", INT),  # the folder exists, and nothing refers to it yet
    (trainer, "train", TERM),
    (CollectReports, "start", INT),
    (CollectReports, "observe", TERM),  # step 0
]


@pytest.mark.parametrize(("owner", "name", "number"), MOMENTS, ids=[name for _, name, _ in MOMENTS])
def test_a_signal_before_the_first_round_leaves_no_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    signals(monkeypatch, owner, name, number)
    code, output = child(tmp_path, *OVERRIDES)
    assert code == 128 + number
    assert output.removeprefix(START_NOTICE) in ("", "stopped before a round was trained\n")
    assert not list((tmp_path / "logs" / "runs").iterdir())


def test_two_signals_in_the_first_round_leave_no_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signals(monkeypatch, LocalTrainer, "begin_client_hooks", TERM, INT, call=3)
    code, output = child(tmp_path, *OVERRIDES, "callback=default", "callback.figures=null")
    assert code in (128 + INT, 128 + TERM)  # both came at once
    assert output.endswith("stopped before a round was trained\n")
    assert not list((tmp_path / "logs" / "runs").iterdir())


def test_a_signal_during_a_resume_keeps_the_existing_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted_run: FinishedRun
) -> None:
    signals(monkeypatch, CollectReports, "observe", signal.SIGKILL)
    assert child(tmp_path, *OVERRIDES)[0] == -signal.SIGKILL
    monkeypatch.undo()
    signals(monkeypatch, CollectReports, "observe", TERM)
    code, output = child(tmp_path, *OVERRIDES, "resume=true")
    path, status = read_single_run(tmp_path / "logs")
    assert (code, status["status"], status["rounds_done"]) == (143, "interrupted", 0)
    assert f"resuming {path} from the start: no round was saved" in output
    monkeypatch.undo()
    assert same_bits(uninterrupted_run, run_training(tmp_path / "logs", *OVERRIDES, "resume=true"))
    read_single_run(tmp_path / "logs")


def test_an_interrupted_run_prints_the_resume_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted_run: FinishedRun
) -> None:
    signals(monkeypatch, CollectReports, "observe", TERM, call=3)
    code, output = child(tmp_path, *OVERRIDES)
    status = read_single_run(tmp_path / "logs")[1]
    assert (code, status["status"], status["rounds_done"]) == (143, "interrupted", 2)
    assert "SIGTERM: finishing the round; a further signal drops it\n" in output
    assert re.search(r"stopped after round 2; resume with: \S*python train.py .*selector=flash ", output)
    assert output.endswith(" resume=true\n")
    monkeypatch.undo()
    assert same_bits(uninterrupted_run, run_training(tmp_path / "logs", *OVERRIDES, "resume=true"))


def test_the_status_file_has_the_number_of_finished_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signals(monkeypatch, CollectReports, "observe", signal.SIGKILL, call=4)
    child(tmp_path, *OVERRIDES)
    assert read_single_run(tmp_path / "logs")[1]["rounds_done"] == 2
    assert read_single_run(tmp_path / "logs")[1]["status"] == "running"


def test_a_signal_while_files_are_written_ends_the_run_as_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals(monkeypatch, CollectReports, "finish", INT)
    code, output = child(tmp_path, *OVERRIDES)
    assert (code, read_single_run(tmp_path / "logs")[1]["status"]) == (130, "finished")
    assert (
        output.removeprefix(START_NOTICE)
        == "SIGINT: finishing figures and tracking; a further signal leaves them out\n"
    )


@pytest.mark.parametrize("number", [TERM, signal.SIGKILL])
def test_resuming_a_run_interrupted_at_its_end_writes_the_missing_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted_run: FinishedRun, number: int
) -> None:
    signals(monkeypatch, CollectReports, "finish", INT, number)
    code, _ = child(tmp_path, *OVERRIDES)
    path, status = read_single_run(tmp_path / "logs")
    expected = (130, "interrupted") if number == TERM else (-signal.SIGKILL, "running")
    assert (code, status["status"]) == expected
    assert (status["rounds_done"], status["early"]) == (4, False)
    monkeypatch.undo()
    manifest.remove_manifest(path)
    (path / "weights.pt").unlink()
    resumed = run_training(tmp_path / "logs", *OVERRIDES, "resume=true")
    assert (resumed.reports, resumed.info.start, CollectReports.latest[-1].status) == ([], 4, "finished")
    assert (resumed.weights() == uninterrupted_run.weights()).all()
    status = read_single_run(tmp_path / "logs")[1]
    assert (status["status"], status["rounds_done"], status["early"]) == ("finished", 4, False)


@pytest.mark.parametrize("numbers", [(TERM,), (INT, TERM)])
def test_a_signal_to_the_parent_ends_both_training_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]
) -> None:
    signals(
        monkeypatch,
        LocalTrainer,
        "begin_client_hooks",
        *numbers,
        call=4,
        to=lambda: os.getppid() if rank_of_process() == 0 else None,
    )
    code, output = child(tmp_path, "trainer.devices=2", "agg=scaffold", "rounds=50")
    first = re.search(r"^(SIG\w+):", output, re.MULTILINE)
    assert first
    received = signal.Signals[first[1]]  # of two that another process sends either may arrive first
    assert received in numbers
    assert code == 128 + received
    status = read_single_run(tmp_path / "logs")[1]
    assert status["status"] == "interrupted"
    assert 1 <= status["rounds_done"] < 50
    assert f"stopped after round {status['rounds_done']}; resume with" in output


def test_a_resumed_run_logs_from_where_it_resumes(tmp_path: Path, captured_log: pytest.LogCaptureFixture) -> None:
    first = run_training(tmp_path, "rounds=2", "resume=true").folder
    assert captured_log.messages == ["nothing to resume for this config and seed; starting a new run"]
    run_training(tmp_path, "rounds=3", "resume=true")
    assert captured_log.messages[1:] == [f"resuming {first} after round 2"]
    run_training(tmp_path, "rounds=3", "resume=true")
    assert captured_log.messages[2:] == [f"already finished: {first} (raise rounds= to extend it)"]
    run_training(tmp_path, "rounds=1")
    assert len(captured_log.messages) == 3


def test_requesting_fewer_rounds_starts_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signals(monkeypatch, CollectReports, "observe", TERM, call=4)
    assert child(tmp_path, *OVERRIDES)[0] == 143
    monkeypatch.undo()
    two_rounds = (*OVERRIDES[:-1], "rounds=2", "resume=true")
    second_run = run_training(tmp_path / "logs", *two_rounds)
    assert [report.step for report in second_run.reports] == [0, 1, 2]
    first = second_run.folder.with_name(second_run.folder.name.removesuffix("-2"))
    manifest.remove_manifest(first)
    (first / "status.json").write_text("")
    shutil.rmtree(second_run.folder)
    with pytest.raises(OptionError, match=r"rounds must be at least 3, as many as .* has already, got 2"):
        run_training(tmp_path / "logs", *two_rounds)


def test_resume_rejects_a_journal_with_missing_rounds(tmp_path: Path) -> None:
    overrides = ("callback=default", "callback.figures=null", "callback.summary=null")
    path = run_training(tmp_path, *overrides).folder / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    manifest.remove_manifest(path.parent)
    with pytest.raises(CheckpointError, match=r"is at round 3 but its journal.jsonl lacks round 2"):
        run_training(tmp_path, *overrides, "rounds=5", "resume=true")
    path.write_text("".join(lines))
    assert run_training(tmp_path, *overrides, "rounds=5", "resume=true").reports[0].step == 4


def test_a_user_error_in_a_training_process_gives_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: CollectReports, info: Any) -> None:
        raise TrackingError("the experiment is gone")

    monkeypatch.setattr(CollectReports, "start", refuse)
    with pytest.raises(FedcohortError, match=r"^the experiment is gone$"):
        run_training(tmp_path, "trainer.devices=2")
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize(("name", "is_kept"), [("start", False), ("observe", True)])
def test_a_crash_keeps_the_run_folder_only_if_it_has_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_kept: bool
) -> None:
    def crash(self: CollectReports, arguments: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(CollectReports, name, crash)
    with pytest.raises(ZeroDivisionError):
        run_training(tmp_path)
    assert len(list((tmp_path / "runs").iterdir())) == is_kept
    assert not is_kept or read_single_run(tmp_path)[1]["status"] == "failed"
