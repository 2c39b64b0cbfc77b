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
from fedcohort.round.arrivals import Arrivals, apply_weight_override, fill_unsent_tensors
from fedcohort.round.components import Components, ServerState
from fedcohort.round.finish import ClosedRound
from fedcohort.round.guard import prefix_errors_with_component
from fedcohort.round.in_flight import Broadcast, JobsInFlight
from fedcohort.round.norm_limit import compute_new_parameters
from fedcohort.round.privacy import count_reported_numbers
from fedcohort.round.round_signals import compute_update_signals, make_round_outcome
from fedcohort.round.sampling import pack_losses
from fedcohort.round.server_models import RoundModels
from fedcohort.round.settings import Settings
from fedcohort.round.store import ClientStore
from fedcohort.round.workload import verify_weight_override
from fedcohort.signal.access import SignalAccess
from fedcohort.types import AggregationOverride, Ids

log = logging.getLogger("fedcohort")
UpdatesAndState = tuple[Arrivals, ServerState]


class ServerStep:
    """Computes the next global model and the next server state from the updates that arrived.

    Args:
        components: the components of the run.
        global_model: the global model.
        client_store: vectors that clients keep between rounds.
        federation: data of the run.
        settings: options of the rounds.
        signal_measurer: measures signals that the server derives from updates.
        pass_flops: FLOPs of one sample's forward pass.
    """

    def __init__(
        self,
        components: Components,
        global_model: FlatModel,
        client_store: ClientStore,
        federation: Federation,
        settings: Settings,
        signal_measurer: SignalAccess,
        pass_flops: float,
    ) -> None:
        self.components, self.server, self.store = components, global_model, client_store
        self.measurer, self.pass_flops, self.update_limit = signal_measurer, pass_flops, settings.update_limit
        self.make_models = partial(RoundModels, global_model, federation, settings.seed)
        self.memory_limit_gb, self.has_warned = settings.store_limit_gb, False

    def finish_round(self, closed_round: ClosedRound, arrivals: Arrivals, state: ServerState) -> UpdatesAndState:
        """Return the updates `arrivals` with their final weights, and the server state that follows `state`.

        Without arrivals, the model, the aggregator and the server optimizer do not change. Virtual time passes, and the
        deadline observes that the clients of the round `closed_round` were late.
        """
        if len(arrivals.dropped_ids):
            log.warning(
                "round %d: the updates of clients %s are not finite, or longer than update_limit allows, "
                "and were excluded: lower client.lr",
                closed_round.round + 1,
                arrivals.dropped_ids.tolist(),
            )
        jobs_in_flight = self._update_jobs_in_flight(closed_round, state)  # has a copy of the model before the step
        arrivals, state = self._aggregate(closed_round, arrivals, state)
        return arrivals, replace(state, in_flight=jobs_in_flight)

    def _aggregate(self, closed_round: ClosedRound, arrivals: Arrivals, state: ServerState) -> UpdatesAndState:
        """Return the updates with final weights, and the server's state after its step.

        `arrivals` are the updates that arrived in the round `closed_round`; `state` is the server's state before the
        step. The jobs in flight in the result are still those before the round.
        """
        state = _add_round_to_state(closed_round, arrivals, state)
        state.reported_numbers = state.reported_numbers + count_reported_numbers(self.components, closed_round)
        for client, sample_losses in closed_round.initial_losses.items():
            self._store_client_vectors(client, pack_losses(sample_losses))
        jobs, selected_ids = closed_round.arrived_jobs, closed_round.selection.clients
        if not len(selected_ids) and not len(jobs) and not len(closed_round.dropped_jobs):
            return arrivals, state
        if len(selected_ids) and not len(jobs) and not len(closed_round.jobs_in_flight):
            self._warn_of_empty_round(closed_round)
        averaged_masks = [None if z else m for z, m in zip(jobs.zero_fill, jobs.tensor_mask, strict=True)]
        tensor_masks = dict(zip(jobs.client.tolist(), averaged_masks, strict=True))
        arrivals = fill_unsent_tensors(arrivals, tensor_masks, self.server.layout)
        derived_signals = compute_update_signals(self.components, self.measurer, arrivals, closed_round.selection.plain)
        arrivals = replace(arrivals, derived_signals=derived_signals)
        server_passes_before = self.measurer.server_passes
        weight_override, state = self._let_selector_observe(closed_round, arrivals, state)
        state.spent += Charge(server_flops=self.pass_flops * (self.measurer.server_passes - server_passes_before))
        weighted_updates = apply_weight_override(arrivals, weight_override)
        if weighted_updates.mean is not None:
            weighted_updates, state = self._apply_server_step(closed_round, weighted_updates, state)
        elif arrivals.mean is not None:
            log.warning(
                "round %d: the selector excluded every update, so that the model stays the same", closed_round.round + 1
            )
        sample_selection, deadline = self.components.samples, self.components.deadline
        outcome = make_round_outcome(sample_selection, "the sample selection", closed_round, weighted_updates)
        state = replace(state, samples=sample_selection.observe(state.samples, outcome))
        outcome = make_round_outcome(deadline, "the deadline", closed_round, weighted_updates)
        return weighted_updates, replace(state, deadline=deadline.observe(state.deadline, outcome))

    def _update_jobs_in_flight(self, closed_round: ClosedRound, state: ServerState) -> JobsInFlight:
        """Return the jobs in flight after the round `closed_round`, and the models that their clients received.

        `state` is the server's state before the round.
        """
        if not len(closed_round.jobs_in_flight):
            return JobsInFlight()
        threshold = self.components.samples.sent_threshold(state.samples)
        sent_model = Broadcast.copy_model(self.server, self.components.agg.broadcast(state.agg), threshold)
        sent_models = {**state.in_flight.broadcasts, closed_round.round: sent_model}
        jobs = closed_round.jobs_in_flight.keep_broadcasts(sent_models, self.components.deadline.staleness_limit())
        return jobs.limit_memory(self.memory_limit_gb, self.store.folder)

    def _let_selector_observe(
        self, closed_round: ClosedRound, arrivals: Arrivals, state: ServerState
    ) -> tuple[AggregationOverride | None, ServerState]:
        """Return the selector's override of the weights, None without one, and the state after it observed the round.

        `arrivals` are the updates that arrived in the round `closed_round`; `state` is the server's state, with the
        failures of clients, before the observation.
        """
        selector = self.components.selector
        outcome = make_round_outcome(selector, "the selector", closed_round, arrivals)
        weight_override, next_selector_state = selector.observe(state.selector, outcome)
        with prefix_errors_with_component(selector):
            verify_weight_override(weight_override, selector)
        client_failures = backoff.update_backoff(state.failures, outcome) if selector.backs_off else state.failures
        return weight_override, replace(state, selector=next_selector_state, failures=client_failures)

    def _warn_of_empty_round(self, closed_round: ClosedRound) -> None:
        """Warn, once per run, that no client was in time in `closed_round`, so that the model does not improve."""
        if not self.has_warned and rank_of_process() == 0:
            log.warning(
                "round %d: none of the %d selected clients was done when the round closed after %.3g virtual seconds, "
                "so that the model stays the same%s",
                closed_round.round + 1,
                len(closed_round.selection.clients),
                closed_round.outcome.train_s,
                f" ({suggestion_text})"
                if (suggestion_text := self.components.deadline.suggest(int(closed_round.outcome.units_asked.max())))
                else "",
            )
        self.has_warned = True

    def _apply_server_step(self, closed_round: ClosedRound, arrivals: Arrivals, state: ServerState) -> UpdatesAndState:
        """Apply the server's step if it is finite and within `update_limit`; return the final updates and next state.

        `arrivals` are the updates that arrived in the round `closed_round`; `state` is the server's state before the
        step.
        """
        used_client_ids = arrivals.clients[arrivals.weights > 0]
        displacement, final_updates, next_state = self._compute_model_displacement(closed_round, arrivals, state)
        new_parameters = compute_new_parameters(self.server, displacement, self.update_limit, closed_round.round)
        if new_parameters is None:
            zero_weights = np.zeros(len(arrivals.clients))
            return replace(arrivals, weights=zero_weights, is_step_dropped=True), replace(state, spent=next_state.spent)
        with torch.no_grad():
            self.server.w.copy_(new_parameters)
            self.server.buffers.copy_(_require_arrived_tensor(final_updates.buffers))
            self.server.counters.copy_(_require_arrived_tensor(final_updates.counters))
        for client_id in used_client_ids.tolist():
            self._store_client_vectors(client_id, final_updates.stored.get(client_id, {}))
        return final_updates, next_state

    def _store_client_vectors(self, client: int, new_vectors: Mapping[str, Tensor]) -> None:
        """Store `new_vectors`, by name, for the client with id `client`, next to its other stored vectors."""
        if new_vectors:
            self.store.write_client_vectors(client, {**self.store.read_vectors(client), **new_vectors})

    def _compute_model_displacement(
        self, closed_round: ClosedRound, arrivals: Arrivals, state: ServerState
    ) -> tuple[Tensor, Arrivals, ServerState]:
        """Return the change of the model's P parameters, [P], the updates with final weights, and the next state.

        `arrivals` are the updates that arrived in the round `closed_round`; `state` is the server's state before the
        step.
        """
        if closed_round.selection.plain:
            return _require_arrived_tensor(arrivals.mean), arrivals, state
        outcome = make_round_outcome(self.components.agg, "the aggregator", closed_round, arrivals)
        server_models = self.make_models(closed_round.round, _require_arrived_tensor(arrivals.buffers))
        mean_totals_and_weights = (_require_arrived_tensor(arrivals.mean), arrivals.totals, arrivals.weights)
        arrived_job_rows = np.searchsorted(closed_round.arrived_jobs.client, arrivals.clients)  # both are sorted
        arrived_updates = Arrived(
            *(outcome, *mean_totals_and_weights, arrivals.updates, arrivals.client_buffers, server_models),
            discounts=closed_round.staleness_discounts[arrived_job_rows],
            end_s=closed_round.arrived_jobs.end_s[arrived_job_rows],
            sent_offset=lambda sent_round: state.in_flight.broadcasts[sent_round].parameter_change(self.server),
        )
        update_direction, agg_state = self.components.agg.direction(state.agg, arrived_updates)
        displacement, server_state = self.components.server.step(
            state.server, server_models.average_over_ranks(update_direction.displacement)
        )
        if update_direction.weights is not None:
            arrivals = replace(arrivals, weights=update_direction.weights)
        total_charge = state.spent + Charge(server_flops=self.pass_flops * server_models.passes)
        return displacement, arrivals, replace(state, agg=agg_state, server=server_state, spent=total_charge)


