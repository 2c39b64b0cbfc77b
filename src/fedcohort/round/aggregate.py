"""Steps 8 and 9 of a round (docs/architecture.md): observe, aggregate, commit."""

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.agg.base import Arrived
from fedcohort.contracts import number
from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.ledger import Charge
from fedcohort.ranks import rank
from fedcohort.round import backoff
from fedcohort.round.collected import Collected, fill_unsent, reweight
from fedcohort.round.finish import Finished
from fedcohort.round.guard import prefixed
from fedcohort.round.parts import Parts, ServerState
from fedcohort.round.queries import ClientClaims
from fedcohort.round.sampling import note
from fedcohort.round.server_models import RoundModels
from fedcohort.round.settings import Settings
from fedcohort.round.store import ClientStore
from fedcohort.round.workload import verify_advice
from fedcohort.signal.base import Derived, Lab, RawUpdate, Reported, find, verify_answers
from fedcohort.types import Advice, ClientUpdate, Ids, RoundOutcome, Signals

log = logging.getLogger("fedcohort")


def keeps_updates(parts: Parts) -> bool:
    """Whether somebody looks at the updates one by one."""
    words = parts.needs()
    return (
        parts.agg.stacked
        or parts.selector.advises
        or any(isinstance(find(word), RawUpdate | Derived) for word in words)
    )


def declared_reports(parts: Parts, claims: ClientClaims, plain: bool) -> dict[str, Callable[[ClientUpdate], float]]:
    """The columns that are read off every update: what selector and aggregator declare, and the training loss."""
    words = sorted(parts.needs(plain) | {"train_loss"})
    return {w: claims.read_through(w, _reading(w, signal)) for w in words if isinstance(signal := find(w), Reported)}


def _reading(word: str, signal: Reported) -> Callable[[ClientUpdate], float]:
    """Return what reads the signal off an update, and checks that it is a number, which may be NaN."""
    return lambda update: number(f"the signal {word!r}: the result of read", signal.read(update), nan=True)


def longest_update(server: FlatModel, update_limit: float) -> float:
    """The largest norm that an update may have, and the server's step; update_limit: see configs/train.yaml."""
    return update_limit * (1.0 + float(torch.linalg.vector_norm(server.w)))


