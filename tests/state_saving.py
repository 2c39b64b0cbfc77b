"""Save and load a state through a checkpoint file, like a resumed run."""

import io
from typing import Any

import torch

from fedcohort.state import pack_state, unpack_state


def save_and_restore(state: Any) -> Any:
    """Return the state after saving it to a checkpoint and loading it."""
    file = io.BytesIO()
    torch.save(pack_state(state), file)
    file.seek(0)
    return unpack_state(torch.load(file, weights_only=True), type(state))
