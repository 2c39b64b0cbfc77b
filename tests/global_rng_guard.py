"""A guard that fails if code inside it reads or seeds a global random generator."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def global_states() -> tuple[object, bytes, list[int]]:
    """Return the states of the global generators of Python, numpy and torch."""
    numpy_key = np.random.get_state(legacy=False)["state"]["key"].tobytes()  # noqa: NPY002
    return random.getstate(), numpy_key, torch.get_rng_state().tolist()


@contextmanager
def forbid_global_rng() -> Iterator[None]:
    """Seed global generators differently at each entry, and fail if code inside changes their state."""
    saved_states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    for set_seed in (random.seed, np.random.seed, torch.manual_seed):
        set_seed(int.from_bytes(random.randbytes(3)))
    before = global_states()
    try:
        yield
        assert before == global_states(), "a global generator was used"
    finally:
        random.setstate(saved_states[0])
        np.random.set_state(saved_states[1])  # noqa: NPY002
        torch.set_rng_state(saved_states[2])
