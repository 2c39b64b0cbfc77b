"""FedCor: clients whose loss changes correlate with everybody's, by a learnt Gaussian (Tang et al. 2022).

Tang, Ning, Wang, Sun, Wang, Li, Chen, "FedCor: Correlation-Based Active Client Selection Strategy for Heterogeneous
Federated Learning" (CVPR 2022), after the authors' code.

    dF(t) = F(w_{t+1}) - F(w_t) of all clients ~ N(mu, Sigma),   Sigma = X'X + .01^2 I,   X [dim, K] learnt
    mu_k = sum_e gamma^(t-e) dF_k(e) / sum_e gamma^(t-e),   X = argmin -sum_e gamma^(t-e) log N(dF(e); mu, Sigma)
    m times:  k* = argmax_k alpha_k sum_i p_i Sigma_ik / sqrt(Sigma_kk),   Sigma <- Sigma given k*
    alpha_k <- beta alpha_k  for k in S;   alpha = 1 after each shadow round
    kernel=se: Sigma_ij = f^2 exp(-||x_i - x_j||^2 / 2 l) + .01^2 [i = j] for the columns x of X, f learnt with X from 1

Rounds 0 to W are random, and everybody is asked for F_k before each and once more before round W + 1, where X is fitted
first. Before round t with t > W + 1 and t - 1 a multiple of the interval, m random clients train for a shadow round,
whose model everybody is asked about and which nobody keeps: its loss changes are those of round t, and X is fitted on.

So in T rounds everybody is asked W + 2 times and twice more for each multiple of the interval in W + 1 .. T - 2.

Departures from the paper:
- the code fits by marginal likelihood, or by leaving clients out one by one, which scores a single client there: only
  the former is here; of its kernels the linear one and, as an option, the squared exponential;
- dF of a shadow round counts as of the round t before which it is made; the code dates it t - 1, and so gives the other
  dF 1 / gamma times the weight beside it, and forgets them a round later;
- the learning rate of a fit falls to 0 in its second half: a constant one amplifies rounding (`bandit/gaussian.py`);
- the sum over i is over all clients; p_i = n_i / sum n, as the code has it, whose aggregation is a plain mean; the
  shadow round weighs updates by n;
- a client that is away, or whose loss is not finite or above 1e12, is missing from that round's dF;
- clients that fail are discounted as those that arrive (the paper's never fail), and who does so three times in a row
  is withheld for a while (`round/backoff.py`), or those of the largest scores would stall the run;
- a client of variance below 1e-10 comes last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.selector.base import Selector, answers, draw, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

NOISE = 0.01  # standard deviation of what clients don't share
LEAST_VARIANCE = 1e-10
LIMIT = 1e12  # nats


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        X: features, None before the first fit.
        f, p, mu, alpha: see the module; p is n_k / sum n.
        changes: dF by round, NaN where unknown.
        loss: of the last model that everybody was asked about, in round `asked`.
    """

    X: Float64[np.ndarray, "d k"] | None
    f: float
    p: Values
    mu: Values
    alpha: Values
    changes: dict[int, Values]
    loss: Values
    asked: int


