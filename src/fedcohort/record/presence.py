"""Who was there in a round, as a short text: a bit a client, compressed, and next to nothing where everybody was.

`"1000000:"` is a million clients, all of them there; after the colon stand the bits of those who were away, packed
eight to a byte (client 0 is the highest bit of the first), compressed by zlib, in base64.
"""

import base64
import zlib

import numpy as np
from jaxtyping import Bool

from fedcohort.types import Ids


def encode(available: Ids, n_clients: int) -> str:
    """Encode who was there as text; available: their ids, n_clients: K."""
    if len(available) == n_clients:
        return f"{n_clients}:"
    away = np.ones(n_clients, dtype=bool)
    away[available] = False
    return f"{n_clients}:{base64.b64encode(zlib.compress(np.packbits(away).tobytes())).decode()}"


def decode(text: str) -> Bool[np.ndarray, "clients"]:
    """Return whether each client was there, bool [n_clients]."""
    count, _, packed = text.partition(":")
    if not packed:
        return np.ones(int(count), dtype=bool)
    bits = np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype=np.uint8)
    return np.asarray(np.unpackbits(bits, count=int(count)) == 0)
