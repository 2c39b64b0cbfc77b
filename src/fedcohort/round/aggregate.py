"""Steps 7 to 9 of a round (DESIGN section 3): observe, aggregate, commit."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.agg.base import Arrived
from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.ledger import Charge
from fedcohort.ranks import rank
from fedcohort.round.collected import Gathered, filled, reweighted
from fedcohort.round.hearing import Hearing
from fedcohort.round.parts import Parts, ServerState, Settings
from fedcohort.round.plan import Opened
from fedcohort.round.server_models import ServerWorkshop
from fedcohort.round.store import ClientStore
from fedcohort.round.workload import verify_advice
from fedcohort.signal.base import Held, Lab, Reported, Sent, find
from fedcohort.types import Advice, ClientUpdate, RoundOutcome, Signals

log = logging.getLogger("fedcohort")


def keeps_updates(parts: Parts) -> bool:
    """Whether somebody looks at the updates one by one."""
    words = parts.needs()
    return parts.agg.stacked or parts.selector.advises or any(isinstance(find(word), Sent | Held) for word in words)


def reported(parts: Parts, hearing: Hearing, plain: bool) -> dict[str, Callable[[ClientUpdate], float]]:
    """The columns that are read off every update: what selector and aggregator declare, and the training loss."""
    words = sorted(parts.needs(plain) | {"train_loss"})
    return {w: hearing.through(w, signal.read) for w in words if isinstance(signal := find(w), Reported)}


def longest(server: FlatModel, update_limit: float) -> float:
    """The largest norm that an update may have, and the server's step; update_limit: see configs/train.yaml."""
    return update_limit * (1.0 + float(torch.linalg.vector_norm(server.w)))


