"""UCB-CS: upper confidence bounds on discounted training losses (Cho et al. 2020).

Cho, Gupta, Joshi, Yagan, "Bandit-based Communication-Efficient Client Selection Strategies for Federated Learning"
(2020).

    L_k <- gamma L_k + loss_k,   N_k <- gamma N_k + 1  for k that arrived;   T <- gamma T + 1     (Eq. 5-7)
    A_k = p_k (L_k / N_k + sqrt(2 sigma^2 ln T / N_k)),   infinite for clients never selected       (Eq. 4)
    S = the m available clients with the largest A_k, ties at random

loss_k is the average training loss along the client's own steps, sigma the largest within-round standard deviation.
A single step has none: where every client takes one (agg=fedsgd), sigma is 0 and nobody is explored twice.

Departures from the paper:
- the discount counts rounds; Eq. 5-7 count SGD steps, and .7^30 remembers nothing;
- every index is computed anew each round, as Eq. 4 and the text have it; Algorithm 1 (index=algorithm1) renews only
  those just selected and lets the others decay, so that the ignored are never explored;
- sigma is the maximum over every client's latest value; only the last cohort's, which Sec. III allows too, is
  sigma=last_round;
- a client that fails counts in N with a loss of 0, a pull that paid nothing: the paper's clients never fail, and those
  who never arrive would keep an infinite index, and their places, for ever; after three times in a row it is withheld
  for a while (`round/backoff.py`), as p_k multiplies the width, and large clients would come back too soon;
- a client whose loss is not finite is not preferred again until it reports a finite one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.bandit import discounted
from fedcohort.bandit.discounted import Discounted
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector, top
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values

SEVERAL_STEPS = Requirement(
    lambda run: run.parts.client.takes_several(run.most_samples),
    "{option} explores as far as the losses of a client's steps differ, and every client takes one step a round: once "
    "each has come it chooses by losses alone (more epochs, more steps or smaller mini-batches would give it a sigma)",
)


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        past: L, N and T.
        std: each client's latest, NaN before.
        sigma: nats.
        mean, width: both terms of the index without p_k, per client.
        shunned: the last reported loss was not finite.
    """

    past: Discounted
    std: Values
    sigma: float
    mean: Values
    width: Values
    shunned: Bool[np.ndarray, "_n"]


@dataclass(frozen=True)
class UcbCs(Selector[State]):
    """The selector, with its options.

    Attributes:
        discount: gamma per round.
        index: "eq4" or "algorithm1".
        sigma: "all_latest" or "last_round".
    """

    discount: float
    index: str
    sigma: str
    tie: str

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "train_loss", "train_loss_std"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS, SEVERAL_STEPS})

    def __post_init__(self) -> None:
        ranges.number("discount", self.discount, "[0, 1]")
        ranges.choice("index", self.index, "eq4", "algorithm1")
        ranges.choice("sigma", self.sigma, "all_latest", "last_round")
        ranges.choice("tie", self.tie, "random", "id")

    def init(self, population: Population) -> State:
        K = population.n_clients
        never = np.full(K, np.inf)
        return State(discounted.nothing(K), np.full(K, np.nan), 0.0, np.zeros(K), never, np.zeros(K, bool))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        n = ctx.signals["n_train"]
        p = n / max(n.sum(), 1)
        visited = state.past.pulled
        exploit = p * state.mean
        explore = np.where(visited, p * np.where(visited, state.width, 0.0), np.inf)
        scores = np.where(state.shunned, -np.inf, exploit + explore)
        clients = top(scores, ctx.available, ctx.cohort, ctx.rng, self.tie)
        return Selection(clients, scores, {"exploit": exploit, "explore": explore}), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        loss, std = outcome.signals["train_loss"], outcome.signals["train_loss_std"]
        good = np.isfinite(loss)
        arrivals = outcome.clients[good]
        shunned = state.shunned.copy()
        shunned[outcome.clients] = ~good
        latest = state.std.copy()
        latest[arrivals] = np.where(np.isfinite(std), std, latest[outcome.clients])[good]
        pulled = np.concatenate([arrivals, outcome.failed])
        rewards = np.concatenate([loss[good], np.zeros(len(outcome.failed))])
        past = discounted.after(state.past, self.discount, pulled, rewards)
        sigma = self._sigma(state.sigma, latest if self.sigma == "all_latest" else latest[arrivals])
        mean, width = discounted.mean(past), discounted.width(past, sigma)
        if self.index == "algorithm1":
            mean, width = (self._stale(old, new, pulled) for old, new in ((state.mean, mean), (state.width, width)))
        return None, State(past, latest, sigma, mean, width, shunned)

    def _sigma(self, before: float, std: Values) -> float:
        """The largest standard deviation; what it was before where nobody reported one."""
        return float(np.nanmax(std)) if np.isfinite(std).any() else before

    def _stale(self, old: Values, new: Values, pulled: np.ndarray) -> Values:
        """Algorithm 1, lines 6 and 8: the stored list decays, those just selected are renewed."""
        kept = np.where(np.isinf(old), old, self.discount * np.where(np.isinf(old), 0.0, old))
        kept[pulled] = new[pulled]
        return kept
