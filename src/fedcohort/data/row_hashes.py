"""Hashes of samples, by which equal samples are recognised without keeping a copy of them."""

import hashlib

import numpy as np
from jaxtyping import Shaped, UInt64


def hash_rows(x: Shaped[np.ndarray, "n *shape"]) -> UInt64[np.ndarray, "n"]:
    """Return a hash of the bytes of each row of the array `x`.

    Among a million different rows, two have the same hash with a probability below 10^-7.
    """
    return np.frombuffer(b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in x), dtype=np.uint64)
