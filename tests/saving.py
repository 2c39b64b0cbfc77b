"""A State as a resumed run finds it: through the file of a checkpoint, which `pack` and `unpack` alone don't show."""

import io
from typing import Any

import torch

from fedcohort.state import pack, unpack


def restore(state: Any) -> Any:
    """The state after a checkpoint and a resume."""
    file = io.BytesIO()
    torch.save(pack(state), file)
    file.seek(0)
    return unpack(torch.load(file, weights_only=True), type(state))
