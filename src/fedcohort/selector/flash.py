"""FLASH: linear Thompson sampling over four features of a client (Chang et al.).

Chang, Ahmed, Krishnamurthy, Guler, Swami, Oymak, Roy-Chowdhury, "FLASH: Federated Learning Across Simultaneous
Heterogeneities", Sec. II, Alg. 1 and 2.

    x_t(i) = [L_i(w_t) / L_i(w_0), Lval_i(w_t) / Lval_i(w_0), tau_i, r_i],   L the robust loss on T_i, Lval CE on V_i
    r_t(i) = |L_i(w_t) - L_i(w_{t-1})| / tau_{t-1},   tau = max_{i in S} T_i, the slowest arrival of the round
    V = lam I + sum x x',   b = sum r x,   theta ~ N(V^-1 b, gamma_t^2 V^-1),   S = top m of x'theta;   S_0 = everybody

It chooses clients and no more: they minimise the run's objective (ce); experiment=flash adds the paper's.

Departures from the paper (selector=flash_literal takes back credit and scale, and nothing else):
- credit=causal: r_t is what S_{t-1} brought about, so it is regressed on the contexts that chose S_{t-1}; Alg. 1
  credits it to S_t (literal, with r_0 = 0);
- reward=client, in flash_literal too: L is each client's on its T_i, as in Sec. II-C and Eq. 3. Alg. 1 (line 20) has
  one number, of a validation set, which says nothing about a client; reward=global has one, of the T_i. Ratios are
  over a client's first answer, L(w_0) if it was there in round 0, for the paper's L^1;
- scale=running: tau and r are divided by the running means of their sizes; raw rewards drown in gamma_t;
- tau_i in the context is a client's own last duration, because the maximum is the same for all; the reward is over the
  slowest arrival (reward_tau=round) or the client's own (client); a probe that lasts longer counts in neither;
- a context is [1, 1, 0, 0] before anything is measured; a client that was never timed stands at the mean of those
  that were, an absent one keeps its last values, and one that answers NaN or infinity is scored -inf;
- a row without both losses and a positive duration is left out; a failure teaches nothing, and the third in a row
  makes a client rest for a while (`backoff.py`).
context=lagged is Alg. 1: w_t, probed beside the training of round t, chooses S_{t+1}; fresh asks before choosing S_t.

form=whitened (selector=flash_whitened, of no paper) has contexts centred, decorrelated and scaled over the clients,
with an intercept: the two ratios are nearly one feature, and without an intercept a draw of theta ranks clients along
one line, forwards or backwards. gamma_t is then for contexts of size 1, as its theory has them.

Ablations: features leaves some of the context out (Fig. 4c-d) and makes d smaller, in gamma_t too unless
gamma_dim=fixed4; the duration stays in the reward. bandit=linucb, neural, restless change the estimator alone: LinUCB
on the same posterior, NeuralUCB and a hidden Markov bandit (`fedcohort.bandit`). The last two don't read gamma_t, and
are our stand-ins for [5] (Cao et al. 2022, which we could not read) and [4] (Yemini et al., which chooses actions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedcohort import ranges
from fedcohort.bandit import ridge
from fedcohort.bandit.contextual import Bandit, LinUCB, Neural, Restless, Thompson
from fedcohort.bandit.neural import Net
from fedcohort.bandit.restless import Hidden
from fedcohort.bandit.ridge import Ridge
from fedcohort.selector import backoff
from fedcohort.selector.backoff import Backoff
from fedcohort.selector.base import Selector, answers, top
from fedcohort.selector.contexts import FEATURES, UNKNOWN, Baseline, Contexts, Pending, Unit, whiten
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class State:
    """Per client: train, val: the loss ratios.

    Attributes:
        loss: robust loss of the last model measured, NaN without an answer.
        gain: reward at that measurement, whoever it is credited to.
        r: last reward credited.
        tau: last duration, seconds.
        X: contexts of the next selection.
        p: n_k / sum of n (equal shares unless reward=global).
        round_tau: duration of the last round, seconds.
        tau_unit, r_unit: the scales of tau and r.
        rests: of who failed.
    """

    posterior: Ridge | Net | Hidden
    train: Baseline
    val: Baseline
    loss: Values
    gain: Values
    r: Values
    tau: Values
    X: Contexts
    p: Values
    round_tau: float = float("nan")
    tau_unit: Unit = UNKNOWN
    r_unit: Unit = UNKNOWN
    pending: Pending | None = None
    rests: Backoff = backoff.NOBODY


@dataclass(frozen=True)
class Flash(Selector[State]):
    """The selector; the module and configs/selector/flash.yaml explain its options.

    Attributes:
        delta, lam, gamma_scale: the bandit's.
        alpha, beta, A: the robust loss's (Eq. 3).
        pairs, fit_steps, fit_lr: the neural bandit's.
        states, explore: the restless bandit's.
    """

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
    features: Sequence[str]
    form: str
    gamma_dim: str
    bandit: str
    pairs: int
    fit_steps: int
    fit_lr: float
    states: int
    explore: float

    def __post_init__(self) -> None:
        ranges.choice("context", self.context, "lagged", "fresh")
        ranges.choice("credit", self.credit, "causal", "literal")
        ranges.choice("reward", self.reward, "client", "global")
        ranges.choice("change", self.change, "abs", "signed")
        ranges.choice("reward_tau", self.reward_tau, "round", "client")
        ranges.choice("scale", self.scale, "running", "first_round", "none")
        ranges.flag("skip_first_update", self.skip_first_update)
        ranges.number("delta", self.delta, "(0, 1)")
        ranges.number("A", self.A, "(-inf, 0)")
        ranges.words("features", self.features, *FEATURES)
        ranges.choice("form", self.form, "raw", "whitened")
        ranges.choice("gamma_dim", self.gamma_dim, "kept", "fixed4")
        ranges.choice("bandit", self.bandit, "thompson", "linucb", "neural", "restless")
        ranges.integer("pairs", self.pairs, "[1, 1000]")
        ranges.integer("fit_steps", self.fit_steps, "[1, inf)")
        ranges.integer("states", self.states, "[2, 100]")
        for name in ("gamma_scale", "alpha", "beta", "explore"):
            ranges.number(name, getattr(self, name), "[0, inf)")
        for name in ("lam", "fit_lr"):
            ranges.number(name, getattr(self, name), "(0, inf)")

    @property
    def needs(self) -> frozenset[str]:
        shares = {"n_train"} if self.reward == "global" else set()
        val = {"val_loss"} if "val_ratio" in self.features else set()
        return frozenset({"robust_loss", "duration"} | shares | val)

    @property
    def kept(self) -> tuple[str, ...]:
        """The features in use, in their order."""
        return tuple(name for name in FEATURES if name in self.features)

    @property
    def width(self) -> int:
        """The length of a context."""
        return len(self.kept) + (self.form == "whitened")

    @property
    def estimator(self) -> Bandit[Any]:
        estimators: dict[str, Bandit[Any]] = {
            "thompson": Thompson(self.lam),
            "linucb": LinUCB(self.lam),
            "neural": Neural(self.lam, self.gamma_scale, self.pairs, self.fit_steps, self.fit_lr),
            "restless": Restless(self.lam, self.states, self.explore),
        }
        return estimators[self.bandit]

    def init(self, population: Population) -> State:
        K = population.n_clients
        n = population.signals["n_train"].astype(float) if self.reward == "global" else np.ones(K)
        unknown, blank = np.full(K, np.nan), Baseline(np.full(K, np.nan), np.ones(K))
        posterior, X = self.estimator.prior(self.width, None), np.tile([1.0, 1.0, 0.0, 0.0], (K, 1))
        p = n / max(n.sum(), 1.0)
        return State(posterior, blank, blank, unknown, unknown, np.zeros(K), unknown, self._mask(X), p)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        lagged = self.context == "lagged"
        robust = {"alpha": self.alpha, "beta": self.beta, "A": self.A}
        probes = (Probe("robust_loss", ctx.available, robust, concurrent=lagged),)
        return (*probes, Probe("val_loss", ctx.available, concurrent=lagged)) if "val_loss" in self.needs else probes

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if self.context == "fresh" and probes:  # there are none where nobody is available
            state = self._measure(state, probes)
        if ctx.round == 0:
            state = replace(state, posterior=self.estimator.prior(self.width, ctx.rng))
            return Selection(ctx.available, uncapped=True), state
        d = len(FEATURES if self.gamma_dim == "fixed4" else self.kept)  # Alg. 1 draws S_{t+1} with gamma_t
        gamma = self.gamma_scale * ridge.exploration(ctx.round - 1, ctx.n_clients, d, self.lam, self.delta)
        verdict, posterior = self.estimator.judge(state.posterior, state.X, gamma, ctx.round, ctx.rng)
        scores = np.where(np.isfinite(verdict.score), verdict.score, -np.inf)
        clients = top(scores, backoff.ready(state.rests, ctx).available, ctx.cohort, ctx.rng)
        posterior = self.estimator.choose(posterior, state.X[clients])
        parts = {"exploit": verdict.exploit, "explore": verdict.explore}
        return Selection(clients, scores, parts, reward=state.gain), replace(state, posterior=posterior)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        arrived, first, chosen_by = outcome.clients, outcome.round == 0, state.X
        state = replace(state, rests=backoff.after(state.rests, outcome))
        if self.context == "lagged":
            state = self._measure(state, outcome.probes)
        if self.credit == "literal":
            gain = np.zeros(len(arrived)) if first else state.gain[arrived]
            state = self._credit(state, Pending(arrived, state.X[arrived], first), gain)
            return None, self._time(state, outcome)  # x_t holds tau_{t-1} and r_{t-1}, so it stays as it was measured
        state = self._time(replace(state, pending=Pending(arrived, chosen_by[arrived], first)), outcome)
        return None, replace(state, X=self._contexts(state))

    def trace(self, state: State) -> Mapping[str, tuple[float, float]]:
        means, deviations = self.estimator.coefficients(state.posterior)
        return {n: (float(mean), float(sd)) for n, mean, sd in zip(self.kept, means, deviations, strict=False)}

    def _measure(self, state: State, probes: Mapping[str, ProbeResult]) -> State:
        """Pay the pending cohort its reward, now that w_t was measured, and make new contexts."""
        robust, val = answers(probes, "robust_loss"), answers(probes, "val_loss")
        loss = robust.dense(len(state.loss))
        loss[~np.isfinite(loss)] = np.nan
        state = replace(state, train=state.train.after(robust), val=state.val.after(val))
        state = replace(state, loss=loss, gain=self._gain(state, loss))
        if state.pending is not None:
            state = self._credit(state, state.pending, state.gain[state.pending.clients])
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

    def _credit(self, state: State, rows: Pending, gain: Values) -> State:
        """Remember clients' rewards, and regress them on their contexts."""
        known = np.isfinite(gain)
        clients, gain = rows.clients[known], gain[known]
        r = state.r.copy()
        r[clients] = gain
        unit = state.r_unit.after(np.abs(gain), self.scale)
        posterior = state.posterior
        if not (rows.first and self.skip_first_update):
            posterior = self.estimator.learn(posterior, rows.X[known], gain / unit.value())
        return replace(state, posterior=posterior, r=r, r_unit=unit)

    def _time(self, state: State, outcome: RoundOutcome) -> State:
        """Keep the durations of those who arrived: per client, the round's, and their mean."""
        seconds = np.where(np.isfinite(outcome.signals["duration"]), outcome.signals["duration"], np.nan)
        tau = state.tau.copy()
        tau[outcome.clients] = np.where(np.isnan(seconds), tau[outcome.clients], seconds)
        known = seconds[~np.isnan(seconds)]
        round_tau = float(known.max()) if len(known) else float("nan")
        return replace(state, tau=tau, round_tau=round_tau, tau_unit=state.tau_unit.after(known, self.scale))

    def _contexts(self, state: State) -> Contexts:
        """x(i) for every client, NaN where a feature is not finite."""
        timed = np.isfinite(state.tau)
        tau = np.where(timed, state.tau, state.tau[timed].mean() if timed.any() else 0.0) / state.tau_unit.value()
        X = np.column_stack([state.train.ratio, state.val.ratio, tau, state.r / state.r_unit.value()])
        return self._mask(np.where(np.isfinite(X), X, np.nan))

    def _mask(self, X: Contexts) -> Contexts:
        columns = [FEATURES.index(name) for name in self.kept]
        kept = np.ascontiguousarray(X[:, columns])  # as a resume finds it, to the last bit
        return whiten(kept) if self.form == "whitened" else kept
