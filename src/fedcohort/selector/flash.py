"""FLASH, linear Thompson sampling over four features of a client: Chang, Ahmed, Krishnamurthy, Guler, Swami, Oymak,
Roy-Chowdhury, "FLASH: Federated Learning Across Simultaneous Heterogeneities", Sec. II, Alg. 1 and 2.

    x_t(i) = [L_i(w_t) / L_i(w_0), Lval_i(w_t) / Lval_i(w_0), tau_i, r_i],   L the robust loss on T_i, Lval CE on V_i
    r_t(i) = |L_i(w_t) - L_i(w_{t-1})| / tau_{t-1},   tau = max_{i in S} T_i, the slowest arrival of the round
    V = lam I + sum x x',   b = sum r x,   theta ~ N(V^-1 b, gamma_t^2 V^-1),   S = top m of x'theta;   S_0 = everybody

Departures from the paper (experiment=flash_literal takes those back that have an option):
- credit=causal: r_t is what S_{t-1} brought about, so it is regressed on the contexts that chose S_{t-1}; Alg. 1
  credits it to S_t (literal, with r_0 = 0);
- reward=client: the loss is each client's own, as one global number says nothing about a client;
- scale=running: tau and r are divided by the running means of their sizes; raw rewards drown in gamma_t;
- tau_i in the context is a client's own last duration, because the maximum is the same for all; the reward is over the
  slowest arrival (reward_tau=round) or the client's own (client); a probe that lasts longer counts in neither;
- a context is [1, 1, 0, 0] before anything is measured; a client that was never timed stands at the mean of those
  that were, an absent one keeps its last values, and one that answers NaN or infinity is scored -inf;
- a row without both losses and a positive duration is left out, and failed clients teach nothing.
context=lagged is Alg. 1: w_t, probed beside the training of round t, chooses S_{t+1}; fresh asks before choosing S_t.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.bandit import ridge
from fedcohort.bandit.ridge import Ridge
from fedcohort.selector.base import answers, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

Contexts = Float64[np.ndarray, "_n 4"]
FEATURES = ("train_ratio", "val_ratio", "duration", "prev_reward")
FLOOR = 1e-8  # of a baseline that a ratio divides by


@dataclass(frozen=True)
class Unit:
    """What a feature is measured in: the mean size of `count` observations, 1 before the first."""

    total: float = 0.0
    count: int = 0

    def value(self) -> float:
        return self.total / self.count if self.count else 1.0


@dataclass(frozen=True)
class Pending:
    """Rows that wait for their reward: who trained, and their contexts. first: it was the cohort of round 0."""

    clients: Ids
    X: Contexts
    first: bool


@dataclass(frozen=True)
class Baseline:
    """first: a client's first finite loss, NaN before. ratio: its last loss over that, 1 before."""

    first: Values
    ratio: Values

    def after(self, answers: ProbeResult) -> "Baseline":
        first, ratio = self.first.copy(), self.ratio.copy()
        k, value = answers.clients, answers.values
        first[k] = np.where(np.isnan(first[k]) & np.isfinite(value), value, first[k])
        ratio[k] = value / np.maximum(first[k], FLOOR)
        return Baseline(first, ratio)


@dataclass(frozen=True)
class State:
    """Per client: train, val: the loss ratios. loss: robust loss of the last model measured, NaN without an answer.
    gain: reward at that measurement, whoever it is credited to. r: last reward credited. tau: last duration, seconds.
    X: contexts of the next selection. p: n_k / sum of n (equal shares unless reward=global).
    round_tau: duration of the last round, seconds. tau_unit, r_unit: the scales of tau and r.
    """

    posterior: Ridge
    train: Baseline
    val: Baseline
    loss: Values
    gain: Values
    r: Values
    tau: Values
    X: Contexts
    p: Values
    round_tau: float
    tau_unit: Unit
    r_unit: Unit
    pending: Pending | None


