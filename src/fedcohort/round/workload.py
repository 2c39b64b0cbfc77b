"""The local work that a selection assigns, with checks of its clients, units, tensors to send and advised weights."""

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
from fedcohort.signal.base import find_signal
from fedcohort.training.upload import draw_tensor_masks, make_sent_layout
from fedcohort.types import AggregationOverride, Ids, Probe, ProbeResult, RoundContext, Selection


def verify_selection(selection: Selection, ctx: RoundContext, codec: Codec, carries_late_jobs: bool) -> None:
    """Raise an error if a selection is invalid.

    Args:
        selection: the selector's choice.
        ctx: the context that the selector received.
        codec: encodes updates; a codec with hooks does not support partial updates.
        carries_late_jobs: whether updates of earlier rounds arrive in the round (`Deadline.carries`).

    Raises:
        FedcohortError: clients are not available, or units or shares of updates are out of range.
        IncompatibleConfig: the codec does not support partial updates, or the deadline no rounds of FedAvg.
    """
    K, chosen_ids, work_units, upload_probabilities = (
        ctx.n_clients,
        selection.clients,
        selection.units,
        selection.upload,
    )
    if not are_all_available(chosen_ids, ctx.available):
        raise FedcohortError(
            f"the selector chose clients {chosen_ids.tolist()}, but not all of them are available: use ctx.available"
        )
    if len(chosen_ids) > ctx.cohort and not selection.uncapped:
        raise FedcohortError(
            f"the selector chose {len(chosen_ids)} clients, but cohort={ctx.cohort}: choose ctx.cohort clients at most"
        )
    if selection.plain and carries_late_jobs:
        raise IncompatibleConfig(
            "the selector asks for a round of FedAvg (plain=True), but late updates arrive in other rounds: "
            "choose deadline=wait_for_all, or deadline=fixed with deadline.late_updates=drop"
        )
    if work_units is not None and (work_units.shape != (K,) or (work_units[chosen_ids] < 1).any()):
        raise FedcohortError(
            f"the selector's units of local work must be one integer >= 1 for each of the {K} clients, got "
            f"{work_units!r}"
        )
    if upload_probabilities is None:
        return
    chosen_probabilities = upload_probabilities[chosen_ids] if upload_probabilities.shape == (K,) else np.zeros(1)
    if not ((chosen_probabilities > 0) & (chosen_probabilities <= 1)).all():
        raise FedcohortError(
            f"the selector's upload probabilities must be numbers in (0, 1] for each of the {K} clients, got "
            f"{upload_probabilities!r}"
        )
    if codec.hooks and (chosen_probabilities < 1).any():
        raise IncompatibleConfig(
            "the selector excludes tensors from updates, but the codec already restricts training: choose codec=none"
        )


def are_all_available(clients: Ids, available_ids: Ids) -> bool:
    """Return whether all of `clients` are in the sorted ids `available_ids`, by binary search."""
    if not len(available_ids):
        return not len(clients)
    positions_in_available = np.minimum(np.searchsorted(available_ids, clients), len(available_ids) - 1)
    return bool((available_ids[positions_in_available] == clients).all())


def verify_weight_override(weight_override: AggregationOverride | None, selector: Selector[Any]) -> None:
    """Raise `FedcohortError` if `selector` does not declare what `weight_override` has (`absolute`, `weighs`)."""
    if weight_override is None:
        return
    if weight_override.absolute and not selector.absolute:
        raise FedcohortError("the selector returns absolute weights: declare `absolute = True` in its class")
    if weight_override.weights is not None and not selector.weighs:
        raise FedcohortError("the selector returns weights: declare `weighs = True` in its class")


def make_untimed_jobs(
    selection: Selection, units: int, layout: Layout, codec: Codec, extra_bytes: int, draws: Draws, start_s: float = 0.0
) -> Jobs:
    """Return the jobs of the selected clients, with local work and upload size but without virtual times.

    Args:
        selection: the selector's choice.
        units: units of local work (epochs or steps) of each client, unless the selection states others.
        layout: positions of the model's tensors in its flat vector.
        codec: encodes updates.
        extra_bytes: bytes that each client sends in addition to its update.
        draws: random numbers of the round, for the tensors that are not sent.
        start_s: virtual second at which the work begins.
    """
    chosen_ids, n_chosen_clients = selection.clients, len(selection.clients)
    assigned_units = np.full(n_chosen_clients, units) if selection.units is None else selection.units[chosen_ids]
    tensor_masks = draw_tensor_masks(selection.upload, chosen_ids, layout, draws)
    update_bytes = np.full(n_chosen_clients, float(codec.bytes_up(layout)))
    for job_row, tensor_mask in enumerate(tensor_masks):
        if tensor_mask is not None:
            update_bytes[job_row] = codec.bytes_up(make_sent_layout(layout, tensor_mask)) if tensor_mask.any() else 0.0
    return Jobs(
        client=chosen_ids,
        broadcast=np.full(n_chosen_clients, draws.round),
        plain=np.full(n_chosen_clients, selection.plain),
        assigned=assigned_units.astype(np.int64),
        units=assigned_units.astype(np.int64),
        start_s=np.full(n_chosen_clients, start_s),
        tensor_mask=tensor_masks,
        zero_fill=np.full(n_chosen_clients, selection.zero_fill),
        bytes_up=extra_bytes + update_bytes,
    )


def list_queried_clients(probes: Sequence[Probe], clients: Ids | None = None) -> Ids:
    """Return the sorted ids, int64 [n], of the clients that `probes` query, and of `clients`."""
    client_id_arrays = [np.empty(0, np.int64) if clients is None else clients, *(probe.clients for probe in probes)]
    return np.unique(np.concatenate(client_id_arrays)).astype(np.int64)


def drop_unanswered_clients(probes: Sequence[Probe], answers: Mapping[str, ProbeResult]) -> list[Probe]:
    """Return the `probes` (queries to clients), each with only those of its clients that have `answers`."""
    return [replace(probe, clients=answers[probe.signal].clients) for probe in probes]


def mark_trained_clients(clients: Ids, answered_probes: Sequence[Probe]) -> Bool[np.ndarray, "_n"]:
    """Return which clients have trained for a query and answered it, bool [len(clients)].

    Args:
        clients: ids of the clients.
        answered_probes: the queries, each with the clients that answered; `signal.base.Computed.trains` marks training.
    """
    training_probes = [p for p in answered_probes if getattr(find_signal(p.signal), "trains", False)]
    return np.isin(clients, list_queried_clients(training_probes))


def mark_answering_clients(signal_name: str, clients: Ids, probes: Sequence[Probe]) -> Bool[np.ndarray, "_n"]:
    """Return which clients answer one of the selector's queries for a signal without options, bool [len(clients)].

    This includes concurrent queries: their answers arrive before the aggregation, and a client measures a signal once.

    Args:
        signal_name: name of the signal.
        clients: ids of the clients.
        probes: the selector's queries.
    """
    return np.isin(clients, list_queried_clients([p for p in probes if p.signal == signal_name and not p.options]))
