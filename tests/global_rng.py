"""No part reads or sets a global generator: what is drawn from them is the same before and after."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def state() -> tuple[object, bytes, list[int]]:
    """Of Python's generator, of numpy's and of torch's."""
    numpys = np.random.get_state(legacy=False)["state"]["key"].tobytes()  # noqa: NPY002
    return random.getstate(), numpys, torch.get_rng_state().tolist()


@contextmanager
def guard() -> Iterator[None]:
    """Inside, global generators must neither move nor matter: they are seeded differently at each entry."""
    saved = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    for set_seed in (random.seed, np.random.seed, torch.manual_seed):
        set_seed(int.from_bytes(random.randbytes(3)))
    before = state()
    try:
        yield
        assert before == state(), "a global generator was used"
    finally:
        random.setstate(saved[0])
        np.random.set_state(saved[1])  # noqa: NPY002
        torch.set_rng_state(saved[2])