def _add_round_to_state(closed_round: ClosedRound, arrivals: Arrivals, state: ServerState) -> ServerState:
    """Return `state` with the selections and costs of `closed_round`, and with a new hash that covers `arrivals`."""
    dispatch = closed_round.dispatch
    selected_ids = closed_round.selection.clients
    return replace(
        state,
        selector=dispatch.selector_state,
        spent=state.spent + closed_round.charge,
        choices=hash_selection_history(state.choices, closed_round, arrivals),
        times_selected=add_to_times_selected(state.times_selected, selected_ids),
        uniform=state.uniform.add_round(selected_ids, dispatch.ready_ids, dispatch.uniform_cohort),
    )


def add_to_times_selected(times_selected: Ids, clients: Ids) -> Ids:
    """Return the counts `times_selected`, [n_clients], plus one for each of `clients`, distinct ids."""
    next_times_selected = times_selected.copy()
    next_times_selected[clients] += 1
    return next_times_selected


def _require_arrived_tensor(arrived_tensor: Tensor | None) -> Tensor:
    if arrived_tensor is None:
        raise ValueError("no client arrived, so that there is no mean of updates: report this bug of fedcohort")
    return arrived_tensor


def hash_selection_history(previous_selection_hash: str, closed_round: ClosedRound, arrivals: Arrivals) -> str:
    """Return the hash of `previous_selection_hash`, the clients selected in `closed_round`, and those in `arrivals`."""
    client_id_lists = f"{closed_round.selection.clients.tolist()}/{arrivals.clients.tolist()}"
    hashed_text = f"{previous_selection_hash}/{closed_round.round}/{client_id_lists}"
    return hashlib.blake2b(hashed_text.encode(), digest_size=6).hexdigest()
