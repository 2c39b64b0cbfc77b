"""Compute a checksum of loaded data: equal checksums mean equal labels, owners, attributes and inputs.

The checksum covers arrays, not files. The same data in another file have the same checksum, and pixels from another
decoder have a different one. Of inputs larger than 2^28 bytes only rows at equal distances are read, about 2^28 bytes
in total. A single damaged image among a million may therefore be missed.
"""

import hashlib
import zlib

import numpy as np

from fedcohort.dataset.base import Raw

MAX_BYTES = 2**28  # of inputs, which take about 0.25 s
ROWS_PER_STEP = 4096  # rows that are hashed in one step


def checksum_of(raw: Raw) -> str:
    """Return the checksum as 16 hexadecimal digits."""
    total = hashlib.blake2b(digest_size=8)
    valid_x, valid_y = ((), ()) if raw.valid is None else ((raw.valid[0],), (raw.valid[1],))
    for x in (raw.train_x, raw.test_x, *valid_x):
        total.update(f"{x.shape}{x.dtype.str}".encode())
        step = max(1, -(-x.nbytes // MAX_BYTES))
        crc = 0
        for start in range(0, len(x), ROWS_PER_STEP * step):
            crc = zlib.crc32(np.ascontiguousarray(x[start : start + ROWS_PER_STEP * step : step]).data, crc)
        total.update(crc.to_bytes(4, "little"))
    label_arrays = (raw.train_y, raw.test_y, raw.train_owner, raw.test_owner, raw.train_attribute, raw.test_attribute)
    for ids in (*label_arrays, *valid_y):
        total.update(b"none" if ids is None else np.ascontiguousarray(ids, dtype="<i8").data)
    return total.hexdigest()
