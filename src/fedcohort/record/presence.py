"""The available clients of a round as a short text: one bit for each client, compressed.

`"1000000:"` stands for a million clients that are all available. Otherwise the colon is followed by one bit for each
client, 1 if it is unavailable: eight bits form a byte (client 0 is the highest bit of the first), compressed by zlib,
in base64.
"""

import base64
import zlib

import numpy as np
from jaxtyping import Bool


def encode_available(is_available: Bool[np.ndarray, "clients"]) -> str:
    """Return a short text that says which clients are available, one compressed bit for each client.

    `is_available` says of each client whether it is available, [n_clients].
    """
    packed_bits = b"" if is_available.all() else zlib.compress(np.packbits(~is_available).tobytes())
    return f"{len(is_available)}:{base64.b64encode(packed_bits).decode()}"


def decode_available(available_text: str) -> Bool[np.ndarray, "clients"]:
    """Return whether each client was available, bool [n_clients]; `available_text` is from `encode_available`."""
    n_clients_text, _, packed_bits = available_text.partition(":")
    if not packed_bits:
        return np.ones(int(n_clients_text), dtype=bool)
    unavailable_bits = np.frombuffer(zlib.decompress(base64.b64decode(packed_bits)), dtype=np.uint8)
    return np.asarray(np.unpackbits(unavailable_bits, count=int(n_clients_text)) == 0)
