"""Sample selection in a round: measurement of losses, choice of samples, and the losses that clients keep."""

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
    """Applies the run's sample selection to the clients of a round.

    Args:
        part: the sample selection.
        federation: data of the run.
        batch: samples of a mini-batch, None for all of a client's.
        store: vectors that clients keep between rounds.
        lab: measures losses on the clients' data.
    """

    def __init__(
        self, part: Samples[Any], federation: Federation, batch: int | None, store: ClientStore, lab: Lab
    ) -> None:
        self.part, self.n, self.batch, self.store, self.lab = part, federation.n_train, batch, store, lab

    def find_clients_without_losses(self, state: object, selected: Ids) -> Ids:
        """Return the sorted ids of the selected clients that must keep a list of losses, and have none yet."""
        if not self.part.keeps_losses:
            return selected[:0]
        clients_with_lists = selected[self.part.keeps_list(state, self.n[selected])].tolist()
        return np.array([k for k in clients_with_lists if LOSSES not in self.store.get(k)], dtype=np.int64)

    def measure(self, clients: Ids) -> dict[int, Values]:
        """Return the cross-entropy of w_t on each sample of each client, in nats, by id."""
        return {k: self.lab.per_sample_losses(k) for k in clients.tolist()}

    def choose(self, state: object, jobs: Jobs, measured: Mapping[int, Values], draws: Draws) -> Jobs:
        """Return the jobs with the positions of the samples that each client trains on.

        Args:
            state: state of the sample selection.
            jobs: jobs with expected timing and announced deadline.
            measured: losses of the clients that measure all their samples in this round, by id.
            draws: random numbers of the round.
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
        """Return the function that updates the losses of the i-th job's client after training; None if it keeps none.

        Args:
            state: state of the sample selection.
            jobs: jobs of the round.
            i: row of the job.
            draws: random numbers of the round in which the job was sent.
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
            units=int(jobs.assigned[i]),
            batch=min(self.batch or n, n),
            losses=NONE if losses is None else losses,
            rng=partial(draws.generator, client=client),
        )

    def _losses(self, client: int, n: int) -> Values:
        """Return the losses of its samples that the client stores, in nats, [n]; an empty array if it stores none."""
        losses = self.store.get(client).get(LOSSES) if self.part.keeps_losses else None
        return NONE if losses is None else losses[:n].double().cpu().numpy()

    def _remember(
        self, state: object, request: SampleRequest, rows: Ids | None, trained: Values
    ) -> tuple[Mapping[str, Tensor], Mapping[str, float]]:
        """Return the losses to keep and the values to report; trained: losses of the chosen samples, NaN if unused."""
        losses = request.losses.copy()
        chosen = slice(None) if rows is None else rows
        losses[chosen] = np.where(np.isnan(trained), losses[chosen], trained)
        return pack_losses(losses), self.part.report_losses(state, request, losses)


def foresee_samples(part: Samples[Any], client: int, n: int, draws: Draws) -> Ids | None:
    """Return the positions of the samples that a client would train on in a round, None for all of its n samples.

    It serves queries for which clients train before the selection, when neither the deadline nor losses are available.
    Components with such queries require a sample selection that is `foreseen`.

    Args:
        part: the sample selection.
        client: id of the client.
        n: number of its samples.
        draws: random numbers of the round.
    """
    if part.everything:
        return None
    rng = partial(draws.generator, client=client)
    chosen = part.choose(None, SampleRequest(client, n, math.inf, 0.0, 0.0, 1, n, NONE, rng))
    return None if len(chosen) == n else chosen


def pack_losses(losses: Values) -> Mapping[str, Tensor]:
    """Return losses in the form in which a client keeps them, float32 by name.

    The NaN of a diverged model becomes inf, as a row that begins with NaN means that nothing is kept when rows are in
    files or pass between processes (`round/store.py`).
    """
    return {LOSSES: torch.from_numpy(np.where(np.isnan(losses), np.inf, losses).astype(np.float32))}
