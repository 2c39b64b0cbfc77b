"""Storage of the vectors that clients keep between rounds, such as SCAFFOLD's c_i; the server commits them.

A client without a commit has nothing stored, so that memory grows with the clients that have trained. If the vectors
of all clients might not fit into memory, they are in sparse files. There each client has three slots: one for the
newest checkpoint, one for the checkpoint before it, and one for later commits. A run that is killed at any time can
therefore resume exactly from either checkpoint, which states the valid slots and their digests.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from fedcohort.errors import DamagedCheckpoint

STORE_FILE_PREFIX = "client_store."
SLOTS_PER_CLIENT = 3
VectorsByName = Mapping[str, Tensor]


class ClientStore(Protocol):
    folder: Path | None  # run folder; None if nothing is stored in files

    def read_vectors(self, client: int) -> Mapping[str, Tensor]:
        """Return the vectors that the client with id `client` keeps, by name; {} before the first write."""
        ...

    def write_client_vectors(self, client: int, new_vectors: Mapping[str, Tensor]) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, store_state: Mapping[str, Any]) -> None:
        """Restore the vectors of all clients from `store_state`, the result of `state_dict` in a checkpoint.

        It may come from a store in memory or in files: `client_store.limit_gb` may change when a run resumes.
        """
        ...

    def record_checkpoint(self) -> None:
        """Record that the checkpoint with the latest result of `state_dict` is on disk."""
        ...


class MemoryClientStore:
    """A store that keeps clients' vectors in memory, and in the checkpoint."""

    def __init__(self, folder: Path | None = None) -> None:
        """Begin without vectors; `folder` may hold the files of a `DiskClientStore` of an earlier start."""
        self.folder: Path | None = folder
        self._vectors: dict[int, dict[str, Tensor]] = {}

    def read_vectors(self, client: int) -> Mapping[str, Tensor]:
        return self._vectors.get(client, {})

    def write_client_vectors(self, client: int, new_vectors: Mapping[str, Tensor]) -> None:
        if new_vectors:
            self._vectors[client] = dict(new_vectors)

    def state_dict(self) -> dict[str, Any]:
        return {str(client): dict(client_vectors) for client, client_vectors in sorted(self._vectors.items())}

    def load_state_dict(self, store_state: Mapping[str, Any]) -> None:
        self._vectors = {client: dict(v) for client, v in read_saved_vectors(self.folder, store_state)}

    def record_checkpoint(self) -> None:
        """Do nothing, as a checkpoint holds copies of the vectors in memory."""


class _RowFile:
    """The file of the vectors of one name: float32 [n_clients, SLOTS_PER_CLIENT, n_floats].

    The file is written and not memory-mapped: a full disk then raises an error, whereas a mapping would end the process
    by a signal.
    """

    def __init__(self, path: Path, n_clients: int, n_floats: int | None = None) -> None:
        """Open or create the file.

        Args:
            path: path of the file.
            n_clients: number of clients; each has `SLOTS_PER_CLIENT` rows.
            n_floats: number of floats of a row; None to infer it from the size of an existing file.
        """
        self.file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        file_bytes = os.fstat(self.file.fileno()).st_size
        self.n_floats = file_bytes // (4 * SLOTS_PER_CLIENT * n_clients) if n_floats is None else n_floats
        if file_bytes != (expected_bytes := 4 * SLOTS_PER_CLIENT * n_clients * self.n_floats) and n_floats is not None:
            os.ftruncate(self.file.fileno(), expected_bytes)

    def read_row(self, client: int, slot: int) -> bytes:
        return os.pread(self.file.fileno(), 4 * self.n_floats, 4 * self.n_floats * (SLOTS_PER_CLIENT * client + slot))

    def write_row(self, client: int, slot: int, row_bytes: bytes) -> None:
        """Write `row_bytes`, 4 * n_floats bytes, into the row of a client's slot; raise `OSError` if the disk is full.

        Args:
            client: id of the client.
            slot: number of the slot, from 0.
            row_bytes: the vector in float32.
        """
        file_position = 4 * self.n_floats * (SLOTS_PER_CLIENT * client + slot)
        while row_bytes:
            n_written_bytes = os.pwrite(self.file.fileno(), row_bytes, file_position)
            row_bytes, file_position = row_bytes[n_written_bytes:], file_position + n_written_bytes

    def flush_to_disk(self) -> None:
        os.fsync(self.file.fileno())