@dataclass(frozen=True)
class Flash:
    """Options: see the module. delta, lam, gamma_scale: the bandit's. alpha, beta, A: the robust loss's (Eq. 3)."""

    context: str
    credit: str
    reward: str
    change: str
    reward_tau: str
    scale: str
    skip_first_update: bool
    gamma_scale: float
    delta: float
    lam: float
    alpha: float
    beta: float
    A: float

    advises: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.choice("context", self.context, "lagged", "fresh")
        ranges.choice("credit", self.credit, "causal", "literal")
        ranges.choice("reward", self.reward, "client", "global")
        ranges.choice("change", self.change, "abs", "signed")
        ranges.choice("reward_tau", self.reward_tau, "round", "client")
        ranges.choice("scale", self.scale, "running", "first_round", "none")
        ranges.flag("skip_first_update", self.skip_first_update)
        ranges.number("gamma_scale", self.gamma_scale, "[0, inf)")
        ranges.number("delta", self.delta, "(0, 1)")
        ranges.number("lam", self.lam, "(0, inf)")
        ranges.number("alpha", self.alpha, "[0, inf)")
        ranges.number("beta", self.beta, "[0, inf)")
        ranges.number("A", self.A, "(-inf, 0)")

    @property
    def needs(self) -> frozenset[str]:
        shares = {"n_train"} if self.reward == "global" else set()
        return frozenset({"robust_loss", "val_loss", "duration"} | shares)

    def init(self, population: Population) -> State:
        K = population.n_clients
        n = population.signals["n_train"].astype(float) if self.reward == "global" else np.ones(K)
        unknown, blank = np.full(K, np.nan), Baseline(np.full(K, np.nan), np.ones(K))
        return State(
            posterior=ridge.prior(len(FEATURES), self.lam),
            train=blank,
            val=blank,
            loss=unknown,
            gain=unknown,
            r=np.zeros(K),
            tau=unknown,
            X=np.tile([1.0, 1.0, 0.0, 0.0], (K, 1)),
            p=n / max(n.sum(), 1.0),
            round_tau=float("nan"),
            tau_unit=Unit(),
            r_unit=Unit(),
            pending=None,
        )

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        lagged = self.context == "lagged"
        robust = {"alpha": self.alpha, "beta": self.beta, "A": self.A}
        return (
            Probe("robust_loss", ctx.available, robust, concurrent=lagged),
            Probe("val_loss", ctx.available, concurrent=lagged),
        )

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if self.context == "fresh" and probes:  # there are none where nobody is available
            state = self._measured(state, probes)
        if ctx.round == 0:
            return Selection(ctx.available, cold_start=True), state
        # Alg. 1 draws S_{t+1} with gamma_t
        gamma = ridge.exploration(ctx.round - 1, ctx.n_clients, len(FEATURES), self.lam, self.delta)
        theta_hat = ridge.estimate(state.posterior)
        theta = ridge.sample(state.posterior, self.gamma_scale * gamma, ctx.rng.standard_normal(len(FEATURES)))
        parts = {"exploit": state.X @ theta_hat, "explore": state.X @ (theta - theta_hat)}
        scores = state.X @ theta
        scores = np.where(np.isfinite(scores), scores, -np.inf)
        return Selection(top(scores, ctx.available, ctx.cohort, ctx.rng), scores, parts), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        arrived, first, chosen_by = outcome.clients, outcome.round == 0, state.X
        if self.context == "lagged":
            state = self._measured(state, outcome.probes)
        if self.credit == "literal":
            gain = np.zeros(len(arrived)) if first else state.gain[arrived]
            state = self._credited(state, Pending(arrived, state.X[arrived], first), gain)
            return None, self._timed(state, outcome)  # x_t holds tau_{t-1} and r_{t-1}, so it stays as it was measured
        state = self._timed(replace(state, pending=Pending(arrived, chosen_by[arrived], first)), outcome)
        return None, replace(state, X=self._contexts(state))

    def trace(self, state: State) -> Mapping[str, tuple[float, float]]:
        pairs = zip(ridge.estimate(state.posterior), ridge.deviation(state.posterior), strict=True)
        return {name: (float(mean), float(sd)) for name, (mean, sd) in zip(FEATURES, pairs, strict=True)}

    def _measured(self, state: State, probes: Mapping[str, ProbeResult]) -> State:
        """w_t was measured: the pending cohort has its reward, and there are new contexts."""
        robust, val = answers(probes, "robust_loss"), answers(probes, "val_loss")
        loss = robust.dense(len(state.loss))
        loss[~np.isfinite(loss)] = np.nan
        state = replace(state, train=state.train.after(robust), val=state.val.after(val))
        state = replace(state, loss=loss, gain=self._gain(state, loss))
        if state.pending is not None:
            state = self._credited(state, state.pending, state.gain[state.pending.clients])
        return replace(state, X=self._contexts(state))

    def _gain(self, state: State, loss: Values) -> Values:
        """Loss change per second since the model before, per client; NaN where it can't be known."""
        change = state.loss - loss
        if self.reward == "global":
            both = np.isfinite(change)
            share = state.p[both].sum()
            change = np.full_like(loss, state.p[both] @ change[both] / share if share > 0 else np.nan)
        tau = state.tau if self.reward_tau == "client" else np.full_like(loss, state.round_tau)
        gain = np.full_like(loss, np.nan)
        np.divide(np.abs(change) if self.change == "abs" else change, tau, out=gain, where=tau > 0)
        return gain

    def _credited(self, state: State, rows: Pending, gain: Values) -> State:
        """Clients' rewards: remembered, and regressed on their contexts."""
        known = np.isfinite(gain)
        clients, gain = rows.clients[known], gain[known]
        r = state.r.copy()
        r[clients] = gain
        unit = self._unit(state.r_unit, np.abs(gain))
        posterior = state.posterior
        if not (rows.first and self.skip_first_update):
            posterior = ridge.learn(posterior, rows.X[known], gain / unit.value())
        return replace(state, posterior=posterior, r=r, r_unit=unit)

    def _timed(self, state: State, outcome: RoundOutcome) -> State:
        """Durations of those who arrived: per client, the round's, and their mean."""
        seconds = np.where(np.isfinite(outcome.signals["duration"]), outcome.signals["duration"], np.nan)
        tau = state.tau.copy()
        tau[outcome.clients] = np.where(np.isnan(seconds), tau[outcome.clients], seconds)
        known = seconds[~np.isnan(seconds)]
        round_tau = float(known.max()) if len(known) else float("nan")
        return replace(state, tau=tau, round_tau=round_tau, tau_unit=self._unit(state.tau_unit, known))

    def _unit(self, unit: Unit, sizes: Values) -> Unit:
        """The scale after more observations; a zero says nothing about scale."""
        seen = sizes[sizes > 0]
        if self.scale == "none" or (self.scale == "first_round" and unit.count):
            return unit
        return Unit(unit.total + float(seen.sum()), unit.count + len(seen))

    def _contexts(self, state: State) -> Contexts:
        """x(i) for every client, NaN where a feature is not finite."""
        timed = np.isfinite(state.tau)
        tau = np.where(timed, state.tau, state.tau[timed].mean() if timed.any() else 0.0) / state.tau_unit.value()
        X = np.column_stack([state.train.ratio, state.val.ratio, tau, state.r / state.r_unit.value()])
        return np.where(np.isfinite(X), X, np.nan)
