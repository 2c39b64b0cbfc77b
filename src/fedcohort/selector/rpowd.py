"""rpow-d: pow-d with the losses that clients reported when they last trained, without any query (Cho et al. 2022).

Cho, Wang, Joshi, "Towards Understanding Biased Client Selection in Federated Learning", AISTATS 2022; preprint arXiv
2010.01243. UCB-CS (Sec. II-B) describes it as the communication-free variant of pow-d.

    A:  d available clients, drawn successively in proportion to n_k
    S:  the m clients of A with the largest l_k, ties broken at random
    after a round:  l_k <- the loss of k in this round, for k that arrived; infinite before the first round of k

Departures from the paper:
- The paper does not say at which model the loss is measured. Here it is the mean over the client's local steps, as in
  UCB-CS Eq. 5, a by-product of training. loss_at=start takes the loss of w_t, for one more forward pass.
- The paper averages models with equal weights, see `powd.py`.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`): one that never arrives
  would otherwise keep its infinite loss and its place.
- A client whose loss is not finite is ranked last until it reports a finite one.
- FedDiverse draws A uniformly (candidate=uniform).
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, SAME_MODEL, Requirement
from fedcohort.selector.base import Selector, top
from fedcohort.selector.candidates import CandidateOptions
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """State of rpow-d that is kept between rounds.

    Attributes:
        last_losses: loss that each client reported last, in nats, [n_clients]; inf before its first report, -inf for a
            report that was not finite.
    """

    last_losses: Values


@dataclass(frozen=True)
class RPowD(CandidateOptions, Selector[State]):
    """rpow-d, a client selector: the clients with the largest last reported loss among random candidates.

    Attributes:
        loss_at: loss that clients report: "path", the mean over their local steps, or "start", the loss of the round's
            global model, which costs a forward pass.
        tie: which of equal losses wins: a "random" one, or the lowest "id".
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
        return self.loss_signals_to_read("train_loss" if self.loss_at == "path" else "loss")

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({SAME_MODEL} if self.loss_at == "start" else ())

    def init(self, population: Population) -> State:
        """Return the state before round 0, for the clients of `population`.

        Raises:
            OptionError: `candidates` is below the cohort or above the number of clients.
        """
        self.check_candidate_count(population)
        return State(np.full(population.n_clients, np.inf))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        """Return the query for the loss of the round's global model, if loss_at=start; () for loss_at=path.

        It is sent to the clients that `select` will choose. The choice is made in advance with a copy of the round's
        random generator. Clients answer during their training.
        """
        if self.loss_at == "path":
            return ()
        return (Probe("loss", self._choose_clients(state, replace(ctx, rng=copy.deepcopy(ctx.rng))), concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        clients = self._choose_clients(state, ctx)
        available_weights = self.candidate_weights(ctx)[ctx.available]
        first_draw_probability = np.zeros(ctx.n_clients)
        first_draw_probability[ctx.available] = available_weights / max(available_weights.sum(), 1.0)
        return Selection(clients, state.last_losses, probability=first_draw_probability), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        if self.loss_at == "path":
            latest_losses = outcome.signals["train_loss"]
        else:
            latest_losses = outcome.probes["loss"].dense(len(state.last_losses))[outcome.clients]
        last_losses = state.last_losses.copy()
        last_losses[outcome.clients] = np.where(np.isfinite(latest_losses), latest_losses, -np.inf)
        return None, State(last_losses)

    def _choose_clients(self, state: State, ctx: RoundContext) -> Ids:
        """Draw the candidates of round `ctx`; return the ids of those with the largest last reported losses."""
        return top(state.last_losses, self.draw_candidates(ctx), ctx.cohort, ctx.rng, self.tie)