@dataclass(frozen=True)
class FedCor(Selector[State]):
    """The selector; the module and configs/selector/fedcor.yaml explain its options."""

    warmup: int
    interval: int
    beta: float
    gamma: float
    memory: int
    dim: int
    update_mean: bool
    first_steps: int
    steps: int
    tie: str
    kernel: str
    length: float

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train", "loss", "shadow_loss"})

    def __post_init__(self) -> None:
        ranges.integer("warmup", self.warmup, "[1, inf)")
        ranges.integer("interval", self.interval, "[1, inf)")
        ranges.number("beta", self.beta, "(0, 1]")
        ranges.number("gamma", self.gamma, "(0, 1]")
        ranges.integer("memory", self.memory, "[1, inf)")
        ranges.integer("dim", self.dim, "[1, inf)")
        ranges.flag("update_mean", self.update_mean)
        ranges.integer("first_steps", self.first_steps, "[0, inf)")
        ranges.integer("steps", self.steps, "[0, inf)")
        ranges.choice("tie", self.tie, "random", "id")
        ranges.choice("kernel", self.kernel, "linear", "se")
        ranges.number("length", self.length, "(0, inf)")

    def memory_bytes(self, n_clients: int) -> float:
        """Return the size of Sigma and of one copy, float64 [K, K] each."""
        return 16 * n_clients**2

    def init(self, population: Population) -> State:
        K, n = population.n_clients, population.signals["n_train"].astype(float)
        p = n / max(float(n.sum()), 1.0)
        return State(None, 1.0, p, np.zeros(K), np.ones(K), {}, np.full(K, np.nan), -1)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        if ctx.round <= self.warmup + 1:
            return (Probe("loss", ctx.ready),)
        if not self.is_shadow(ctx.round):
            return ()
        trainers = draw(np.ones(ctx.n_clients), ctx.ready, ctx.cohort, ctx.rng)
        return Probe("loss", ctx.ready), Probe("shadow_loss", ctx.ready, {"trainers": tuple(trainers.tolist())})

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        state = self._read(state, ctx.round, probes)
        if ctx.round <= self.warmup:
            return Selection(draw(np.ones(ctx.n_clients), ctx.available, ctx.cohort, ctx.rng)), state
        if state.X is None or "shadow_loss" in probes:
            state = self._fit(state, ctx)
        return self._choose(state, ctx), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        if outcome.round <= self.warmup:
            return None, state
        alpha = state.alpha.copy()
        alpha[outcome.clients] *= self.beta
        alpha[outcome.failed] *= self.beta
        return None, replace(state, alpha=alpha)

    def is_shadow(self, round: int) -> bool:
        """Return whether there is a shadow round before this round's selection."""
        return round - 1 > self.warmup and (round - 1) % self.interval == 0

    def _read(self, state: State, round: int, probes: Mapping[str, ProbeResult]) -> State:
        """Read the losses before this round: of w_t, which end the round before, and of the shadow model."""
        if "loss" not in probes:
            return state
        loss = read_losses(answers(probes, "loss"), len(state.p))
        changes, alpha = {e: dF for e, dF in state.changes.items() if round - e <= self.memory}, state.alpha
        if round <= self.warmup + 1 and state.asked == round - 1 >= 0:
            changes[round - 1] = loss - state.loss
        if "shadow_loss" in probes:
            changes[round] = read_losses(answers(probes, "shadow_loss"), len(state.p)) - loss
            alpha = np.ones_like(alpha)
        return replace(state, changes=changes, alpha=alpha, loss=loss, asked=round)

    def _fit(self, state: State, ctx: RoundContext) -> State:
        from fedcohort.bandit import gaussian  # noqa: PLC0415 - imports torch

        first = state.X is None
        X = ctx.rng.standard_normal((self.dim, ctx.n_clients)) / np.sqrt(self.dim) if state.X is None else state.X
        if not state.changes:
            return replace(state, X=X)
        Y = np.stack(list(state.changes.values()))
        weights = self.gamma ** (ctx.round - np.array(list(state.changes), dtype=np.float64))
        mu = gaussian.weighted_mean(Y, weights) if self.update_mean else state.mu
        steps, f = self.first_steps if first else self.steps, state.f
        if self.kernel == "linear":
            X = gaussian.fit(X, Y, mu, weights, NOISE, steps)
        else:
            X, f = gaussian.fit_smooth(X, f, Y, mu, weights, NOISE, self.length, steps)
        return replace(state, X=X, f=f, mu=mu)

    def _covariance(self, X: Float64[np.ndarray, "d k"], f: float) -> Float64[np.ndarray, "k k"]:
        from fedcohort.bandit import gaussian  # noqa: PLC0415 - imports torch

        if self.kernel == "linear":
            return gaussian.covariance(X, NOISE)
        return gaussian.smooth_covariance(X, f, self.length, NOISE)

    def _choose(self, state: State, ctx: RoundContext) -> Selection:
        if state.X is None:
            raise ValueError("the kernel is fitted before the first choice")
        order, gains = self.order(self._covariance(state.X, state.f), state.p, state.alpha, ctx)
        place = np.full(ctx.n_clients, np.nan)
        place[order] = np.arange(len(order))
        first = gains[0] if gains else np.full(ctx.n_clients, np.nan)
        return Selection(np.sort(order), first, {"discount": state.alpha, "place": place})

    def order(
        self, sigma: Float64[np.ndarray, "k k"], p: Values, alpha: Values, ctx: RoundContext
    ) -> tuple[Ids, list[Values]]:
        """The cohort in the order of choice, and the scores at each choice, -inf for those of no variance."""
        from fedcohort.bandit import gaussian  # noqa: PLC0415 - imports torch

        order, left, scores = np.empty(0, np.int64), ctx.available, list[Values]()
        for _ in range(min(ctx.cohort, len(left))):
            variance = np.diag(sigma)
            varies = variance >= LEAST_VARIANCE
            score = np.where(varies, alpha * (p @ sigma) / np.sqrt(np.where(varies, variance, 1.0)), -np.inf)
            (k,) = top(score, left, 1, ctx.rng, self.tie)
            order, left, scores = np.append(order, k), left[left != k], [*scores, score]
            sigma = gaussian.condition(sigma, int(k)) if varies[k] else sigma
        return order, scores


def read_losses(answer: ProbeResult, n_clients: int) -> Values:
    """Return the losses that were answered, [n_clients], NaN for a client without a usable one."""
    loss = answer.dense(n_clients)
    return np.where(np.abs(loss) < LIMIT, loss, np.nan)
