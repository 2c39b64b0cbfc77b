"""What clients keep between rounds (SCAFFOLD's c_i), committed only when the server has acknowledged them.

A client that was never committed has nothing stored: a population costs memory as it is seen. Where it might not fit,
rows live in a sparse file instead. There each client has two slots, so that the rows of the last checkpoint stay as
they are until the next one is on disk: a kill at any point resumes exactly.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


class ClientStore(Protocol):
    def get(self, client: int) -> Mapping[str, Tensor]:
        """What the client kept, {} at first."""
        ...

    def commit(self, client: int, stored: Mapping[str, Tensor]) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...

    def checkpointed(self) -> None:
        """The state that was last asked for is on disk."""
        ...


class MemoryStore:
    """Rows in memory, and in the checkpoint."""

    def __init__(self) -> None:
        self._kept: dict[int, dict[str, Tensor]] = {}

    def get(self, client: int) -> Mapping[str, Tensor]:
        return self._kept.get(client, {})

    def commit(self, client: int, stored: Mapping[str, Tensor]) -> None:
        if stored:
            self._kept[client] = dict(stored)

    def state_dict(self) -> dict[str, Any]:
        return {str(client): dict(kept) for client, kept in sorted(self._kept.items())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept = {int(client): dict(kept) for client, kept in state.items()}

    def checkpointed(self) -> None:
        """Nothing to do: the checkpoint holds copies."""


class MappedStore:
    """Rows of float32 in `<folder>/client_store.<name>`, [clients, 2, size]; the checkpoint says whose slot counts.

    sizes: floats that each name takes; what is shorter is padded at its end, with what does not count.
    """

    def __init__(self, folder: Path, sizes: Mapping[str, int], n_clients: int) -> None:
        self._rows: dict[str, np.memmap[Any, np.dtype[np.float32]]] = {}
        for name, size in sizes.items():
            shape = (n_clients, 2, size)
            path = folder / f"client_store.{name}"
            if not path.exists() or path.stat().st_size != 4 * np.prod(shape, dtype=np.int64):
                with path.open("wb") as file:
                    file.truncate(4 * int(np.prod(shape, dtype=np.int64)))
            self._rows[name] = np.memmap(path, dtype=np.float32, mode="r+", shape=shape)
        self._durable = np.full(n_clients, -1, dtype=np.int8)
        self._current = self._durable.copy()
        self._asked = self._durable.copy()

    def get(self, client: int) -> Mapping[str, Tensor]:
        slot = self._current[client]
        if slot < 0:
            return {}
        return {name: torch.from_numpy(np.array(rows[client, slot])) for name, rows in self._rows.items()}

    def commit(self, client: int, stored: Mapping[str, Tensor]) -> None:
        """Into the slot that the last checkpoint does not need."""
        if not stored:
            return
        slot = 1 - self._durable[client] if self._durable[client] >= 0 else 0
        for name, rows in self._rows.items():
            rows[client, slot, : len(stored[name])] = stored[name].cpu().numpy()
        self._current[client] = slot

    def state_dict(self) -> dict[str, Any]:
        for rows in self._rows.values():
            rows.flush()
        self._asked = self._current.copy()
        return {"slots": torch.from_numpy(self._asked.copy())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._durable = state["slots"].numpy().copy()
        self._current = self._durable.copy()

    def checkpointed(self) -> None:
        self._durable = self._asked.copy()


def store_for(folder: Path | None, sizes: Mapping[str, int], n_clients: int, limit_gb: float) -> ClientStore:
    """In memory where everybody's rows fit into `limit_gb` gigabytes (or there is nothing to keep), else in files."""
    needed = 4e-9 * n_clients * sum(sizes.values())
    if folder is None or needed <= limit_gb:
        return MemoryStore()
    return MappedStore(folder, sizes, n_clients)
