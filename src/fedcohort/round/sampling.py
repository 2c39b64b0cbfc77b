"""Sample selection in a round: who looks at its samples, what is trained on, and what a client then knows of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.data.federation import Federation
from fedcohort.device.base import Timing
from fedcohort.rng import Draws
from fedcohort.round.store import ClientStore
from fedcohort.round.workload import AskedWork
from fedcohort.samples.base import LOSSES, SampleRequest, Samples
from fedcohort.signal.base import Lab
from fedcohort.training.client_task import Remember
from fedcohort.types import Ids, Values

NONE = np.empty(0)


@dataclass(frozen=True)
class Chosen:
    """What a cohort trains on; all fields are aligned with it.

    Attributes:
        rows: positions of the samples, None for all.
        remember: see `training.client_task.ClientTask`; None where a client keeps no list.
    """

    rows: Sequence[Ids | None]
    remember: Sequence[Remember | None]


class SampleSelection:
    """Asks the run's sample selection on behalf of the clients.

    Args:
        part: the sample selection.
        federation: the clients' data.
        batch: samples in a mini-batch, None for all of a client's.
        store: what clients keep.
        lab: measures the losses of those who look.
    """

    def __init__(
        self, part: Samples[Any], federation: Federation, batch: int | None, store: ClientStore, lab: Lab
    ) -> None:
        self.part, self.n, self.batch, self.store, self.lab = part, federation.n_train, batch, store, lab

    def find_looking(self, state: object, selected: Ids) -> Ids:
        """Return the sorted ids of those selected who keep a list, and have none yet."""
        if not self.part.keeps_losses:
            return selected[:0]
        keeping = selected[self.part.look(state, self.n[selected])].tolist()
        return np.array([k for k in keeping if LOSSES not in self.store.get(k)], dtype=np.int64)

    def look(self, clients: Ids) -> dict[int, Values]:
        """Return the cross-entropy of w_t on each sample of each client, in nats, by id."""
        return {k: self.lab.per_sample_losses(k) for k in clients.tolist()}

    def choose(
        self,
        state: object,
        asked: AskedWork,
        looked: Mapping[int, Values],
        announced: float,
        expected: Timing,
        draws: Draws,
    ) -> Chosen:
        """Have each client choose.

        Args:
            state: of the part.
            asked: local work, of the cohort.
            looked: losses of those who look this round.
            announced: the deadline in seconds.
            expected: timing of each on all of its samples, looks among its forward passes.
            draws: of the round.
        """
        if self.part.everything:
            return Chosen([None] * len(asked.clients), [None] * len(asked.clients))
        rows: list[Ids | None] = []
        remember: list[Remember | None] = []
        for i, k in enumerate(asked.clients.tolist()):
            n = int(self.n[k])
            request = SampleRequest(
                client=k,
                n=n,
                deadline_s=announced,
                travel_s=float(expected.down[i] + expected.infer[i] + expected.up[i]),
                unit_s=float(expected.unit[i]),
                units=int(asked.units[i]),
                batch=min(self.batch or n, n),
                losses=looked[k] if k in looked else self._losses(k, n),
                rng=partial(draws.generator, client=k),
            )
            chosen = self.part.choose(state, request)
            rows.append(None if len(chosen) == n else chosen)
            remember.append(partial(self._remember, state, request, chosen) if len(request.losses) else None)
        return Chosen(rows, remember)

    def _losses(self, client: int, n: int) -> Values:
        """Return the client's list as it is, [n], nothing where it has none."""
        kept = self.store.get(client).get(LOSSES) if self.part.keeps_losses else None
        return NONE if kept is None else kept[:n].double().cpu().numpy()

    def _remember(
        self, state: object, request: SampleRequest, chosen: Ids, trained: Values
    ) -> tuple[Mapping[str, Tensor], Mapping[str, float]]:
        """Return the list after training, and what is told of it; trained: losses of the chosen, NaN where unseen."""
        losses = request.losses.copy()
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
