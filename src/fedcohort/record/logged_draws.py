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

POOL_CODEC, WEIGHT_DTYPE = "lz4", np.dtype(np.float32)


def encode_draws(draw_log: DrawLog) -> dict[str, Any]:
    """Return the draws of a round's selector, `draw_log`, as JSON data for the round's line in the journal."""
    draws = [
        {
            "clients": draw.clients.tolist(),
            "weights": draw.weights.tolist(),
            "n_pool": draw.pool_size,
            "n_zero": draw.n_zero_weights,
            "total": draw.weight_sum,
            "query": draw.is_query,
            "dependent": draw.is_dependent,
            "pool": _encode_pool(draw, draw_log.logged_ids),
        }
        for draw in draw_log.draws
    ]
    return {"other_randomness": draw_log.has_other_randomness, "draws": draws}


def decode_draws(journal_entry: Mapping[str, Any], logged_ids: Ids) -> DrawLog:
    """Return the draws that `encode_draws` stored.

    Args:
        journal_entry: the entry `draws` of a line of the journal.
        logged_ids: sorted ids of the clients whose weights the run logs, int64.
    """
    draws = []
    for draw_fields in journal_entry["draws"]:
        pool_weights = _decode_pool(draw_fields["pool"], len(logged_ids))
        is_in_pool = ~np.isnan(pool_weights)
        draw = Draw(
            clients=np.array(draw_fields["clients"], np.int64),
            weights=np.array(draw_fields["weights"], float),
            pool_size=draw_fields["n_pool"],
            n_zero_weights=draw_fields["n_zero"],
            weight_sum=draw_fields["total"],
            pool=logged_ids[is_in_pool],
            pool_weights=pool_weights[is_in_pool],
            is_query=draw_fields["query"],
            is_dependent=draw_fields["dependent"],
        )
        draws.append(draw)
    return DrawLog(tuple(draws), journal_entry["other_randomness"], logged_ids)


def _encode_pool(draw: Draw, logged_ids: Ids) -> str:
    import pyarrow as pa

    if not len(draw.pool):
        return ""
    float32_limits = np.finfo(WEIGHT_DTYPE)
    is_positive = (draw.pool_weights > 0) & np.isfinite(draw.pool_weights)
    float32_weights = np.where(
        is_positive, np.clip(draw.pool_weights, float32_limits.tiny, float32_limits.max), draw.pool_weights
    )
    weights = np.full(len(logged_ids), np.nan, WEIGHT_DTYPE)
    weights[np.searchsorted(logged_ids, draw.pool) if len(draw.pool) < len(logged_ids) else slice(None)] = (
        float32_weights
    )
    return base64.b64encode(pa.compress(weights, POOL_CODEC, asbytes=True)).decode()


def _decode_pool(pool_text: str, n_logged_clients: int) -> np.ndarray:
    import pyarrow as pa

    if not pool_text:
        return np.full(n_logged_clients, np.nan)
    n_bytes = n_logged_clients * WEIGHT_DTYPE.itemsize
    weights = np.frombuffer(pa.decompress(base64.b64decode(pool_text), n_bytes, POOL_CODEC, asbytes=True), WEIGHT_DTYPE)
    return weights.astype(float)
