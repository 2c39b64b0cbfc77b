"""rpow-d: pow-d with the losses that clients had when they last trained, for no poll (Cho et al. 2020).

The communication-free variant of pow-d: Cho, Wang, Joshi, "Client Selection in Federated Learning: Convergence Analysis
and Power-of-Choice Selection Strategies" (2020), as UCB-CS (Sec. II-B) describes it.

    A = d available clients, drawn one after the other in proportion to n_k
    S = the m clients of A with the largest l_k, ties at random
    l_k <- the loss of k in this round, for k that arrived;   infinite before the first

Departures from the paper:
- the loss is the mean along the client's own steps, as in UCB-CS Eq. 5, which comes free with the training; at w_t, for
  a forward pass beside it, is loss_at=start;
- its mean of models is a plain one, as pow-d's (`powd.py`);
- a client that failed three times in a row is withheld (`round/backoff.py`), or one that never arrives would keep its
  infinite loss and its place for ever;
- a client whose loss is not finite is not preferred again until it reports a finite one;
- FedDiverse draws A uniformly (candidate=uniform).
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector, top
from fedcohort.selector.candidates import Candidates
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        last: the loss of each client's last round in nats, inf before it and -inf where it was not finite.
    """

    last: Values


@dataclass(frozen=True)
class RPowD(Candidates, Selector[State]):
    """The clients of largest last loss among `candidates` (null: twice the cohort), drawn by "size" or "uniform".

    Attributes:
        loss_at: "path" or "start".
        tie: "random" or "id".
    """

    loss_at: str
    tie: str

    backs_off: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("loss_at", self.loss_at, "path", "start")
        ranges.choice("tie", self.tie, "random", "id")

    @property
    def needs(self) -> frozenset[str]:
        return self.needs_with("train_loss" if self.loss_at == "path" else "loss")

    def init(self, population: Population) -> State:
        """Raises `OptionError` where d is less than m, or more than K."""
        self.check(population)
        return State(np.full(population.n_clients, np.inf))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        """loss_at=start: whoever will be selected is asked beside the training, found with a copy of the generator."""
        if self.loss_at == "path":
            return ()
        foreseen = self._choose(state, replace(ctx, rng=copy.deepcopy(ctx.rng)))
        return (Probe("loss", foreseen, concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        clients = self._choose(state, ctx)
        return Selection(clients, state.last, probability=self._probability(ctx)), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        loss = self._losses(len(state.last), outcome)
        last = state.last.copy()
        last[outcome.clients] = np.where(np.isfinite(loss), loss, -np.inf)
        return None, State(last)

    def _choose(self, state: State, ctx: RoundContext) -> Ids:
        polled = self.draw_candidates(ctx)
        return top(state.last, polled, ctx.cohort, ctx.rng, self.tie)

    def _probability(self, ctx: RoundContext) -> Values:
        """Return each client's chance to be the first candidate, [n_clients]."""
        weights, out = self.weights(ctx), np.zeros(ctx.n_clients)
        out[ctx.available] = weights[ctx.available] / max(weights[ctx.available].sum(), 1.0)
        return out

    def _losses(self, n_clients: int, outcome: RoundOutcome) -> Values:
        if self.loss_at == "path":
            reported: Values = outcome.signals["train_loss"]
            return reported
        answered: Values = outcome.probes["loss"].dense(n_clients)[outcome.clients]
        return answered
