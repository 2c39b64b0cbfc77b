"""The draws of a round as an entry of the journal's line, and back.

An entry has `other_randomness`, and a list of draws. A draw has the drawn clients in their order with their weights. It
also has the size of the pool, the number of its clients of weight zero, and the sum of its finite weights. `pool` has
the weights of all clients up to 10,000 clients, and of a sample of 1,000 above: float32 in the order of ids, NaN
outside of the pool, compressed by LZ4, in base64. It is "" in draws after the first 10,000 weights of a round. Positive
finite weights stay so: those beyond the range of float32 are clipped to it.
"""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.draw_log import Draw, DrawLog
from fedcohort.types import Ids

CODEC, DTYPE = "lz4", np.dtype(np.float32)


def encode_draws(log: DrawLog) -> dict[str, Any]:
    """Return the log as plain data."""
    draws = [
        {
            "clients": draw.clients.tolist(),
            "weights": draw.weights.tolist(),
            "n_pool": draw.n_pool,
            "n_zero": draw.n_zero,
            "total": draw.total,
            "query": draw.is_query,
            "dependent": draw.is_dependent,
            "pool": _encode_pool(draw, log.logged_ids),
        }
        for draw in log.draws
    ]
    return {"other_randomness": log.has_other_randomness, "draws": draws}


def decode_draws(entry: Mapping[str, Any], logged_ids: Ids) -> DrawLog:
    """Return the log of an entry; logged_ids: those of the log."""
    draws = []
    for fields in entry["draws"]:
        pool_weights = _decode_pool(fields["pool"], len(logged_ids))
        is_member = ~np.isnan(pool_weights)
        draw = Draw(
            clients=np.array(fields["clients"], np.int64),
            weights=np.array(fields["weights"], float),
            n_pool=fields["n_pool"],
            n_zero=fields["n_zero"],
            total=fields["total"],
            pool=logged_ids[is_member],
            pool_weights=pool_weights[is_member],
            is_query=fields["query"],
            is_dependent=fields["dependent"],
        )
        draws.append(draw)
    return DrawLog(tuple(draws), entry["other_randomness"], logged_ids)


def _encode_pool(draw: Draw, logged_ids: Ids) -> str:
    import pyarrow as pa

    if not len(draw.pool):
        return ""
    limits = np.finfo(DTYPE)
    is_finite = (draw.pool_weights > 0) & np.isfinite(draw.pool_weights)
    clipped = np.where(is_finite, np.clip(draw.pool_weights, limits.tiny, limits.max), draw.pool_weights)
    weights = np.full(len(logged_ids), np.nan, DTYPE)
    weights[np.searchsorted(logged_ids, draw.pool) if len(draw.pool) < len(logged_ids) else slice(None)] = clipped
    return base64.b64encode(pa.compress(weights, CODEC, asbytes=True)).decode()


def _decode_pool(text: str, n_logged: int) -> np.ndarray:
    import pyarrow as pa

    if not text:
        return np.full(n_logged, np.nan)
    size = n_logged * DTYPE.itemsize
    weights = np.frombuffer(pa.decompress(base64.b64decode(text), size, CODEC, asbytes=True), DTYPE)
    return weights.astype(float)
