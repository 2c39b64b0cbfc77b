"""Compute a checksum of loaded data: equal checksums mean equal labels, owners, attributes and inputs.

The checksum covers arrays, not files. The same data in another file have the same checksum, and pixels from another
decoder have a different one. Of inputs larger than 2^28 bytes only rows at equal distances are read, about 2^28 bytes
in total. A single damaged image among a million may therefore be missed.
"""

import hashlib
import zlib

import numpy as np

from fedcohort.dataset.base import ID_FIELDS, Raw

MAX_HASHED_BYTES = 2**28  # of inputs, which take about 0.25 s
ROWS_PER_HASH_STEP = 4096  # rows that are hashed in one step


def compute_checksum(raw_data: Raw) -> str:
    """Return the checksum of the inputs, labels, owners and attributes in `raw_data`: 16 hexadecimal digits."""
    blake2_hasher = hashlib.blake2b(digest_size=8)
    valid_x, valid_y = ((), ()) if raw_data.valid is None else ((raw_data.valid[0],), (raw_data.valid[1],))
    for x in (raw_data.train_x, raw_data.test_x, *valid_x):
        blake2_hasher.update(f"{x.shape}{x.dtype.str}".encode())
        row_step = max(1, -(-x.nbytes // MAX_HASHED_BYTES))
        checksum_of_rows = 0
        for chunk_start in range(0, len(x), ROWS_PER_HASH_STEP * row_step):
            checksum_of_rows = zlib.crc32(
                np.ascontiguousarray(x[chunk_start : chunk_start + ROWS_PER_HASH_STEP * row_step : row_step]).data,
                checksum_of_rows,
            )
        blake2_hasher.update(checksum_of_rows.to_bytes(4, "little"))
    for id_array in (raw_data.train_y, raw_data.test_y, *[getattr(raw_data, field) for field in ID_FIELDS], *valid_y):
        blake2_hasher.update(b"none" if id_array is None else np.ascontiguousarray(id_array, dtype="<i8").data)
    return blake2_hasher.hexdigest()
