"""One aggregation by told losses, without an engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agg_harness import collect_updates, make_arrived, make_population, make_update
from fedcohort.agg.base import Direction
from fedcohort.types import Values

LR = 0.1


def aggregate_losses(
    agg: Any,
    told: Sequence[float],
    deltas: Sequence[Sequence[float]] | None = None,
    *,
    clients: Sequence[int] | None = None,
    state: Any = None,
    n_clients: int | None = None,
    samples: Sequence[int] | None = None,
) -> tuple[Direction, Any]:
    """What becomes of clients (0, 1, ... if not named) that tell these losses and send these updates."""
    ids = list(range(len(told)) if clients is None else clients)
    moved = [[float(i)] for i in range(len(ids))] if deltas is None else deltas
    owned = [1] * len(ids) if samples is None else samples
    collected = collect_updates(agg, [make_update(k, d, n=n) for k, d, n in zip(ids, moved, owned, strict=True)])
    if state is None:
        state = agg.init(make_population(n_clients or max(ids) + 1), len(moved[0]))
    losses = np.array(told, dtype=np.float64)
    signals = {word: np.full(len(ids), LR) if word == "lr" else losses for word in agg.needs}
    direction, after = agg.direction(state, make_arrived(collected, signals, agg.needs))
    return direction, after


def loss_weights(agg: Any, told: Sequence[float], **more: Any) -> Values:
    """Those that each client has in the direction."""
    direction, _ = aggregate_losses(agg, told, **more)
    assert direction.weights is not None
    return direction.weights
