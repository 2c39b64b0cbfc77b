"""Helpers for tests of aggregators: client updates, and their collection by a run's collector without an engine."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.agg.base import Arrived
from fedcohort.data.federation import Federation, ServerSamples, Shard
from fedcohort.flat import FlatModel, Layout, TensorBlock
from fedcohort.hook import ClientContext, count_stored_floats, list_averaged_uploads
from fedcohort.rng import new_generator
from fedcohort.round.arrivals import Arrivals, replace_update_weights
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.round.server_models import RoundModels
from fedcohort.types import ClientUpdate, Population, RoundOutcome, Selection, Signals, Values

ROWS_WITH_ONE_FAR = [[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [2.0, 0.0], [100.0, 50.0]]  # updates for robust aggregators
CLIENT_CONTEXT = ClientContext(0, 0, Layout((), (), ()), lambda purpose: new_generator(0, purpose))


def make_layout(n_params: int, n_buffers: int = 0, n_counters: int = 0) -> Layout:
    buffers = (TensorBlock("frozen", (n_buffers,), 0),) if n_buffers else ()
    counters = (TensorBlock("seen", (n_counters,), 0),) if n_counters else ()
    return Layout((TensorBlock("w", (n_params,), 0),), buffers, counters)


def make_update(client: int, delta: Sequence[float], n: int = 1, **fields: Any) -> ClientUpdate:
    base = {
        "client": client,
        "n_train": n,
        "n_used": n,
        "steps": 1,
        "response": 1.0,
        "units_done": 1,
        "units_asked": 1,
        "lr": 0.1,
        "vector": torch.tensor(delta, dtype=torch.float64),
        "buffers": torch.empty(0),
        "counters": torch.empty(0, dtype=torch.int64),
        "uploads": {},
        "stored": {},
        "batch_loss": np.ones(1),
        "batch_size": np.ones(1, dtype=np.int64),
        "sample_loss": np.ones(n),
    }
    update_fields = {**base, **fields}
    vectors = [
        update_fields["vector"],
        *update_fields["uploads"].values(),
        *([update_fields["buffers"]] if len(update_fields["buffers"]) else []),
    ]
    return ClientUpdate(**{"norms": [float(torch.linalg.vector_norm(vector)) for vector in vectors], **update_fields})


def collect_updates(
    agg: Any,
    updates: Sequence[ClientUpdate],
    layout: Layout | None = None,
    moments: bool = False,
    keep_matrix: bool = False,
) -> Arrivals:
    """Collect updates in the given order; `keep_matrix` keeps their matrix even if the aggregator does not need it."""
    layout = layout or make_layout(len(updates[0].delta))
    cohort = np.array(sorted(update.client for update in updates), dtype=np.int64)
    updates_by_client = {update.client: update for update in updates}
    used_samples = np.array([updates_by_client[k].n_used for k in cohort], dtype=np.int64)
    train_sizes = np.array([updates_by_client[k].n_train for k in cohort], dtype=np.int64)
    options = CollectorOptions(
        upload_names=[name for hook in agg.hooks for name in hook.uploads],
        averaged_uploads=list_averaged_uploads(agg.hooks),
        vector_lengths=count_stored_floats(agg.hooks, layout.n_params, max(train_sizes)),
        keeps_updates=agg.stacked or keep_matrix,
        uses_second_moments=moments,
    )
    collector = Collector(layout, cohort, agg.weights(used_samples, train_sizes), options)
    for update in updates:
        collector.add_client_update(update)
    return collector.sum_over_ranks(lambda tensor: tensor, lambda tensor: tensor)


class Score(nn.Module):
    """Linear model of two classes with logits (x . w, 0) and initial weights 0."""

    def __init__(self, n_params: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(n_params, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        score = x @ self.w
        return torch.stack([score, torch.zeros_like(score)], 1)


def server_only(proxy: Tensor, val: ServerSamples) -> Federation:
    """Return a federation without clients, with the server's proxy and validation data."""
    empty_shard = Shard(val.x[:0], val.y[:0], val.y[:0], np.zeros(1, dtype=np.int64))
    counts = np.zeros((0, 2), dtype=np.int64)
    return Federation("toy", 2, empty_shard, empty_shard, empty_shard, val, val, counts, np.zeros(0), proxy=proxy)


def make_round_models(n_params: int, proxy: Tensor | None = None, network: nn.Module | None = None) -> RoundModels:
    """Return the model operations of an aggregator in round 0 of seed 0.

    The server has eight samples, of class 0 if their features sum to more than 0. The averaged buffers are
    those of w_t.
    """
    x = torch.randn(8, n_params, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    server = FlatModel(Score(n_params) if network is None else network)
    data = server_only(x if proxy is None else proxy, ServerSamples(x, (x.sum(1) < 0).long()))
    return RoundModels(server, data, 0, 0, server.buffers.clone())


def make_arrived(
    collected: Arrivals,
    signals: dict[str, Any] | None = None,
    needs: frozenset[str] = frozenset(),
    round_models: RoundModels | None = None,
) -> Arrived:
    no_clients = np.empty(0, dtype=np.int64)
    outcome = RoundOutcome(
        round=0,
        selection=Selection(collected.clients),
        clients=collected.clients,
        failed=no_clients,
        signals=Signals(signals or {}, needs, "the aggregator"),
        probes={},
        round_s=1.0,
    )
    assert collected.mean is not None
    round_models = round_models or make_round_models(len(collected.mean))
    sums = (collected.mean, collected.totals, collected.weights)
    return Arrived(outcome, *sums, collected.updates, collected.client_buffers, round_models)


def make_population(n_clients: int, **static: Any) -> Population:
    return Population(n_clients, 2, n_clients, Signals(static, frozenset(static), "the aggregator"))


def aggregate_once(agg: Any, updates: Sequence[ClientUpdate], n_clients: int = 10) -> torch.Tensor:
    """Return the direction of one aggregation from the initial state."""
    collected = collect_updates(agg, updates)
    state = agg.init(make_population(n_clients), len(updates[0].delta))
    result: torch.Tensor = agg.direction(state, make_arrived(collected))[0].displacement
    return result


def make_late(agg: Any, updates: Sequence[ClientUpdate], staleness: Sequence[int], discounts: Values) -> Arrived:
    """Return updates of which each started `staleness` server steps ago, weighed by the deadline's discounts."""
    collected = collect_updates(agg, updates, keep_matrix=True)
    weights = collected.weights * discounts
    arrived = make_arrived(replace_update_weights(collected, weights))
    outcome = replace(arrived.outcome, round=9, sent_round=9 - np.array(staleness))
    return replace(arrived, outcome=outcome, discounts=np.asarray(discounts))
