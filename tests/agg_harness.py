"""Updates as the engine would gather them, for tests of aggregators: one Gatherer, no Lightning."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fedcohort.agg.base import Arrived
from fedcohort.engine.gather import Gathered, Gatherer
from fedcohort.flat import Block, Layout
from fedcohort.types import ClientUpdate, Population, RoundOutcome, Selection, Signals


def layout_of(n_params: int, n_buffers: int = 0) -> Layout:
    buffers = (Block("frozen", (n_buffers,), 0),) if n_buffers else ()
    return Layout((Block("w", (n_params,), 0),), buffers, ())


def update_of(client: int, delta: Sequence[float], n: int = 1, **fields: Any) -> ClientUpdate:
    base = {
        "client": client,
        "n_train": n,
        "n_used": n,
        "steps": 1,
        "units_done": 1,
        "units_asked": 1,
        "lr": 0.1,
        "delta": torch.tensor(delta, dtype=torch.float64),
        "buffers": torch.empty(0),
        "counters": torch.empty(0, dtype=torch.int64),
        "uploads": {},
        "stored": {},
        "batch_loss": np.ones(1),
        "batch_size": np.ones(1, dtype=np.int64),
        "sample_loss": np.ones(n),
    }
    return ClientUpdate(**{**base, **fields})


def gather(agg: Any, updates: Sequence[ClientUpdate], layout: Layout | None = None, moments: bool = False) -> Gathered:
    """Add `updates` in the order given."""
    layout = layout or layout_of(len(updates[0].delta))
    cohort = np.array(sorted(update.client for update in updates), dtype=np.int64)
    by_id = {update.client: update for update in updates}
    used = np.array([by_id[k].n_used for k in cohort], dtype=np.int64)
    owned = np.array([by_id[k].n_train for k in cohort], dtype=np.int64)
    gatherer = Gatherer(
        layout=layout,
        cohort=cohort,
        weights=agg.weights(used, owned),
        uploads=[name for hook in agg.hooks for name in hook.uploads],
        remembers=[name for hook in agg.hooks for name in hook.remembers],
        words={},
        stacked=agg.stacked,
        moments=moments,
        device=torch.device("cpu"),
        ranks=1,
    )
    for update in updates:
        gatherer.add(update)
    return gatherer.finish(lambda tensor: tensor, lambda tensor: tensor)


def arrived(gathered: Gathered, signals: dict[str, Any] | None = None, needs: frozenset[str] = frozenset()) -> Arrived:
    nobody = np.empty(0, dtype=np.int64)
    outcome = RoundOutcome(
        round=0,
        selection=Selection(gathered.clients),
        clients=gathered.clients,
        failed=nobody,
        signals=Signals(signals or {}, needs, "the aggregator"),
        probes={},
        round_s=1.0,
    )
    assert gathered.mean is not None
    return Arrived(outcome, gathered.mean, gathered.totals, gathered.weights, gathered.updates)


def population(n_clients: int, **static: Any) -> Population:
    return Population(n_clients, 2, n_clients, Signals(static, frozenset(static), "the aggregator"))


def direction(agg: Any, updates: Sequence[ClientUpdate], n_clients: int = 10) -> torch.Tensor:
    """One aggregation from a fresh state."""
    gathered = gather(agg, updates)
    state = agg.init(population(n_clients), len(updates[0].delta))
    result: torch.Tensor = agg.direction(state, arrived(gathered))[0]
    return result
