"""What all parts share in a process, compared at the start and at the end of a run: the data, and numpy's generator."""

import logging

import numpy as np
import torch
from torch import Tensor

from fedcohort.data.federation import Federation
from fedcohort.errors import ComponentError

log = logging.getLogger("fedcohort")
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # integers by their number of bytes


class Shared:
    """The data and the global generator as they are when a run starts."""

    def __init__(self, federation: Federation) -> None:
        self.sums, self.generator = _sums(federation), _generator()

    def verify(self, federation: Federation) -> None:
        """Raise `ComponentError` where a part has written into the data; warn where one drew from numpy's generator."""
        if changed := [name for name, total in _sums(federation).items() if total != self.sums[name]]:
            raise ComponentError(
                f"a part of the run has changed the shared data ({', '.join(changed)}) in training, and the results "
                "are wrong: look for an operation in place on inputs or labels in the model, the objective or a signal"
            )
        if _generator() != self.generator:
            log.warning(
                "a part of the run drew from numpy's global generator, so this seed does not repeat the run: "
                "draw from the generator that the part is given (ctx.rng)"
            )


def _sums(federation: Federation) -> dict[str, int]:
    """Return the sum of the bits of each tensor of samples, by name; it does not depend on the order of the sum."""
    parts = ("train", "val", "test", "server_val", "server_test")
    tensors = {f"{part}.{name}": getattr(getattr(federation, part), name) for part in parts for name in ("x", "y")}
    if federation.proxy is not None:
        tensors["proxy"] = federation.proxy
    return {name: _sum_bits(tensor) for name, tensor in tensors.items()}


def _sum_bits(tensor: Tensor) -> int:
    return int(tensor.detach().view(BITS[tensor.element_size()]).sum(dtype=torch.int64))


def _generator() -> tuple[bytes, int]:
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return state["key"].tobytes(), int(state["pos"])