class DiskClientStore:
    """Keeps vectors as rows of float32 in the files `<folder>/client_store.<name>`.

    A row that begins with NaN means that the client keeps no vector of this name.

    Args:
        folder: folder of the files.
        floats_by_vector: number of floats of a row by name; a shorter vector is padded at its end.
        n_clients: size of the population.
    """

    def __init__(self, folder: Path, floats_by_vector: Mapping[str, int], n_clients: int) -> None:
        self.folder: Path | None = folder
        self._row_files = {
            vector_name: _RowFile(folder / f"{STORE_FILE_PREFIX}{vector_name}", n_clients, n_floats)
            for vector_name, n_floats in sorted(floats_by_vector.items())
        }
        self._current_slots: np.ndarray = np.full(n_clients, -1, dtype=np.int8)
        # slots of the two checkpoints
        self._newest_slots, self._previous_slots = self._current_slots.copy(), self._current_slots.copy()
        self._snapshot_slots = self._current_slots.copy()
        self._digests = np.zeros(n_clients, dtype=np.int64)

    def read_vectors(self, client: int) -> Mapping[str, Tensor]:
        slot = int(self._current_slots[client])
        if slot < 0:
            return {}
        return _parse_stored_rows({k: row_file.read_row(client, slot) for k, row_file in self._row_files.items()})

    def write_client_vectors(self, client: int, new_vectors: Mapping[str, Tensor]) -> None:
        """Write a client's vectors into the one of its three slots that neither of the two newest checkpoints uses.

        Args:
            client: id of the client.
            new_vectors: the vectors by name, each 1-dimensional.
        """
        if not new_vectors:
            return
        checkpoint_slots = {int(self._newest_slots[client]), int(self._previous_slots[client])}
        free_slot = next(free_slot for free_slot in range(SLOTS_PER_CLIENT) if free_slot not in checkpoint_slots)
        rows_to_digest = []
        for vector_name, row_file in self._row_files.items():
            vector_row = np.zeros(row_file.n_floats, dtype=np.float32)
            if vector_name in new_vectors:
                vector_row[: len(new_vectors[vector_name])] = new_vectors[vector_name].cpu().numpy()
            else:
                vector_row[:1] = np.nan
            row_file.write_row(client, free_slot, vector_row.tobytes())
            rows_to_digest.append(vector_row.tobytes())
        self._current_slots[client] = free_slot
        self._digests[client] = _digest_stored_rows(rows_to_digest)

    def state_dict(self) -> dict[str, Any]:
        for row_file in self._row_files.values():
            row_file.flush_to_disk()
        self._snapshot_slots = self._current_slots.copy()
        saved_arrays = {"slots": self._snapshot_slots, "before": self._newest_slots, "digests": self._digests}
        return {vector_name: torch.from_numpy(saved_array.copy()) for vector_name, saved_array in saved_arrays.items()}

    def load_state_dict(self, store_state: Mapping[str, Any]) -> None:
        if "slots" not in store_state:
            for client, client_vectors in read_saved_vectors(None, store_state):
                self.write_client_vectors(client, client_vectors)
            return
        self._newest_slots, self._previous_slots = np.array(store_state["slots"]), np.array(store_state["before"])
        self._current_slots, self._digests = self._newest_slots.copy(), np.array(store_state["digests"])

    def record_checkpoint(self) -> None:
        self._previous_slots, self._newest_slots = self._newest_slots, self._snapshot_slots.copy()


def _parse_stored_rows(row_bytes_by_name: Mapping[str, bytes]) -> dict[str, Tensor]:
    """Return a client's stored vectors by name, from the bytes of its row in each vector's file."""
    client_vectors = {k: torch.from_numpy(np.frombuffer(r, np.float32).copy()) for k, r in row_bytes_by_name.items()}
    return {k: vector for k, vector in client_vectors.items() if not vector[:1].isnan().any()}


def _digest_stored_rows(row_bytes_list: list[bytes]) -> int:
    return int.from_bytes(hashlib.blake2b(b"".join(row_bytes_list), digest_size=8).digest(), "big", signed=True)


def read_saved_vectors(folder: Path | None, store_state: Mapping[str, Any]) -> Iterator[tuple[int, VectorsByName]]:
    """Yield each client's id and vectors, by name, from a store's state in a checkpoint.

    Args:
        folder: folder of the files of a store in files.
        store_state: result of `state_dict` of either store.

    Raises:
        DamagedCheckpoint: rows in the files differ from those that were written.
    """
    if "slots" not in store_state:
        yield from ((int(client), client_vectors) for client, client_vectors in store_state.items())
        return
    current_slots, row_digests = store_state["slots"].tolist(), store_state["digests"].tolist()
    row_file_paths = sorted(folder.glob(f"{STORE_FILE_PREFIX}*")) if folder is not None else []
    row_file_by_name = {p.name.removeprefix(STORE_FILE_PREFIX): _RowFile(p, len(current_slots)) for p in row_file_paths}
    for client, slot in enumerate(current_slots):
        if slot >= 0:
            row_bytes_by_name = {k: row_file.read_row(client, slot) for k, row_file in row_file_by_name.items()}
            if _digest_stored_rows(list(row_bytes_by_name.values())) != row_digests[client]:
                raise DamagedCheckpoint(
                    f"{folder}/{STORE_FILE_PREFIX}* is damaged: the stored vectors of client {client} differ from "
                    "those that were written. Restore these files from a copy"
                )
            yield client, _parse_stored_rows(row_bytes_by_name)


def check_stored_vectors(folder: Path, store_state: Mapping[str, Any]) -> None:
    """Read all stored vectors that a checkpoint refers to.

    Args:
        folder: run folder, which holds the files of a store in files.
        store_state: the store's part of the checkpoint.

    Raises:
        DamagedCheckpoint: a vector is damaged.
    """
    for _ in read_saved_vectors(folder, store_state):
        pass


def make_client_store(
    folder: Path | None, floats_by_vector: Mapping[str, int], n_clients: int, memory_limit_gb: float
) -> ClientStore:
    """Return a store in memory if all clients' vectors fit into `memory_limit_gb` gigabytes, else a store in files.

    Args:
        folder: folder of the files; None for memory in any case.
        floats_by_vector: number of floats of each vector by name; {} if clients keep nothing.
        n_clients: size of the population.
        memory_limit_gb: the option `client_store.limit_gb`.
    """
    if folder is None or 4e-9 * n_clients * sum(floats_by_vector.values()) <= memory_limit_gb:
        return MemoryClientStore(folder)
    return DiskClientStore(folder, floats_by_vector, n_clients)
