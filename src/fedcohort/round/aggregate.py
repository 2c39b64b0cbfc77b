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
from fedcohort.ranks import rank_of_process
from fedcohort.round import backoff
from fedcohort.round.collected import Collected, apply_advice, fill_unsent
from fedcohort.round.components import Components, ServerState
from fedcohort.round.finish import Finished
from fedcohort.round.guard import name_component_of_errors
from fedcohort.round.in_flight import Broadcast, InFlight
from fedcohort.round.privacy import count_reported
from fedcohort.round.readings import derive_signals, outcome_for
from fedcohort.round.sampling import pack_losses
from fedcohort.round.server_models import RoundModels
from fedcohort.round.settings import Settings
from fedcohort.round.store import ClientStore
from fedcohort.round.workload import verify_advice
from fedcohort.signal.access import SignalAccess
from fedcohort.types import AggregationOverride, Ids

log = logging.getLogger("fedcohort")


def longest_update(server: FlatModel, update_limit: float) -> float:
    """Return the largest norm of an update and of the server's step: `update_limit` times (1 + the model's norm)."""
    return update_limit * (1.0 + float(torch.linalg.vector_norm(server.w)))


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

    def close(self, finished: Finished, collected: Collected, state: ServerState) -> tuple[Collected, ServerState]:
        """Return the collected updates with their final weights, and the next state.

        A round without arrivals does not change the model, the aggregator and the server optimizer. Virtual time
        passes, and the deadline observes that clients were late.
        """
        if len(collected.dropped_ids):
            log.warning(
                "round %d: the updates of clients %s are not finite, or longer than update_limit allows, "
                "and were excluded",
                finished.round + 1,
                collected.dropped_ids.tolist(),
            )
        in_flight = self._next_in_flight(finished, state)  # has a copy of the model before the step
        collected, state = self._aggregate(finished, collected, state)
        return collected, replace(state, in_flight=in_flight)

    def _aggregate(self, finished: Finished, collected: Collected, state: ServerState) -> tuple[Collected, ServerState]:
        """Return the final updates and the state after the server's step, with the jobs in flight before the round."""
        state = _count_round(finished, collected, state)
        state.reported_numbers = state.reported_numbers + count_reported(self.components, finished)
        for client, losses in finished.first_losses.items():
            self._store_vectors(client, pack_losses(losses))
        if not len(finished.selection.clients) and not len(finished.arrived):
            return collected, state
        if not len(finished.arrived) and not len(finished.in_flight):
            self._warn_of_empty_round(finished)
        if not finished.selection.zero_fill:
            mask_by_client = dict(zip(finished.arrived.client.tolist(), finished.arrived.tensor_mask, strict=True))
            collected = fill_unsent(collected, mask_by_client, self.server.layout)
        derived_signals = derive_signals(self.components, self.measurer, collected, finished.selection.plain)
        collected = replace(collected, derived_signals=derived_signals)
        passes_before = self.measurer.server_passes
        advice, state = self._observe(finished, collected, state)
        state.spent += Charge(server_flops=self.flops * (self.measurer.server_passes - passes_before))
        weighed_updates = apply_advice(collected, advice)
        if weighed_updates.mean is not None:
            weighed_updates, state = self._apply_step(finished, weighed_updates, state)
        elif collected.mean is not None:
            log.warning(
                "round %d: the selector excluded every update, so that the model stays the same", finished.round + 1
            )
        samples, deadline = self.components.samples, self.components.deadline
        outcome = outcome_for(samples, "the sample selection", finished, weighed_updates)
        state = replace(state, samples=samples.observe(state.samples, outcome))
        outcome = outcome_for(deadline, "the deadline", finished, weighed_updates)
        return weighed_updates, replace(state, deadline=deadline.observe(state.deadline, outcome))

    def _next_in_flight(self, finished: Finished, state: ServerState) -> InFlight:
        """Return the jobs that are in flight after the round, and the models that their clients received."""
        if not len(finished.in_flight):
            return InFlight()
        sent_now = Broadcast.copy_of(self.server, self.components.agg.broadcast(state.agg))
        limit = self.components.deadline.staleness_limit()
        return finished.in_flight.keep_broadcasts({**state.in_flight.broadcasts, finished.round: sent_now}, limit)

    def _observe(
        self, finished: Finished, collected: Collected, state: ServerState
    ) -> tuple[AggregationOverride | None, ServerState]:
        """Return the selector's advice and the state after its observation, with failures counted for back-off."""
        selector = self.components.selector
        outcome = outcome_for(selector, "the selector", finished, collected)
        advice, next_selector_state = selector.observe(state.selector, outcome)
        with name_component_of_errors(selector):
            verify_advice(advice, selector)
        failures = backoff.update_backoff(state.failures, outcome) if selector.backs_off else state.failures
        return advice, replace(state, selector=next_selector_state, failures=failures)

    def _warn_of_empty_round(self, finished: Finished) -> None:
        """Warn, once per run, that no client was in time, so that the model does not improve."""
        if not self.has_warned and rank_of_process() == 0:
            log.warning(
                "round %d: none of the %d selected clients was done when the round closed after %.3g virtual seconds, "
                "so that the model stays the same%s",
                finished.round + 1,
                len(finished.selection.clients),
                finished.closing.train_s,
                f" ({advice})"
                if (advice := self.components.deadline.suggest(int(finished.closing.units_asked.max())))
                else "",
            )
        self.has_warned = True

    def _apply_step(
        self, finished: Finished, collected: Collected, state: ServerState
    ) -> tuple[Collected, ServerState]:
        """Apply the server's step, unless it is unsound: update the model, the states and the clients' vectors."""
        used_client_ids = collected.clients[collected.weights > 0]
        displacement, final_updates, next_state = self._displacement(finished, collected, state)
        parameters = self._sound_parameters(finished, displacement)
        if parameters is None:
            zero_weights = np.zeros(len(collected.clients))
            return replace(collected, weights=zero_weights, step_dropped=True), replace(state, spent=next_state.spent)
        with torch.no_grad():
            self.server.w.copy_(parameters)
            self.server.buffers.copy_(_require_tensor(final_updates.buffers))
            self.server.counters.copy_(_require_tensor(final_updates.counters))
        for client in used_client_ids.tolist():
            self._store_vectors(client, final_updates.stored.get(client, {}))
        return final_updates, next_state

    def _store_vectors(self, client: int, stored: Mapping[str, Tensor]) -> None:
        """Add vectors to those that the store has of a client."""
        if stored:
            self.store.commit(client, {**self.store.get(client), **stored})

    @torch.no_grad()
    def _sound_parameters(self, finished: Finished, displacement: Tensor) -> Tensor | None:
        """Return the parameters after the server's step, in the model's precision; None if the step is unsound."""
        max_length = longest_update(self.server, self.update_limit)
        parameters = (self.server.w.double() + displacement).to(self.server.w.dtype)
        step_norm = torch.linalg.vector_norm(displacement).double()
        step_length, is_finite = torch.stack([step_norm, torch.isfinite(parameters).all().double()]).tolist()
        if step_length <= max_length and is_finite:
            return parameters
        log.warning(
            "round %d: the server's step is not finite, or longer than update_limit allows (%.3g, the limit is %.3g), "
            "and was excluded, so that the model stays the same: lower server.lr",
            finished.round + 1,
            step_length,
            max_length,
        )
        return None

    def _displacement(
        self, finished: Finished, collected: Collected, state: ServerState
    ) -> tuple[Tensor, Collected, ServerState]:
        """Return the change of the global model [P], the updates with their final weights, and the next state."""
        if finished.selection.plain:
            return _require_tensor(collected.mean), collected, state
        outcome = outcome_for(self.components.agg, "the aggregator", finished, collected)
        server_models = self.make_models(finished.round, _require_tensor(collected.buffers))
        sums = (_require_tensor(collected.mean), collected.totals, collected.weights)
        rows = np.searchsorted(finished.arrived.client, collected.clients)  # both are sorted
        arrived = Arrived(
            *(outcome, *sums, collected.updates, collected.client_buffers, server_models),
            discounts=finished.discounts[rows],
            end_s=finished.arrived.end_s[rows],
            sent_offset=lambda sent_round: state.in_flight.broadcasts[sent_round].offset_from(self.server),
        )
        direction, agg_state = self.components.agg.direction(state.agg, arrived)
        displacement, server_state = self.components.server.step(
            state.server, server_models.average_over_ranks(direction.displacement)
        )
        if direction.weights is not None:
            collected = replace(collected, weights=direction.weights)
        spent_charge = state.spent + Charge(server_flops=self.flops * server_models.passes)
        return displacement, collected, replace(state, agg=agg_state, server=server_state, spent=spent_charge)


def _count_round(finished: Finished, collected: Collected, state: ServerState) -> ServerState:
    """Return the state after counting the round's selection, cost and uniform reference cohort."""
    dispatched = finished.dispatched
    clients = finished.selection.clients
    return replace(
        state,
        selector=dispatched.selector_state,
        spent=state.spent + finished.charge,
        choices=extend_choices(state.choices, finished, collected),
        times_selected=add_selections(state.times_selected, clients),
        uniform=state.uniform.with_round(clients, dispatched.ready, dispatched.uniform),
    )


def add_selections(times_selected: Ids, clients: Ids) -> Ids:
    """Return `times_selected` [n_clients] with one more for each of `clients`, which are distinct ids."""
    new_times_selected = times_selected.copy()
    new_times_selected[clients] += 1
    return new_times_selected


def _require_tensor(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise ValueError("no client arrived")
    return tensor


def extend_choices(previous_hash: str, finished: Finished, collected: Collected) -> str:
    """Extend the running hash of the clients that were selected and that arrived by this round."""
    hashed_text = f"{previous_hash}/{finished.round}/{finished.selection.clients.tolist()}/{collected.clients.tolist()}"
    return hashlib.blake2b(hashed_text.encode(), digest_size=6).hexdigest()
