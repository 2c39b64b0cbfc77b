"""Sample selection in a round: who looks at its samples, what is trained on, and what a client then knows of them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.data.federation import Federation
from fedcohort.rng import Draws
from fedcohort.round.jobs import Jobs
from fedcohort.round.store import ClientStore
from fedcohort.samples.base import LOSSES, SampleRequest, Samples
from fedcohort.signal.lab import Lab
from fedcohort.training.client_task import Remember
from fedcohort.types import Ids, Values

NONE = np.empty(0)


class SampleSelection:
    """Asks the run's sample selection on behalf of the clients.

    Args:
        part: the sample selection.
        federation: the clients' data.
        batch: samples in a mini-batch, None for all of a client's.
        store: the clients' stored rows.
        lab: measures the losses of those who look.
    """

    def __init__(
        self, part: Samples[Any], federation: Federation, batch: int | None, store: ClientStore, lab: Lab
    ) -> None:
        self.part, self.n, self.batch, self.store, self.lab = part, federation.n_train, batch, store, lab

    def find_without_losses(self, state: object, selected: Ids) -> Ids:
        """Return the sorted ids of the selected clients that keep a list of losses, and have none yet."""
        if not self.part.keeps_losses:
            return selected[:0]
        keeping = selected[self.part.look(state, self.n[selected])].tolist()
        return np.array([k for k in keeping if LOSSES not in self.store.get(k)], dtype=np.int64)

    def measure(self, clients: Ids) -> dict[int, Values]:
        """Return the cross-entropy of w_t on each sample of each client, in nats, by id."""
        return {k: self.lab.per_sample_losses(k) for k in clients.tolist()}

    def choose(self, state: object, jobs: Jobs, measured: Mapping[int, Values], draws: Draws) -> Jobs:
        """Return the jobs with the samples that each client trains on.

        Args:
            state: of the part.
            jobs: with their expected timing and the announced deadline.
            measured: losses of the clients that measure theirs in this round, by id.
            draws: of the round.
        """
        clients = jobs.client.tolist()
        if self.part.everything:
            return replace(jobs, rows=[None] * len(clients), losses=[None] * len(clients))
        losses = [measured[k] if k in measured else self._losses(k, int(self.n[k])) for k in clients]
        jobs, rows = replace(jobs, losses=losses), list[Ids | None]()
        for i in range(len(clients)):
            request = self._request(jobs, i, draws)
            chosen = self.part.choose(state, request)
            rows.append(None if len(chosen) == request.n else chosen)
        return replace(jobs, rows=rows)

    def remember(self, state: object, jobs: Jobs, i: int, draws: Draws) -> Remember | None:
        """Return what makes the list of losses of the i-th job's client after training; None where it keeps none.

        draws: of the round in which the job was sent.
        """
        losses = jobs.losses[i]
        if losses is None or not len(losses):
            return None
        return partial(self._remember, state, self._request(jobs, i, draws), jobs.rows[i])

    def _request(self, jobs: Jobs, i: int, draws: Draws) -> SampleRequest:
        client, expected, losses = int(jobs.client[i]), jobs.expected, jobs.losses[i]
        n = int(self.n[client])
        return SampleRequest(
            client=client,
            n=n,
            deadline_s=float(jobs.announced_s[i]),
            travel_s=float(expected.down[i] + expected.infer[i] + expected.up[i]),
            unit_s=float(expected.unit[i]),
            units=int(jobs.asked[i]),
            batch=min(self.batch or n, n),
            losses=NONE if losses is None else losses,
            rng=partial(draws.generator, client=client),
        )

    def _losses(self, client: int, n: int) -> Values:
        """Return the client's list as it is, [n], nothing where it has none."""
        kept = self.store.get(client).get(LOSSES) if self.part.keeps_losses else None
        return NONE if kept is None else kept[:n].double().cpu().numpy()

    def _remember(
        self, state: object, request: SampleRequest, rows: Ids | None, trained: Values
    ) -> tuple[Mapping[str, Tensor], Mapping[str, float]]:
        """Return the list after training, and what is told of it; trained: losses of the chosen, NaN where unseen."""
        losses = request.losses.copy()
        chosen = slice(None) if rows is None else rows
        losses[chosen] = np.where(np.isnan(trained), losses[chosen], trained)
        return note(losses), self.part.tell(state, request, losses)


def foresee(part: Samples[Any], client: int, n: int, draws: Draws) -> Ids | None:
    """Return the positions of the samples that a client would train on in a round, None for all of its n.

    It is for questions that clients train for before the round is planned: no deadline is known, and no loss. Those
    who ask them are refused where `part` isn't `foreseen`.

    Args:
        part: the sample selection.
        client: its id.
        n: samples it has.
        draws: of the round.
    """
    if part.everything:
        return None
    rng = partial(draws.generator, client=client)
    chosen = part.choose(None, SampleRequest(client, n, math.inf, 0.0, 0.0, 1, n, NONE, rng))
    return None if len(chosen) == n else chosen


def note(losses: Values) -> Mapping[str, Tensor]:
    """Return a list of losses as a client keeps it, four bytes each.

    What a diverged model makes of a sample, NaN, counts as inf: a row that begins with NaN would stand for no list
    where rows lie in files or pass between processes (`round/store.py`).
    """
    return {LOSSES: torch.from_numpy(np.where(np.isnan(losses), np.inf, losses).astype(np.float32))}
