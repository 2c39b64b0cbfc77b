"""A checksum of data as they were loaded: equal ones mean equal labels, owners, attributes and inputs.

It is of arrays, not of files, so that the same data in another file have the same one, and another decoder's pixels
another. Of inputs that take more than 2^28 bytes, rows at equal distances are read, about so many bytes of them: a
single damaged image among a million may go unnoticed.
"""

import hashlib
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fedcohort.dataset.base import Raw

MOST = 2**28  # bytes of inputs, a quarter of a second's work
ROWS = 4096  # at a time


def checksum_of(raw: "Raw") -> str:
    """16 hexadecimal digits."""
    total = hashlib.blake2b(digest_size=8)
    valid_x, valid_y = ((), ()) if raw.valid is None else ((raw.valid[0],), (raw.valid[1],))
    for x in (raw.train_x, raw.test_x, *valid_x):
        total.update(f"{x.shape}{x.dtype.str}".encode())
        step = max(1, -(-x.nbytes // MOST))
        crc = 0
        for start in range(0, len(x), ROWS * step):
            crc = zlib.crc32(np.ascontiguousarray(x[start : start + ROWS * step : step]).data, crc)
        total.update(crc.to_bytes(4, "little"))
    parts = (raw.train_y, raw.test_y, raw.train_owner, raw.test_owner, raw.train_attribute, raw.test_attribute)
    for ids in (*parts, *valid_y):
        total.update(b"none" if ids is None else np.ascontiguousarray(ids, dtype="<i8").data)
    return total.hexdigest()
