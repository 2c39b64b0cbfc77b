"""The data and numpy's global generator, which all components share, compared at the start and the end of a run."""

import logging

import numpy as np
import torch
from torch import Tensor

from fedcohort.data.federation import Federation
from fedcohort.errors import ComponentError

log = logging.getLogger("fedcohort")
NUMBERS_PER_CHUNK = 131_072  # numbers that are converted to int64 at a time
INTEGER_TYPE_BY_BYTES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class SharedDataState:
    """The checksums of the data in `federation` and the state of numpy's global generator at the start of a run."""

    def __init__(self, federation: Federation) -> None:
        self.bit_sums, self.generator_state = _compute_bit_sums(federation), _read_generator_state()

    def verify_data_unchanged(self, federation: Federation) -> None:
        """Raise `ComponentError` if the data in `federation` have changed; warn if numpy's generator was used."""
        if changed_tensors := [k for k, b in _compute_bit_sums(federation).items() if b != self.bit_sums[k]]:
            raise ComponentError(
                f"a component has changed the shared data ({', '.join(changed_tensors)}) during training, so that the "
                "results "
                "are wrong: look for an in-place operation on inputs or labels in the model, the objective or a signal"
            )
        if _read_generator_state() != self.generator_state:
            log.warning(
                "a component drew from numpy's global generator, so that this seed does not repeat the run: "
                "draw from the generator that the component receives (ctx.rng)"
            )


def _compute_bit_sums(federation: Federation) -> dict[str, int]:
    """Return the sum modulo 2^64 of the bits, as integers, of each tensor of samples in `federation`, by name."""
    split_names = ("train", "val", "test", "server_val", "server_test")
    tensor_by_name = {f"{s}.{k}": getattr(getattr(federation, s), k) for s in split_names for k in ("x", "y")}
    if federation.proxy is not None:
        tensor_by_name["proxy"] = federation.proxy
    return {k: _sum_tensor_bits(tensor) for k, tensor in tensor_by_name.items()}


def _sum_tensor_bits(tensor: Tensor) -> int:
    bits = tensor.detach().view(INTEGER_TYPE_BY_BYTES[tensor.element_size()])
    bits = bits.permute(sorted(range(bits.ndim), key=bits.stride, reverse=True))  # as in memory, such as channels last
    if bits.is_contiguous() and all(n * bits.element_size() % 8 == 0 for n in (bits.numel(), bits.storage_offset())):
        bits = bits.flatten().view(torch.int64)  # words of eight bytes, whose sum takes a tenth of the time
    sum_of_bits = torch.zeros((), dtype=torch.int64, device=bits.device)
    for bit_chunk in bits.split(max(1, NUMBERS_PER_CHUNK * len(bits) // max(1, bits.numel()))):
        sum_of_bits += bit_chunk.sum(dtype=torch.int64)  # torch copies what it converts
    return int(sum_of_bits)


def _read_generator_state() -> tuple[bytes, int]:
    generator_state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return generator_state["key"].tobytes(), int(generator_state["pos"])
