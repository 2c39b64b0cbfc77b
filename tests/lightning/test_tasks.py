"""A run over two of SLURM's tasks, here two processes of this machine: as one process, in one folder."""

import mmap
import multiprocessing
import os
import signal
import socket
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

import run_harness
from fedcohort.errors import OptionError
from fedcohort.host import task
from fedcohort.host.interrupt import interrupts
from fedcohort.host.processes import check_process_counts
from fedcohort.record.folder import read_status
from fedcohort.record.observer import Observer
from run_harness import run_training
from test_process_ranks_runs import CALLBACK_OVERRIDES, CASES, assert_same_journal, assert_same_rest, federation, run  # noqa: F401

FORKED = multiprocessing.get_context("fork")
PATIENCE_S = 120
SLURM = {
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_NAME": "train",
    "SLURM_NODELIST": "localhost",
    "SLURM_NNODES": "2",
    "SLURM_NTASKS": "2",
    "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_LOCALID": "0",
    "MASTER_ADDR": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
}


class Terminate(Observer):
    """An observer of the first task that sends SIGTERM to the second task in round 1."""

    def observe(self, report: Any) -> None:
        if report.step == 1:
            os.kill(int(os.environ["OTHER"]), signal.SIGTERM)


def begin(number: int, logs: Path, overrides: tuple[str, ...], **options: str) -> BaseProcess:
    """Start a task as SLURM would."""

    def work() -> None:
        interrupts._shared_flags = mmap.mmap(-1, 2)  # machines share none
        os.environ.update({**SLURM, "SLURM_PROCID": str(number), "SLURM_NODEID": str(number), **options})
        run_training(logs, *overrides, *CALLBACK_OVERRIDES, "trainer.num_nodes=2")

    process = FORKED.Process(target=work)
    process.start()
    return process


def run_both(logs: Path, *overrides: str) -> tuple[int | None, int | None]:
    """Run both tasks, and return their exit codes."""
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = str(free_socket.getsockname()[1])
    second_process = begin(1, logs, overrides, MASTER_PORT=port)
    first_process = begin(0, logs, overrides, MASTER_PORT=port, OTHER=str(second_process.pid))
    for process in (first_process, second_process):
        process.join(PATIENCE_S)
    codes = (first_process.exitcode, second_process.exitcode)
    for process in (first_process, second_process):
        process.kill()
    return codes


def test_two_tasks_are_one_run_and_a_signal_to_either_ends_both(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    federation: dict[str, Any],  # noqa: F811
) -> None:
    """The second hears SIGTERM: both end after the round, resume, finish as one process does, and then rest."""
    monkeypatch.setattr(run_harness, "Terminate", Terminate, raising=False)
    overrides = CASES["powd"]
    one_task = run(tmp_path, 1, *overrides)
    logs = tmp_path / "2"
    assert run_both(logs, *overrides, "+callback.kill._target_=run_harness.Terminate") == (143, 143)
    (folder,) = (logs / "runs").iterdir()
    assert read_status(folder)["status"] == "interrupted"
    assert run_both(logs, *overrides, "resume=true") == (0, 0)
    assert read_status(folder)["status"] == "finished"
    assert_same_journal(one_task, folder)
    assert_same_rest(one_task, folder)
    assert len((folder / "starts.jsonl").read_text().splitlines()) == 2, "the first task alone writes"
    assert run_both(logs, *overrides, "resume=true") == (0, 0)
    assert list((logs / "runs").iterdir()) == [folder]


@pytest.mark.parametrize(("name", "count"), [("SLURM_NTASKS", "SLURM_PROCID"), ("WORLD_SIZE", "RANK")])
def test_the_number_of_cluster_tasks_must_equal_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch, name: str, count: str
) -> None:
    for variable in ("SLURM_NTASKS", "SLURM_PROCID", "WORLD_SIZE", "RANK"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    assert (task.count_cluster_processes(), task.is_non_first_task(2)) == (None, False)
    monkeypatch.setenv(name, "2")
    monkeypatch.setenv(count, "1")
    check_process_counts("cpu", 1, 2)
    assert task.is_non_first_task(2)
    assert not task.is_non_first_task(1), "processes of one machine are ours, forked"
    message = r"must be 4, .*: start it with srun --nodes=2 --ntasks-per-node=2, got 2"
    with pytest.raises(OptionError, match=message):
        check_process_counts("cpu", 2, 2)
