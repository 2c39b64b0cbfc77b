"""What clients keep between rounds (SCAFFOLD's c_i), committed only when the server has acknowledged them.

A client that was never committed has nothing stored: a population costs memory as it is seen.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor


class ClientStore:
    def __init__(self) -> None:
        self._kept: dict[int, dict[str, Tensor]] = {}

    def get(self, client: int) -> Mapping[str, Tensor]:
        """What the client kept, {} at first."""
        return self._kept.get(client, {})

    def commit(self, client: int, stored: Mapping[str, Tensor]) -> None:
        if stored:
            self._kept[client] = dict(stored)

    def state_dict(self) -> dict[str, Any]:
        return {str(client): dict(kept) for client, kept in sorted(self._kept.items())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept = {int(client): dict(kept) for client, kept in state.items()}
