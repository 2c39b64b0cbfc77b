"""Helpers for tests of aggregators that weight by reported losses."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agg_harness import collect_updates, make_arrived, make_population, make_update
from fedcohort.agg.base import Direction
from fedcohort.types import Values

LR = 0.1


def aggregate_losses(
    agg: Any,
    reported: Sequence[float],
    deltas: Sequence[Sequence[float]] | None = None,
    *,
    clients: Sequence[int] | None = None,
    state: Any = None,
    n_clients: int | None = None,
    samples: Sequence[int] | None = None,
) -> tuple[Direction, Any]:
    """Aggregate updates of clients (0, 1, ... by default) with these reported losses; return direction and state."""
    ids = list(range(len(reported)) if clients is None else clients)
    displacements = [[float(i)] for i in range(len(ids))] if deltas is None else deltas
    sizes = [1] * len(ids) if samples is None else samples
    collected = collect_updates(
        agg, [make_update(k, d, n=n) for k, d, n in zip(ids, displacements, sizes, strict=True)]
    )
    if state is None:
        state = agg.init(make_population(n_clients or max(ids) + 1), len(displacements[0]))
    losses = np.array(reported, dtype=np.float64)
    signals = {signal: np.full(len(ids), LR) if signal == "lr" else losses for signal in agg.needs}
    direction, after = agg.direction(state, make_arrived(collected, signals, agg.needs))
    return direction, after


def loss_weights(agg: Any, reported: Sequence[float], **options: Any) -> Values:
    """Return the weight of each client in the direction."""
    direction, _ = aggregate_losses(agg, reported, **options)
    assert direction.weights is not None
    return direction.weights