class Closer:
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
        self.workshop = partial(ServerWorkshop, server, federation, settings.seed)
        self.told = False

    def close(self, opened: Opened, gathered: Gathered, state: ServerState) -> tuple[Gathered, ServerState]:
        """What arrived, with the weights that it ended up with, and the next state.

        An empty round leaves the model, the aggregator and the server optimizer as they are; time passes.
        """
        if len(gathered.dropped):
            log.warning(
                "round %d: the updates of clients %s are not finite, or longer than update_limit allows, "
                "and were left out",
                opened.round + 1,
                gathered.dropped.tolist(),
            )
        state = replace(
            state,
            selector=opened.selector_state,
            spent=state.spent + opened.charge,
            choices=chained(state.choices, opened, gathered),
            times_selected=state.times_selected
            + np.bincount(opened.selection.clients, minlength=len(state.times_selected)),
            chance=state.chance.after(opened.selection.clients, opened.available, opened.twin),
        )
        if not len(opened.selection.clients):
            return gathered, state
        if not opened.tasks:
            self._nobody(opened)
        if opened.selection.upload is not None and not opened.selection.zero_fill:
            gathered = filled(gathered, {task.client: task.kept for task in opened.tasks}, self.server.layout)
        gathered = replace(gathered, held=self._held(gathered, opened.selection.plain))
        outcome = self._outcome(opened, gathered, "the selector", self.parts.selector.needs)
        advice, selector = self.parts.selector.observe(state.selector, outcome)
        state = replace(state, selector=selector)
        verify_advice(advice, self.parts.selector, len(gathered.clients))
        heeded = advised(gathered, advice)
        if heeded.mean is not None:
            return self._apply(opened, heeded, state)
        if gathered.mean is not None:
            log.warning("round %d: the selector left out every update, and the model stays as it is", opened.round + 1)
        return heeded, state

    def _nobody(self, opened: Opened) -> None:
        """Once a run: a deadline that is too short for everybody looks like a run that learns nothing."""
        if not self.told and rank() == 0:
            log.warning(
                "round %d: none of the %d selected clients was done when the round closed after %.3g virtual seconds; "
                "such a round leaves the model as it is (raise deadline.k, or set deadline.partial_work=true)",
                opened.round + 1,
                len(opened.selection.clients),
                opened.closing.train_s,
            )
        self.told = True

    def _apply(self, opened: Opened, gathered: Gathered, state: ServerState) -> tuple[Gathered, ServerState]:
        kept = gathered.clients[gathered.weights > 0]
        displacement, weighed, after = self._displacement(opened, gathered, state)
        moved = self._moved(opened, displacement)
        if moved is None:
            gathered = replace(gathered, weights=np.zeros(len(gathered.clients)), step_dropped=True)
            state = replace(state, spent=after.spent)
        else:
            gathered, state = weighed, after
            with torch.no_grad():
                self.server.w.copy_(moved)
                self.server.buffers.copy_(_known(gathered.buffers))
                self.server.counters.copy_(_known(gathered.counters))
            for client in () if opened.selection.plain else kept:
                self.store.commit(int(client), gathered.stored.get(int(client), {}))
        pace = self._outcome(opened, gathered, "the pace", frozenset({"n_train"}))
        samples = self.parts.samples.observe(state.samples, pace)
        deadline = self.parts.deadline.observe(state.deadline, pace)
        return gathered, replace(state, samples=samples, deadline=deadline)

    @torch.no_grad()
    def _moved(self, opened: Opened, displacement: Tensor) -> Tensor | None:
        """The parameters after the server's step, in the model's precision; None where it can't be taken.

        Such a round leaves everything that the step would have come with as it was: aggregator and server optimizer,
        buffers and counters, and what clients keep.
        """
        length, limit = float(torch.linalg.vector_norm(displacement)), longest(self.server, self.update_limit)
        moved = (self.server.w.double() + displacement).to(self.server.w.dtype)
        if length <= limit and bool(torch.isfinite(moved).all()):
            return moved
        log.warning(
            "round %d: the server's step is not finite, or longer than update_limit allows (%.3g, the limit is %.3g), "
            "and was left out: the model stays as it is (lower server.lr)",
            opened.round + 1,
            length,
            limit,
        )
        return None

    def _displacement(
        self, opened: Opened, gathered: Gathered, state: ServerState
    ) -> tuple[Tensor, Gathered, ServerState]:
        """How far the global model moves."""
        if opened.selection.plain:
            return _known(gathered.mean), gathered, state
        outcome = self._outcome(opened, gathered, "the aggregator", self.parts.agg.needs)
        workshop = self.workshop(opened.round, _known(gathered.buffers))
        sums = (_known(gathered.mean), gathered.totals, gathered.weights)
        arrived = Arrived(outcome, *sums, gathered.updates, gathered.each_buffers, workshop)
        direction, agg = self.parts.agg.direction(state.agg, arrived)
        displacement, server = self.parts.server.step(state.server, workshop.agreed(direction.displacement))
        if direction.weights is not None:
            gathered = replace(gathered, weights=direction.weights)
        spent = state.spent + Charge(server_flops=self.flops * workshop.passes)
        return displacement, gathered, replace(state, agg=agg, server=server, spent=spent)

    def _held(self, gathered: Gathered, plain: bool) -> dict[str, Any]:
        """What the server works out of the updates, for all who read it."""
        if gathered.updates is None:
            return {}
        words = sorted(self.parts.needs(plain))
        return {w: s.make(self.lab, gathered.updates) for w in words if isinstance(s := find(w), Held)}

    def _outcome(self, opened: Opened, gathered: Gathered, reader: str, needs: frozenset[str]) -> RoundOutcome:
        arriving = np.array([task.client for task in opened.tasks], dtype=np.int64)
        here = np.isin(arriving, gathered.clients)
        values: dict[str, Any] = {
            **gathered.reports,
            **{w: v[here] for w, v in opened.measured.items()},
            **gathered.held,
        }
        if gathered.updates is not None:
            values |= {w: gathered.updates.cpu().numpy() for w in needs if isinstance(find(w), Sent)}
        return RoundOutcome(
            round=opened.round,
            selection=opened.selection,
            clients=gathered.clients,
            failed=np.setdiff1d(opened.selection.clients, gathered.clients),
            signals=Signals(values, needs, reader),
            probes=opened.concurrent if reader == "the selector" else {},
            round_s=opened.charge.virtual_s,
        )


def _known(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise ValueError("nobody arrived")
    return tensor


def advised(gathered: Gathered, advice: Advice | None) -> Gathered:
    """Apply a selector's advice: leave updates out, or weigh them otherwise; no mean where all are left out."""
    if advice is None or gathered.mean is None:
        return gathered
    weights = gathered.weights if advice.weights is None else advice.weights
    if advice.keep is not None:
        weights = np.where(advice.keep, weights, 0.0)
    return reweighted(gathered, weights, advice.absolute)


def chained(before: str, opened: Opened, gathered: Gathered) -> str:
    """The running hash of who was selected and who arrived."""
    text = f"{before}/{opened.round}/{opened.selection.clients.tolist()}/{gathered.clients.tolist()}"
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
