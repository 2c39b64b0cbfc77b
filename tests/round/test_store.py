"""Stored vectors of clients are the same in memory and in files, and a kill never mixes two rounds."""

import os
from pathlib import Path

import pytest
import torch

from config_options import make_component
from fedcohort.errors import DamagedCheckpoint
from fedcohort.hook import count_stored_floats
from fedcohort.lightning import checkpoint
from fedcohort.round import aggregate as closing
from fedcohort.round.store import DiskClientStore, MemoryClientStore, check_stored_vectors, make_client_store
from process_kills import act_at_call, kill_self, run_in_child
from run_harness import FinishedRun, run_training, same_bits

OVERRIDES = ("agg=scaffold", "split.limit=240", "rounds=4")
MAPPED = (*OVERRIDES, "client_store.limit_gb=0")


def row(value: float) -> dict[str, torch.Tensor]:
    return {"c": torch.full((3,), value)}


def value(store: DiskClientStore, client: int) -> float | None:
    row = store.read_vectors(client)
    return float(row["c"][0]) if row else None


def test_a_row_holds_the_committed_values(tmp_path: Path) -> None:
    store = DiskClientStore(tmp_path, {"c": 3}, 4)
    assert store.read_vectors(2) == {}
    store.write_client_vectors(2, row(1.5))
    assert value(store, 2) == 1.5
    assert value(store, 1) is None


def test_the_rows_of_a_checkpoint_survive_later_commits(tmp_path: Path) -> None:
    store = DiskClientStore(tmp_path, {"c": 3}, 4)
    store.write_client_vectors(0, row(1.0))
    checkpoint = store.state_dict()
    store.record_checkpoint()
    for newer in (2.0, 3.0):
        store.write_client_vectors(0, row(newer))
        store.write_client_vectors(1, row(newer))
    unsaved = store.state_dict()  # asked for, but the checkpoint never reached the disk
    assert unsaved["slots"].tolist() != checkpoint["slots"].tolist()
    restored = DiskClientStore(tmp_path, {"c": 3}, 4)
    restored.load_state_dict(checkpoint)
    assert (value(restored, 0), value(restored, 1)) == (1.0, None)


def test_the_rows_of_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    store = DiskClientStore(tmp_path, {"c": 3}, 4)
    checkpoints = []
    for round in range(5):
        store.write_client_vectors(round % 2, row(float(round)))
        checkpoints.append(store.state_dict())
        store.record_checkpoint()
        if round in (1, 3):  # a process ends, another goes on
            store = DiskClientStore(tmp_path, {"c": 3}, 4)
            store.load_state_dict(checkpoints[-1])
    store.write_client_vectors(0, row(9.0))
    for state, rows in zip(checkpoints[-2:], ((2.0, 3.0), (4.0, 3.0)), strict=True):
        check_stored_vectors(tmp_path, state)
        restored = DiskClientStore(tmp_path, {"c": 3}, 4)
        restored.load_state_dict(state)
        assert (value(restored, 0), value(restored, 1)) == rows
    with pytest.raises(DamagedCheckpoint, match="client 0"):
        check_stored_vectors(tmp_path, checkpoints[1])


def test_rows_are_in_memory_if_they_fit(tmp_path: Path) -> None:
    assert isinstance(make_client_store(tmp_path, {"c": 10**6}, 1000, 4.1), MemoryClientStore)
    assert isinstance(make_client_store(tmp_path, {"c": 10**6}, 1000, 3.9), DiskClientStore)
    assert isinstance(make_client_store(tmp_path, {}, 1000, 0), MemoryClientStore)


@pytest.fixture(scope="module")
def mapped_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("mapped"), *MAPPED)


def test_stored_vectors_in_files_give_the_same_bits_as_in_memory(mapped_run: FinishedRun, tmp_path: Path) -> None:
    memory = run_training(tmp_path, *OVERRIDES)
    assert same_bits(mapped_run, memory)
    assert (mapped_run.folder / "client_store.c").exists()
    small = (mapped_run.folder / "last.ckpt").stat().st_size
    assert small < (memory.folder / "last.ckpt").stat().st_size


@pytest.mark.parametrize(
    ("owner", "name", "call"), [(closing, "hash_selection_history", 3), (checkpoint, "rename_checkpoint", 3)]
)
def test_a_killed_run_with_stored_vectors_resumes_with_the_same_bits(
    mapped_run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, call: int
) -> None:
    act_at_call(monkeypatch, owner, name, call, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path / "killed", *MAPPED) and None))
    monkeypatch.undo()
    assert same_bits(mapped_run, run_training(tmp_path / "killed", *MAPPED, "resume=true"))


def test_stored_values_have_the_declared_size() -> None:
    hooks = (
        *make_component("agg", "fedbio").hooks,
        *make_component("agg", "scaffold").hooks,
        *make_component("regulariser", "prox").hooks,
    )
    assert count_stored_floats(hooks, 1000, 30) == {"x": 30, "c": 1000}


def test_rows_of_different_lengths_are_stored_in_files(tmp_path: Path) -> None:
    store = DiskClientStore(tmp_path, {"x": 4, "c": 2}, 3)
    store.write_client_vectors(0, {"x": torch.tensor([1.0, 2.0, 3.0, 4.0]), "c": torch.tensor([5.0, 6.0])})
    store.write_client_vectors(2, {"x": torch.tensor([7.0]), "c": torch.tensor([8.0, 9.0])})
    assert store.read_vectors(0)["x"].tolist() == [1, 2, 3, 4]
    assert store.read_vectors(2)["x"][:1].tolist() == [7]
    assert store.read_vectors(2)["c"].tolist() == [8, 9]
    assert (tmp_path / "client_store.x").stat().st_size == 3 * 3 * 4 * 4


def test_required_memory_is_computed_from_the_stored_values(tmp_path: Path) -> None:
    # 1000 clients with 30 floats take 120 kB, however large the model is.
    assert isinstance(make_client_store(tmp_path, {"x": 30}, 1000, 2e-4), MemoryClientStore)
    assert isinstance(make_client_store(tmp_path, {"x": 30}, 1000, 1e-4), DiskClientStore)