class ServerStep:
    """Turns what arrived into the next global model and the next server state. flops: of one sample's forward pass."""

    def __init__(
        self,
        parts: Parts,
        server: FlatModel,
        store: ClientStore,
        federation: Federation,
        settings: Settings,
        lab: Lab,
        flops: float,
    ) -> None:
        self.parts, self.server, self.store, self.lab, self.flops = parts, server, store, lab, flops
        self.update_limit = settings.update_limit
        self.workshop = partial(RoundModels, server, federation, settings.seed)
        self.has_warned = False

    def close(self, finished: Finished, collected: Collected, state: ServerState) -> tuple[Collected, ServerState]:
        """Return what arrived, with the weights that it ended up with, and the next state.

        An empty round leaves the model, the aggregator and the server optimizer as they are; time passes, and the
        deadline hears who was late.
        """
        if len(collected.dropped):
            log.warning(
                "round %d: the updates of clients %s are not finite, or longer than update_limit allows, "
                "and were left out",
                finished.round + 1,
                collected.dropped.tolist(),
            )
        state = replace(
            state,
            selector=finished.dispatched.selector_state,
            spent=state.spent + finished.charge,
            choices=extend_choices(state.choices, finished, collected),
            times_selected=count_once_more(state.times_selected, finished.selection.clients),
            uniform=state.uniform.after(
                finished.selection.clients, finished.dispatched.ready, finished.dispatched.uniform
            ),
        )
        for client, losses in finished.first_losses.items():
            self._keep(client, note(losses))
        if not len(finished.selection.clients):
            return collected, state
        if not len(finished.arrived.client):
            self._nobody(finished)
        if finished.selection.upload is not None and not finished.selection.zero_fill:
            collected = fill_unsent(
                collected,
                dict(zip(finished.arrived.client.tolist(), finished.arrived.kept, strict=True)),
                self.server.layout,
            )
        collected = replace(collected, derived=self._derive(collected, finished.selection.plain))
        outcome = self._outcome(finished, collected, "the selector", self.parts.selector.needs)
        advice, selector = self.parts.selector.observe(state.selector, outcome)
        state = replace(state, selector=selector)
        if self.parts.selector.backs_off:
            state = replace(state, failures=backoff.update(state.failures, outcome))
        with prefixed(self.parts.selector):
            verify_advice(advice, self.parts.selector)
        weighing = apply_advice(collected, advice)
        if weighing.mean is not None:
            weighing, state = self._apply(finished, weighing, state)
        elif collected.mean is not None:
            log.warning(
                "round %d: the selector left out every update, and the model stays as it is", finished.round + 1
            )
        return weighing, self._pace(finished, weighing, state)

    def _pace(self, finished: Finished, collected: Collected, state: ServerState) -> ServerState:
        """Have the sample selection and the deadline hear of the same rounds, those without arrivals among them."""
        samples, deadline = self.parts.samples, self.parts.deadline
        told = self._outcome(finished, collected, "the sample selection", samples.needs)
        state = replace(state, samples=samples.observe(state.samples, told))
        told = self._outcome(finished, collected, "the deadline", deadline.needs)
        return replace(state, deadline=deadline.observe(state.deadline, told))

    def _nobody(self, finished: Finished) -> None:
        """Warn, once a run: a deadline that is too short for everybody looks like a run that learns nothing."""
        if not self.has_warned and rank() == 0:
            log.warning(
                "round %d: none of the %d selected clients was done when the round closed after %.3g virtual seconds; "
                "such a round leaves the model as it is%s",
                finished.round + 1,
                len(finished.selection.clients),
                finished.closing.train_s,
                f" ({way_out})" if (way_out := self.parts.deadline.way_out(int(finished.closing.asked.max()))) else "",
            )
        self.has_warned = True

    def _apply(self, finished: Finished, collected: Collected, state: ServerState) -> tuple[Collected, ServerState]:
        kept = collected.clients[collected.weights > 0]
        displacement, weighed, after = self._displacement(finished, collected, state)
        parameters = self._move(finished, displacement)
        if parameters is None:
            collected = replace(collected, weights=np.zeros(len(collected.clients)), step_dropped=True)
            state = replace(state, spent=after.spent)
        else:
            collected, state = weighed, after
            with torch.no_grad():
                self.server.w.copy_(parameters)
                self.server.buffers.copy_(_require(collected.buffers))
                self.server.counters.copy_(_require(collected.counters))
            for client in kept.tolist():
                self._keep(client, collected.stored.get(client, {}))
        return collected, state

    def _keep(self, client: int, stored: Mapping[str, Tensor]) -> None:
        """Have a client keep something beside what it keeps already."""
        if stored:
            self.store.commit(client, {**self.store.get(client), **stored})

    @torch.no_grad()
    def _move(self, finished: Finished, displacement: Tensor) -> Tensor | None:
        """The parameters after the server's step, in the model's precision; None where it can't be taken.

        Such a round leaves everything that the step would have come with as it was: aggregator and server optimizer,
        buffers and counters, and what clients keep.
        """
        length, limit = float(torch.linalg.vector_norm(displacement)), longest_update(self.server, self.update_limit)
        parameters = (self.server.w.double() + displacement).to(self.server.w.dtype)
        if length <= limit and bool(torch.isfinite(parameters).all()):
            return parameters
        log.warning(
            "round %d: the server's step is not finite, or longer than update_limit allows (%.3g, the limit is %.3g), "
            "and was left out: the model stays as it is (lower server.lr)",
            finished.round + 1,
            length,
            limit,
        )
        return None

    def _displacement(
        self, finished: Finished, collected: Collected, state: ServerState
    ) -> tuple[Tensor, Collected, ServerState]:
        """How far the global model moves."""
        if finished.selection.plain:
            return _require(collected.mean), collected, state
        outcome = self._outcome(finished, collected, "the aggregator", self.parts.agg.needs)
        workshop = self.workshop(finished.round, _require(collected.buffers))
        sums = (_require(collected.mean), collected.totals, collected.weights)
        arrived = Arrived(outcome, *sums, collected.updates, collected.each_buffers, workshop)
        direction, agg = self.parts.agg.direction(state.agg, arrived)
        displacement, server = self.parts.server.step(state.server, workshop.agree(direction.displacement))
        if direction.weights is not None:
            collected = replace(collected, weights=direction.weights)
        spent = state.spent + Charge(server_flops=self.flops * workshop.passes)
        return displacement, collected, replace(state, agg=agg, server=server, spent=spent)

    def _derive(self, collected: Collected, plain: bool) -> dict[str, Any]:
        """Work out of the updates what the server can, once for all who read it, by word of `signal/`."""
        if collected.updates is None:
            return {}
        words = sorted(self.parts.needs(plain))
        made = {w: s.make(self.lab, collected.updates) for w in words if isinstance(s := find(w), Derived)}
        n = len(collected.clients)
        return {w: value if callable(value) else verify_answers(w, value, n) for w, value in made.items()}

    def _outcome(self, finished: Finished, collected: Collected, reader: str, needs: frozenset[str]) -> RoundOutcome:
        here = np.isin(finished.arrived.client, collected.clients)
        values: dict[str, Any] = {
            **collected.reports,
            **{w: v[here] for w, v in finished.measured.items()},
            **collected.derived,
        }
        if collected.updates is not None:
            values |= {w: collected.updates.cpu().numpy() for w in needs if isinstance(find(w), RawUpdate)}
        return RoundOutcome(
            round=finished.round,
            selection=finished.selection,
            clients=collected.clients,
            failed=np.setdiff1d(finished.selection.clients, collected.clients),
            signals=Signals(values, needs, reader),
            probes=finished.dispatched.queried.answers_to(concurrent=True) if reader == "the selector" else {},
            round_s=finished.charge.virtual_s,
            announced_s=finished.closing.announced,
        )


def count_once_more(times: Ids, clients: Ids) -> Ids:
    """Return `times` [n_clients] with one more for each of `clients`, which are distinct ids."""
    out = times.copy()
    out[clients] += 1
    return out


def _require(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise ValueError("nobody arrived")
    return tensor


def apply_advice(collected: Collected, advice: Advice | None) -> Collected:
    """Apply a selector's advice: leave updates out, or weigh them otherwise; no mean where all are left out."""
    if advice is None or collected.mean is None:
        return collected
    weights = collected.weights if advice.weights is None else advice.weights
    if advice.keep is not None:
        weights = np.where(advice.keep, weights, 0.0)
    return reweight(collected, weights, advice.absolute)


def extend_choices(before: str, finished: Finished, collected: Collected) -> str:
    """Extend the running hash of who was selected and who arrived by this round."""
    text = f"{before}/{finished.round}/{finished.selection.clients.tolist()}/{collected.clients.tolist()}"
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
