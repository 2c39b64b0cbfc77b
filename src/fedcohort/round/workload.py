"""The local work that a selection asks for, checked: clients, units, tensors that are sent, and advised weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.codec.base import Codec
from fedcohort.errors import FedcohortError, IncompatibleConfig
from fedcohort.flat import Layout
from fedcohort.rng import Draws
from fedcohort.round.jobs import Jobs
from fedcohort.selector.base import Selector
from fedcohort.training.upload import Kept, draw_kept, part
from fedcohort.types import Advice, Ids, Probe, ProbeResult, Selection


def verify(selection: Selection, available: Ids, cohort: int, n_clients: int, codec: Codec) -> None:
    """Raise an error for clients that are not available, or for units and uploads that are not possible."""
    chosen, units, upload = selection.clients, selection.units, selection.upload
    if not among(chosen, available):
        raise FedcohortError(f"the selector chose {chosen.tolist()}: not all of them are available")
    if len(chosen) > cohort and not selection.uncapped:
        raise FedcohortError(f"the selector chose {len(chosen)} clients where cohort={cohort}")
    if units is not None and (units.shape != (n_clients,) or (units[chosen] < 1).any()):
        raise FedcohortError("the selector's units of local work are not one number a client, of at least 1")
    if upload is None:
        return
    if upload.shape != (n_clients,) or not ((upload[chosen] > 0) & (upload[chosen] <= 1)).all():
        raise FedcohortError("the selector's shares of an update are not one number a client, in (0, 1]")
    if codec.hooks and (upload[chosen] < 1).any():
        raise IncompatibleConfig(
            "the selector leaves tensors out of updates, and the codec trains for its own upload: choose codec=none"
        )


def among(clients: Ids, available: Ids) -> bool:
    """Whether all of `clients` are in `available`, which is sorted: a search for each, whatever the population."""
    if not len(available):
        return not len(clients)
    places = np.minimum(np.searchsorted(available, clients), len(available) - 1)
    return bool((available[places] == clients).all())


def verify_advice(advice: Advice | None, selector: Selector[Any]) -> None:
    """Raise an error if the selector does not declare the kind of its advice (`absolute`, `weighs`)."""
    if advice is None:
        return
    if advice.absolute and not selector.absolute:
        raise FedcohortError("the selector's advice is absolute, and it doesn't say so (`absolute`)")
    if advice.weights is not None and not selector.weighs:
        raise FedcohortError("the selector's advice has weights, and it says that it has none (`weighs`)")


def ask_work(
    selection: Selection, units: int, layout: Layout, codec: Codec, more_bytes: int, draws: Draws, start_s: float = 0.0
) -> Jobs:
    """Return the local work that a selection asks.

    Args:
        selection: the selector's.
        units: of local work, for clients of which the selection asks nothing else.
        layout: the model's.
        codec: what encodes an update.
        more_bytes: sent with each update.
        draws: of the round, for the tensors that are left out.
        start_s: virtual second of the run's clock at which the work begins.
    """
    chosen, m = selection.clients, len(selection.clients)
    asked = np.full(m, units) if selection.units is None else selection.units[chosen]
    kept = draw_kept(selection.upload, chosen, layout, draws)
    whole = codec.bytes_up(layout)
    up = [more_bytes + (whole if k is None else _bytes(codec, layout, k)) for k in kept]
    return Jobs(
        client=chosen,
        broadcast=np.full(m, draws.round),
        plain=np.full(m, selection.plain),
        asked=asked.astype(np.int64),
        units=asked.astype(np.int64),
        start_s=np.full(m, start_s),
        kept=kept,
        bytes_up=np.array(up, dtype=np.float64),
    )


def _bytes(codec: Codec, layout: Layout, kept: Kept) -> int:
    return codec.bytes_up(part(layout, kept).layout) if kept.any() else 0


def list_queried(probes: Sequence[Probe], others: Ids | None = None) -> Ids:
    """Return the sorted ids of the clients that `probes` query, and of `others`."""
    ids = [np.empty(0, np.int64) if others is None else others, *(probe.clients for probe in probes)]
    return np.unique(np.concatenate(ids)).astype(np.int64)


def list_heard(probes: Sequence[Probe], results: Mapping[str, ProbeResult]) -> list[Probe]:
    """Return the probes with the clients that answered instead of all that were queried."""
    return [replace(probe, clients=results[probe.signal].clients) for probe in probes]


def have_answered(signal: str, clients: Ids, probes: Sequence[Probe]) -> Bool[np.ndarray, "_n"]:
    """Return which clients answer `signal` of w_t without options to one of the selector's probes, [_n].

    A concurrent probe counts as well: its answers are there before the aggregation, and the client measures them once.
    """
    return np.isin(clients, list_queried([p for p in probes if p.signal == signal and not p.options]))
