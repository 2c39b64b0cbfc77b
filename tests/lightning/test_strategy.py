"""A cohort is divided over ranks, largest jobs first, and two processes end with the model of one."""

import json
import multiprocessing
import os
import select
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.fabric.utilities import distributed

from fedcohort.errors import FedcohortError
from fedcohort.host import cores
from fedcohort.host.orphan import end_when_forking_thread_ends
from fedcohort.host.processes import read_process_options
from fedcohort.maths.gce import generalised_ce
from fedcohort.objective import gce
from fedcohort.process_ranks import order_for_training, positions_of_rank
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from run_harness import run_training


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_each_client_is_assigned_to_exactly_one_rank(ranks: int) -> None:
    clients, cost = np.array([3, 5, 8, 11, 20]), np.array([10.0, 50.0, 50.0, 1.0, 7.0])
    shares = [positions_of_rank(rank, ranks, clients, cost) for rank in range(ranks)]
    assert sorted(i for share in shares for i in share) == list(range(5))


def test_clients_are_assigned_largest_first_to_the_least_loaded_rank() -> None:
    clients, cost = np.arange(4), np.array([3.0, 9.0, 5.0, 4.0])
    assert order_for_training(clients, cost) == [1, 2, 3, 0]
    assert positions_of_rank(0, 2, clients, cost) == [1, 0]  # 9, then 3 onto the first of two equal loads of 9
    assert positions_of_rank(1, 2, clients, cost) == [2, 3]


def test_no_rank_trains_clients_of_an_empty_cohort() -> None:
    no_clients = np.empty(0, dtype=np.int64)
    assert positions_of_rank(0, 2, no_clients, np.empty(0)) == []


def list_listening_addresses() -> set[str]:
    """Addresses at which this process waits for connections, in the kernel's notation."""
    files = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    sockets = {name.removeprefix("socket:[").removesuffix("]") for name in files if name.startswith("socket:")}
    rows = [line.split() for path in ("tcp", "tcp6") for line in Path(f"/proc/net/{path}").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets}


def test_ranks_communicate_over_the_loopback_interface_and_leave_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rank has the requested number of threads, not Lightning's share of the cores; only the first rank logs."""
    begin = LocalTrainer.begin_client_hooks

    def watch(self: LocalTrainer, task: ClientTask, broadcast: Any) -> Any:
        with (tmp_path / f"rank-{torch.distributed.get_rank()}").open("a") as file:
            file.write(
                json.dumps({"threads": torch.get_num_threads(), "at": sorted(list_listening_addresses())}) + "\n"
            )
        return begin(self, task, broadcast)

    monkeypatch.setattr(LocalTrainer, "begin_client_hooks", watch)
    monkeypatch.setattr(distributed, "_suggested_max_num_threads", lambda processes: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = run_training(tmp_path, "trainer.devices=2", "rounds=1", "model=mlp", "client.lr=1e30")
    assert (run.folder / "run.log").read_text().count("were excluded") == 1
    assert multiprocessing.active_children() == []
    assert not list(tmp_path.glob("fedcohort-*"))
    for rank in range(2):
        records = [json.loads(line) for line in (tmp_path / f"rank-{rank}").read_text().splitlines()]
        assert {row["threads"] for row in records} == {1}
        assert {address for row in records for address in row["at"]} == {"0100007F"}, "127.0.0.1 and no other"


def test_a_killed_run_leaves_no_rank_training_and_no_shared_memory() -> None:
    """A launcher that is killed takes its ranks along. The pipe ends when its last writer, the rank, is gone."""
    read_end, write_end = os.pipe()
    launcher = os.fork()
    if launcher == 0:
        if os.fork() == 0:
            end_when_forking_thread_ends()
            shared = torch.zeros(4).share_memory_()
            os.write(write_end, f"{os.getpid() if shared.is_shared() else 0:10d}".encode())
        else:
            os.close(write_end)
        signal.pause()
    os.close(write_end)
    rank = int(os.read(read_end, 10))
    assert rank > 0
    os.kill(launcher, signal.SIGKILL)
    os.waitpid(launcher, 0)
    assert select.select([read_end], [], [], 20)[0], "the rank continues without its launcher"
    assert os.read(read_end, 1) == b""
    os.close(read_end)
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"torch_{rank}_")]


def test_a_rank_that_dies_ends_the_run_and_it_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uninterrupted = run_training(tmp_path / "whole", "agg=scaffold", "rounds=4").weights()
    begin = LocalTrainer.begin_client_hooks

    def mortal(self: LocalTrainer, task: ClientTask, broadcast: Any) -> Any:
        if torch.distributed.get_rank() == 1 and task.round == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return begin(self, task, broadcast)

    monkeypatch.setattr(LocalTrainer, "begin_client_hooks", mortal)
    with pytest.raises(FedcohortError, match=r"training process \d ended .*resume=true"):
        run_training(tmp_path / "killed", "trainer.devices=2", "agg=scaffold", "rounds=4")
    monkeypatch.undo()
    resumed = run_training(tmp_path / "killed", "trainer.devices=2", "agg=scaffold", "rounds=4", "resume=true")
    assert len(list((tmp_path / "killed" / "runs").iterdir())) == 1
    torch.testing.assert_close(resumed.weights(), uninterrupted, atol=1e-6, rtol=0)


def test_a_rank_names_the_component_whose_code_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback of a training process does not reach the process that reports the error."""

    def raise_in_ranks(*args: Any) -> torch.Tensor:
        if torch.distributed.is_initialized():
            raise ZeroDivisionError("no loss")
        return generalised_ce(*args)

    monkeypatch.setattr(gce, "generalised_ce", raise_in_ranks)
    with pytest.raises(FedcohortError, match=r"objective=gce .*ZeroDivisionError"):
        run_training(tmp_path, "trainer.devices=2", "rounds=1", "model=mlp", "objective=gce", "engine.kind=sequential")


def test_devices_auto_is_one_process_per_available_core() -> None:
    options = {"accelerator": "cpu", "devices": "auto", "num_nodes": 1}
    n_processes = read_process_options({"trainer": options})["devices"]
    assert n_processes == cores.count_available_cores() <= len(os.sched_getaffinity(0))
    assert read_process_options({"trainer": {**options, "devices": 3}}) == {**options, "devices": 3}
