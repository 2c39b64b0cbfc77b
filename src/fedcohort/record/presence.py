"""The available clients of a round as a short text: one bit for each client, compressed.

`"1000000:"` stands for a million clients that are all available. Otherwise the colon is followed by one bit for each
client, 1 if it is unavailable: eight bits form a byte (client 0 is the highest bit of the first), compressed by zlib,
in base64.
"""

import base64
import zlib

import numpy as np
from jaxtyping import Bool

from fedcohort.types import Ids


def encode_available(available_ids: Ids, n_clients: int) -> str:
    """Return a short text that says which clients are available, one compressed bit for each client.

    Args:
        available_ids: ids of the available clients, int64.
        n_clients: number of all clients.
    """
    if len(available_ids) == n_clients:
        return f"{n_clients}:"
    is_unavailable = np.ones(n_clients, dtype=bool)
    is_unavailable[available_ids] = False
    return f"{n_clients}:{base64.b64encode(zlib.compress(np.packbits(is_unavailable).tobytes())).decode()}"


def decode_available(available_text: str) -> Bool[np.ndarray, "clients"]:
    """Return whether each client was available, bool [n_clients]; `available_text` is from `encode_available`."""
    n_clients_text, _, packed_bits = available_text.partition(":")
    if not packed_bits:
        return np.ones(int(n_clients_text), dtype=bool)
    unavailable_bits = np.frombuffer(zlib.decompress(base64.b64decode(packed_bits)), dtype=np.uint8)
    return np.asarray(np.unpackbits(unavailable_bits, count=int(n_clients_text)) == 0)
