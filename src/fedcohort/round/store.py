"""The rows that clients keep between rounds (SCAFFOLD's c_i), committed only when the server has acknowledged them.

A client that was never committed has nothing stored: a population costs memory as it is seen. Where it might not fit,
rows live in sparse files instead. There each client has three slots: one for the rows of the newest checkpoint, one
for those of the checkpoint before it, one for what came since. So a kill at any point resumes exactly, from either; the
checkpoint says which slots count, and what their digests are.
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

PREFIX = "client_store."
SLOTS = 3


class ClientStore(Protocol):
    def get(self, client: int) -> Mapping[str, Tensor]:
        """Return what the client kept, by name; nothing at first."""
        ...

    def commit(self, client: int, stored: Mapping[str, Tensor]) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take what either kind of store saved: `client_store.limit_gb` may change from one start to the next."""
        ...

    def note_checkpoint(self) -> None:
        """Take note that the state which was last asked for is on disk."""
        ...


class MemoryStore:
    """Rows in memory, and in the checkpoint."""

    def __init__(self, folder: Path | None = None) -> None:
        """Begin without rows; folder: where a store in files may have left some."""
        self._folder = folder
        self._kept: dict[int, dict[str, Tensor]] = {}

    def get(self, client: int) -> Mapping[str, Tensor]:
        return self._kept.get(client, {})

    def commit(self, client: int, stored: Mapping[str, Tensor]) -> None:
        if stored:
            self._kept[client] = dict(stored)

    def state_dict(self) -> dict[str, Any]:
        return {str(client): dict(kept) for client, kept in sorted(self._kept.items())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept = {client: dict(kept) for client, kept in saved_rows(self._folder, state)}

    def note_checkpoint(self) -> None:
        """Do nothing: the checkpoint holds copies."""


class _Rows:
    """The file of one name: float32 [n_clients, SLOTS, size].

    It is written, not mapped: a full disk is an error that can be handled, where a mapping would end the process by a
    signal.
    """

    def __init__(self, path: Path, n_clients: int, size: int | None = None) -> None:
        """Open or make the file; size: floats of a row, None for those of the file as it is."""
        self.file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        there = os.fstat(self.file.fileno()).st_size
        self.size = there // (4 * SLOTS * n_clients) if size is None else size
        if there != (wanted := 4 * SLOTS * n_clients * self.size) and size is not None:
            os.ftruncate(self.file.fileno(), wanted)

    def read(self, client: int, slot: int) -> bytes:
        return os.pread(self.file.fileno(), 4 * self.size, 4 * self.size * (SLOTS * client + slot))

    def write(self, client: int, slot: int, row: bytes) -> None:
        """Write a row; what doesn't fit at once is tried again, and then refused.

        Raises `OSError` where the disk is full.
        """
        at = 4 * self.size * (SLOTS * client + slot)
        while row:
            done = os.pwrite(self.file.fileno(), row, at)
            row, at = row[done:], at + done

    def sync(self) -> None:
        os.fsync(self.file.fileno())


class MappedStore:
    """Rows of float32 in `<folder>/client_store.<name>`; one that begins with NaN stands for nothing kept.

    sizes: floats that each name takes; what is shorter is padded at its end, with what does not count.
    """

    def __init__(self, folder: Path, sizes: Mapping[str, int], n_clients: int) -> None:
        self._rows = {name: _Rows(folder / f"{PREFIX}{name}", n_clients, size) for name, size in sorted(sizes.items())}
        self._current: np.ndarray = np.full(n_clients, -1, dtype=np.int8)
        self._newest, self._before = self._current.copy(), self._current.copy()  # of the two checkpoints
        self._snapshot = self._current.copy()
        self._digests = np.zeros(n_clients, dtype=np.int64)

    def get(self, client: int) -> Mapping[str, Tensor]:
        slot = int(self._current[client])
        if slot < 0:
            return {}
        return _parse({name: rows.read(client, slot) for name, rows in self._rows.items()})

    def commit(self, client: int, stored: Mapping[str, Tensor]) -> None:
        """Write what the client keeps into the slot that no checkpoint needs."""
        if not stored:
            return
        needed = {int(self._newest[client]), int(self._before[client])}
        slot = next(slot for slot in range(SLOTS) if slot not in needed)
        clients = []
        for name, rows in self._rows.items():
            row = np.zeros(rows.size, dtype=np.float32)
            if name in stored:
                row[: len(stored[name])] = stored[name].cpu().numpy()
            else:
                row[:1] = np.nan
            rows.write(client, slot, row.tobytes())
            clients.append(row.tobytes())
        self._current[client] = slot
        self._digests[client] = _digest(clients)

    def state_dict(self) -> dict[str, Any]:
        for rows in self._rows.values():
            rows.sync()
        self._snapshot = self._current.copy()
        saved = {"slots": self._snapshot, "before": self._newest, "digests": self._digests}
        return {name: torch.from_numpy(values.copy()) for name, values in saved.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if "slots" not in state:
            for client, kept in saved_rows(None, state):
                self.commit(client, kept)
            return
        self._newest, self._before = np.array(state["slots"]), np.array(state["before"])
        self._current, self._digests = self._newest.copy(), np.array(state["digests"])

    def note_checkpoint(self) -> None:
        self._before, self._newest = self._newest, self._snapshot.copy()


def _parse(rows: Mapping[str, bytes]) -> dict[str, Tensor]:
    """Return what is kept in the rows, by name."""
    found = {name: torch.from_numpy(np.frombuffer(row, np.float32).copy()) for name, row in rows.items()}
    return {name: row for name, row in found.items() if not row[:1].isnan().any()}


def _digest(rows: list[bytes]) -> int:
    return int.from_bytes(hashlib.blake2b(b"".join(rows), digest_size=8).digest(), "big", signed=True)


def saved_rows(folder: Path | None, state: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Tensor]]]:
    """What each client kept, of the `state_dict` of either store; folder: where the files are.

    Raises `DamagedCheckpoint` where the rows in the files aren't those that were written.
    """
    if "slots" not in state:
        yield from ((int(client), kept) for client, kept in state.items())
        return
    slots, digests = state["slots"].tolist(), state["digests"].tolist()
    paths = sorted(folder.glob(f"{PREFIX}*")) if folder is not None else []
    files = {path.name.removeprefix(PREFIX): _Rows(path, len(slots)) for path in paths}
    for client, slot in enumerate(slots):
        if slot >= 0:
            rows = {name: file.read(client, slot) for name, file in files.items()}
            if _digest(list(rows.values())) != digests[client]:
                where = f"{folder}/{PREFIX}*"
                raise DamagedCheckpoint(f"{where} is damaged: what client {client} keeps isn't what was written")
            yield client, _parse(rows)


def check(folder: Path, state: Mapping[str, Any]) -> None:
    """Read every row that `state` counts on. Raises `DamagedCheckpoint`."""
    for _ in saved_rows(folder, state):
        pass


def store_for(folder: Path | None, sizes: Mapping[str, int], n_clients: int, limit_gb: float) -> ClientStore:
    """Choose the store: memory if the rows of all clients fit into `limit_gb` gigabytes, else files.

    There is nothing to write where nothing is kept.
    """
    needed = 4e-9 * n_clients * sum(sizes.values())
    if folder is None or needed <= limit_gb:
        return MemoryStore(folder)
    return MappedStore(folder, sizes, n_clients)
