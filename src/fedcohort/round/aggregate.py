"""Steps 8 and 9 of a round (docs/architecture.md): the selector observes, the updates are aggregated and committed."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fedcohort.agg.base import Arrived
from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.ledger import Charge
from fedcohort.process_ranks import rank_of_process
from fedcohort.round import backoff
from fedcohort.round.arrivals import Arrivals, apply_advice, fill_unsent_tensors
from fedcohort.round.components import Components, ServerState
from fedcohort.round.finish import RoundEnd
from fedcohort.round.guard import name_component_of_errors
from fedcohort.round.in_flight import Broadcast, InFlight
from fedcohort.round.norm_limit import compute_new_parameters
from fedcohort.round.privacy import count_reported_numbers
from fedcohort.round.round_signals import derive_signals, make_round_outcome
from fedcohort.round.sampling import pack_losses
from fedcohort.round.server_models import RoundModels
from fedcohort.round.settings import Settings
from fedcohort.round.store import ClientStore
from fedcohort.round.workload import verify_advice
from fedcohort.signal.access import SignalAccess
from fedcohort.types import AggregationOverride, Ids

log = logging.getLogger("fedcohort")


class ServerStep:
    """Computes the next global model and the next server state from the updates that arrived.

    Args:
        components: the components of the run.
        server: the global model.
        store: vectors that clients keep between rounds.
        federation: data of the run.
        settings: options of the rounds.
        measurer: measures signals that the server derives from updates.
        flops: FLOPs of one sample's forward pass.
    """

    def __init__(
        self,
        components: Components,
        server: FlatModel,
        store: ClientStore,
        federation: Federation,
        settings: Settings,
        measurer: SignalAccess,
        flops: float,
    ) -> None:
        self.components, self.server, self.store, self.measurer, self.flops = components, server, store, measurer, flops
        self.update_limit = settings.update_limit
        self.make_models = partial(RoundModels, server, federation, settings.seed)
        self.has_warned = False

    def finish_round(self, round_end: RoundEnd, arrivals: Arrivals, state: ServerState) -> tuple[Arrivals, ServerState]:
        """Return the updates `arrivals` with their final weights, and the server state that follows `state`.

        Without arrivals, the model, the aggregator and the server optimizer do not change. Virtual time passes, and the
        deadline observes that the clients of the round `round_end` were late.
        """
        if len(arrivals.dropped_ids):
            log.warning(
                "round %d: the updates of clients %s are not finite, or longer than update_limit allows, "
                "and were excluded: lower client.lr",
                round_end.round + 1,
                arrivals.dropped_ids.tolist(),
            )
        in_flight = self._update_in_flight(round_end, state)  # has a copy of the model before the step
        arrivals, state = self._aggregate(round_end, arrivals, state)
        return arrivals, replace(state, in_flight=in_flight)

    def _aggregate(self, round_end: RoundEnd, arrivals: Arrivals, state: ServerState) -> tuple[Arrivals, ServerState]:
        """Return the final updates, and the state after the step; its jobs in flight are those before the round.

        `arrivals` are the updates that arrived in the round `round_end`; `state` is the server's state before the step.
        """
        state = _count_round(round_end, arrivals, state)
        state.reported_numbers = state.reported_numbers + count_reported_numbers(self.components, round_end)
        for client, losses in round_end.first_losses.items():
            self._store_vectors(client, pack_losses(losses))
        if not len(round_end.selection.clients) and not len(round_end.arrived):
            return arrivals, state
        if not len(round_end.arrived) and not len(round_end.in_flight):
            self._warn_of_empty_round(round_end)
        if not round_end.selection.zero_fill:
            mask_by_client = dict(zip(round_end.arrived.client.tolist(), round_end.arrived.tensor_mask, strict=True))
            arrivals = fill_unsent_tensors(arrivals, mask_by_client, self.server.layout)
        derived_signals = derive_signals(self.components, self.measurer, arrivals, round_end.selection.plain)
        arrivals = replace(arrivals, derived_signals=derived_signals)
        passes_before = self.measurer.server_passes
        advice, state = self._observe_round(round_end, arrivals, state)
        state.spent += Charge(server_flops=self.flops * (self.measurer.server_passes - passes_before))
        weighed_updates = apply_advice(arrivals, advice)
        if weighed_updates.mean is not None:
            weighed_updates, state = self._apply_step(round_end, weighed_updates, state)
        elif arrivals.mean is not None:
            log.warning(
                "round %d: the selector excluded every update, so that the model stays the same", round_end.round + 1
            )
        samples, deadline = self.components.samples, self.components.deadline
        outcome = make_round_outcome(samples, "the sample selection", round_end, weighed_updates)
        state = replace(state, samples=samples.observe(state.samples, outcome))
        outcome = make_round_outcome(deadline, "the deadline", round_end, weighed_updates)
        return weighed_updates, replace(state, deadline=deadline.observe(state.deadline, outcome))

    def _update_in_flight(self, round_end: RoundEnd, state: ServerState) -> InFlight:
        """Return the jobs in flight after the round `round_end`, and the models that their clients received.

        `state` is the server's state before the round.
        """
        if not len(round_end.in_flight):
            return InFlight()
        sent_model = Broadcast.copy_model(self.server, self.components.agg.broadcast(state.agg))
        max_staleness = self.components.deadline.staleness_limit()
        return round_end.in_flight.keep_broadcasts(
            {**state.in_flight.broadcasts, round_end.round: sent_model}, max_staleness
        )

    def _observe_round(
        self, round_end: RoundEnd, arrivals: Arrivals, state: ServerState
    ) -> tuple[AggregationOverride | None, ServerState]:
        """Return the selector's override of the weights, None without one, and the state after its observation.

        `arrivals` are the updates that arrived in the round `round_end`; `state` is the server's state, with the
        failures of clients, before the observation.
        """
        selector = self.components.selector
        outcome = make_round_outcome(selector, "the selector", round_end, arrivals)
        advice, next_selector_state = selector.observe(state.selector, outcome)
        with name_component_of_errors(selector):
            verify_advice(advice, selector)
        failures = backoff.update_backoff(state.failures, outcome) if selector.backs_off else state.failures
        return advice, replace(state, selector=next_selector_state, failures=failures)

    def _warn_of_empty_round(self, round_end: RoundEnd) -> None:
        """Warn, once per run, that no client was in time in `round_end`, so that the model does not improve."""
        if not self.has_warned and rank_of_process() == 0:
            log.warning(
                "round %d: none of the %d selected clients was done when the round closed after %.3g virtual seconds, "
                "so that the model stays the same%s",
                round_end.round + 1,
                len(round_end.selection.clients),
                round_end.outcome.train_s,
                f" ({advice_text})"
                if (advice_text := self.components.deadline.suggest(int(round_end.outcome.units_asked.max())))
                else "",
            )
        self.has_warned = True

    def _apply_step(self, round_end: RoundEnd, arrivals: Arrivals, state: ServerState) -> tuple[Arrivals, ServerState]:
        """Apply the server's step, unless it is unsound; return the updates with final weights, and the next state.

        `arrivals` are the updates that arrived in the round `round_end`; `state` is the server's state before the step.
        """
        used_client_ids = arrivals.clients[arrivals.weights > 0]
        displacement, final_updates, next_state = self._compute_displacement(round_end, arrivals, state)
        new_parameters = compute_new_parameters(self.server, displacement, self.update_limit, round_end.round)
        if new_parameters is None:
            zero_weights = np.zeros(len(arrivals.clients))
            return replace(arrivals, weights=zero_weights, step_dropped=True), replace(state, spent=next_state.spent)
        with torch.no_grad():
            self.server.w.copy_(new_parameters)
            self.server.buffers.copy_(_require_tensor(final_updates.buffers))
            self.server.counters.copy_(_require_tensor(final_updates.counters))
        for client_id in used_client_ids.tolist():
            self._store_vectors(client_id, final_updates.stored.get(client_id, {}))
        return final_updates, next_state

    def _store_vectors(self, client: int, new_vectors: Mapping[str, Tensor]) -> None:
        """Add `new_vectors`, by name, to those that the store has of the client with id `client`."""
        if new_vectors:
            self.store.commit(client, {**self.store.get(client), **new_vectors})

    def _compute_displacement(
        self, round_end: RoundEnd, arrivals: Arrivals, state: ServerState
    ) -> tuple[Tensor, Arrivals, ServerState]:
        """Return the change of the global model, [P], the updates with final weights, and the next state.

        `arrivals` are the updates that arrived in the round `round_end`; `state` is the server's state before the step.
        """
        if round_end.selection.plain:
            return _require_tensor(arrivals.mean), arrivals, state
        outcome = make_round_outcome(self.components.agg, "the aggregator", round_end, arrivals)
        server_models = self.make_models(round_end.round, _require_tensor(arrivals.buffers))
        update_sums = (_require_tensor(arrivals.mean), arrivals.totals, arrivals.weights)
        job_rows = np.searchsorted(round_end.arrived.client, arrivals.clients)  # both are sorted
        arrived_updates = Arrived(
            *(outcome, *update_sums, arrivals.updates, arrivals.client_buffers, server_models),
            discounts=round_end.discounts[job_rows],
            end_s=round_end.arrived.end_s[job_rows],
            sent_offset=lambda sent_round: state.in_flight.broadcasts[sent_round].offset_from(self.server),
        )
        direction, agg_state = self.components.agg.direction(state.agg, arrived_updates)
        displacement, server_state = self.components.server.step(
            state.server, server_models.average_over_ranks(direction.displacement)
        )
        if direction.weights is not None:
            arrivals = replace(arrivals, weights=direction.weights)
        spent_charge = state.spent + Charge(server_flops=self.flops * server_models.passes)
        return displacement, arrivals, replace(state, agg=agg_state, server=server_state, spent=spent_charge)


def _count_round(round_end: RoundEnd, arrivals: Arrivals, state: ServerState) -> ServerState:
    """Return `state` after counting the selection, cost and uniform cohort of `round_end`, and hashing `arrivals`."""
    dispatch = round_end.dispatch
    selected_ids = round_end.selection.clients
    return replace(
        state,
        selector=dispatch.selector_state,
        spent=state.spent + round_end.charge,
        choices=extend_choices(state.choices, round_end, arrivals),
        times_selected=add_selections(state.times_selected, selected_ids),
        uniform=state.uniform.add_round(selected_ids, dispatch.ready_ids, dispatch.uniform_ids),
    )


def add_selections(times_selected: Ids, clients: Ids) -> Ids:
    """Return the counts `times_selected`, [n_clients], plus one for each of `clients`, distinct ids."""
    new_times_selected = times_selected.copy()
    new_times_selected[clients] += 1
    return new_times_selected


def _require_tensor(candidate_tensor: Tensor | None) -> Tensor:
    if candidate_tensor is None:
        raise ValueError("no client arrived, so that there is no mean of updates: report this bug of fedcohort")
    return candidate_tensor


def extend_choices(previous_hash: str, round_end: RoundEnd, arrivals: Arrivals) -> str:
    """Return the hash of `previous_hash`, the clients selected in the round `round_end`, and those in `arrivals`."""
    key_text = f"{previous_hash}/{round_end.round}/{round_end.selection.clients.tolist()}/{arrivals.clients.tolist()}"
    return hashlib.blake2b(key_text.encode(), digest_size=6).hexdigest()
