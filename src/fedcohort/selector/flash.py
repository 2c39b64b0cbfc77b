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
  one number, of a validation set, which says nothing about a client; reward=global has one, of the T_i (`rewards.py`).
  Ratios are over a client's first answer, L(w_0) if it was there in round 0, for the paper's L^1;
- scale=running: tau and r are divided by the running means of their sizes; raw rewards drown in gamma_t;
- tau_i in the context is a client's own last duration, because the maximum is the same for all; the reward is over the
  slowest arrival (reward_tau=round) or the client's own (client); a probe that lasts longer counts in neither;
- tau_i and r_i of a client that does not train are of its last round; Algorithm 1 measures all clients each round;
- a context is [1, 1, 0, 0] before anything is measured; a client that was never timed stands at the mean of those
  that were, an absent one keeps its last values, and one that answers NaN or infinity is scored -inf;
- a row without both losses and a positive duration is left out; a failure teaches nothing, and the third in a row
  withholds a client for a while (`round/backoff.py`).
context=lagged is Alg. 1: w_t, probed beside the training of round t, chooses S_{t+1}; fresh asks before choosing S_t.

Repairs, of no paper, each an option: form=whitened (selector=flash_whitened, `contexts.whiten`), reward=progress
(flash_progress, `rewards.py`), bandit=calibrated (flash_calibrated, `bandit/calibrated.py`). credit=answered
(flash_answered) learns from every client that answered about both models, on the contexts of the round of S_{t-1}.

Ablations: features leaves out some of the context (Fig. 4c-d) and makes d smaller, in gamma_t too unless
gamma_dim=fixed4; the duration stays in the reward. bandit=linucb, neural, restless change only the estimator
(`bandit/contextual.py`). The last two don't read gamma_t. They stand in for [5] (Cao et al. 2022, which we could not
read) and [4] (Yemini et al., which chooses actions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.bandit import ridge
from fedcohort.bandit.contextual import Bandit, Belief, Calibrated, LinUCB, Neural, Restless, Thompson
from fedcohort.component import Requirement
from fedcohort.selector import contexts, rewards
from fedcohort.selector.base import Selector, answers, begins_with_all, top
from fedcohort.selector.contexts import FEATURES, Contexts, Measurements, Pending
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

ONE_LOSS = Requirement(
    lambda run: (
        not (run.parts.selector.robust_loss and run.parts.objective.robust_loss)
        or run.parts.selector.robust_loss == run.parts.objective.robust_loss
    ),
    "{option} goes by the loss that clients train with in the paper, and its robust loss has other weights than that "
    "of {objective}: set selector.alpha, selector.beta and selector.A as the objective's are",
)


@dataclass(frozen=True)
class State:
    """What FLASH knows between rounds.

    Attributes:
        posterior: what the bandit believes.
        known: what clients' contexts are made of.
        loss: robust loss of the last model measured, NaN without an answer, [n_clients].
        gain: reward at the last measurement, whoever it is credited to, [n_clients].
        X: contexts of the next selection.
        p: n_k / sum of n (equal shares unless reward=global).
        round_tau: duration of the last round, seconds.
        server_loss: the server's validation loss of the last model, NaN unless reward=progress.
        pending: rows that wait for their reward.
    """

    posterior: Belief
    known: Measurements
    loss: Values
    gain: Values
    X: Contexts
    p: Values
    round_tau: float = float("nan")
    server_loss: float = float("nan")
    pending: Pending | None = None


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

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.choice("context", self.context, "lagged", "fresh")
        ranges.choice("credit", self.credit, "causal", "literal", "answered")
        ranges.choice("reward", self.reward, "client", "global", "progress")
        rewards.check(self.reward, self.credit, self.scale, self.bandit)
        ranges.choice("change", self.change, "abs", "signed")
        ranges.choice("reward_tau", self.reward_tau, "round", "client")
        ranges.choice("scale", self.scale, "running", "first_round", "none")
        ranges.flag("skip_first_update", self.skip_first_update)
        ranges.number("delta", self.delta, "(0, 1)")
        ranges.number("A", self.A, "(-inf, 0)")
        ranges.words("features", self.features, *FEATURES)
        ranges.choice("form", self.form, "raw", "whitened")
        ranges.choice("gamma_dim", self.gamma_dim, "kept", "fixed4")
        ranges.choice("bandit", self.bandit, "thompson", "linucb", "neural", "restless", "calibrated")
        ranges.integer("pairs", self.pairs, "[1, 1000]")
        ranges.integer("fit_steps", self.fit_steps, "[1, inf)")
        ranges.integer("states", self.states, "[2, 100]")
        for name in ("gamma_scale", "alpha", "beta", "explore"):
            ranges.number(name, getattr(self, name), "[0, inf)")
        for name in ("lam", "fit_lr"):
            ranges.number(name, getattr(self, name), "(0, inf)")

    @property
    def needs(self) -> frozenset[str]:
        val = {"val_loss"} if "val_ratio" in self.features else set()
        robust = {"robust_loss"} if self.reward != "progress" or "train_ratio" in self.features else set()
        return frozenset({"duration"} | robust | val | rewards.NEEDS[self.reward])

    @property
    def robust_loss(self) -> Mapping[str, float]:
        return {"alpha": self.alpha, "beta": self.beta, "A": self.A} if "robust_loss" in self.needs else {}

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({ONE_LOSS})

    def notices(self, choice: str) -> Sequence[str]:
        name = (
            f"selector={choice} stands in for a paper that could not be read: don't report it under that paper's name"
        )
        return (begins_with_all(choice), *((name,) if self.bandit in ("neural", "restless") else ()))

    @property
    def kept(self) -> tuple[str, ...]:
        """The features in use, in their order."""
        return tuple(name for name in FEATURES if name in self.features)

    @property
    def estimator(self) -> Bandit[Any]:
        estimators: dict[str, Bandit[Any]] = {
            "thompson": Thompson(self.lam),
            "linucb": LinUCB(self.lam),
            "neural": Neural(self.lam, self.gamma_scale, self.pairs, self.fit_steps, self.fit_lr),
            "restless": Restless(self.lam, self.states, self.explore),
            "calibrated": Calibrated(self.lam, self.gamma_scale),
        }
        return estimators[self.bandit]

    def init(self, population: Population) -> State:
        K = population.n_clients
        n = population.signals["n_train"].astype(float) if self.reward == "global" else np.ones(K)
        known, unknown = Measurements.none(K), np.full(K, np.nan)
        X, p = contexts.form(known.contexts(), self.kept, self.form), n / max(n.sum(), 1.0)
        return State(self.estimator.prior(X.shape[1], None), known, unknown, unknown, X, p)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        queries: tuple[tuple[str, Mapping[str, float]], ...] = (("robust_loss", self.robust_loss), ("val_loss", {}))
        lagged = self.context == "lagged"
        return [Probe(word, ctx.ready, options, lagged) for word, options in queries if word in self.needs]

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if self.reward == "progress":
            state = self._share(state, float(ctx.signals["server_val_loss"]))
        if self.context == "fresh" and probes:  # there are none where nobody is available
            state = self._measure(state, probes)
        if ctx.round == 0:
            state = replace(state, posterior=self.estimator.prior(state.X.shape[1], ctx.rng))
            return Selection(ctx.available, uncapped=True), state
        d = len(FEATURES if self.gamma_dim == "fixed4" else self.kept)  # Alg. 1 draws S_{t+1} with gamma_t
        gamma = self.gamma_scale * ridge.exploration(ctx.round - 1, ctx.n_clients, d, self.lam, self.delta)
        verdict, posterior = self.estimator.judge(state.posterior, state.X, gamma, ctx.round, ctx.rng)
        scores = np.where(np.isfinite(verdict.score), verdict.score, -np.inf)
        clients = top(scores, ctx.available, ctx.cohort, ctx.rng)
        posterior = self.estimator.choose(posterior, state.X[clients])
        parts, state = {"exploit": verdict.exploit, "explore": verdict.explore}, replace(state, posterior=posterior)
        return Selection(clients, scores, parts, reward=state.gain), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        arrived, first, chosen_by = outcome.clients, outcome.round == 0, state.X
        if self.context == "lagged":
            state = self._measure(state, outcome.probes)
        if self.credit == "literal":  # x_t holds tau_{t-1} and r_{t-1}, so it stays as it was measured
            gain = np.zeros(len(arrived)) if first else state.gain[arrived]
            return None, self._time(self._credit(state, Pending(arrived, state.X[arrived], first), gain), outcome)
        rows = np.arange(len(chosen_by)) if self.credit == "answered" else arrived
        state = self._time(replace(state, pending=Pending(rows, chosen_by[rows], first)), outcome)
        return None, self._renew(state)

    def trace(self, state: State) -> Mapping[str, tuple[float, float]]:
        means, deviations = self.estimator.coefficients(state.posterior)
        return {n: (float(mean), float(sd)) for n, mean, sd in zip(self.kept, means, deviations, strict=False)}

    def _measure(self, state: State, probes: Mapping[str, ProbeResult]) -> State:
        """Take in the clients' losses of w_t, which a reward may follow from, and make new contexts."""
        robust, val = answers(probes, "robust_loss"), answers(probes, "val_loss")
        loss = robust.dense(len(state.loss))
        loss[~np.isfinite(loss)] = np.nan
        fall = state.loss - loss
        known = replace(state.known, train=state.known.train.after(robust), val=state.known.val.after(val))
        state = replace(state, known=known, loss=loss)
        if self.reward != "progress":
            state = self._pay(state, rewards.pool(fall, state.p) if self.reward == "global" else fall)
        return self._renew(state)

    def _share(self, state: State, loss: float) -> State:
        """Share out the fall of the server's loss to w_t, which is known before any client is queried or selected."""
        fall = rewards.share(state.server_loss - loss, state.pending, len(state.loss))
        return self._renew(self._pay(replace(state, server_loss=loss), fall))

    def _pay(self, state: State, fall: Values) -> State:
        """Reward the pending cohort, now that its w_t was measured; NaN is a fall that can't be known."""
        seconds = state.known.tau if self.reward_tau == "client" else np.full_like(fall, state.round_tau)
        gain = rewards.per_second(fall, seconds, self.change)
        state, rows = replace(state, gain=gain, pending=None), state.pending
        return state if rows is None else self._credit(state, rows, gain[rows.clients])

    def _credit(self, state: State, rows: Pending, gain: Values) -> State:
        """Remember clients' rewards, and regress them on their contexts."""
        some = np.isfinite(gain)
        clients, gain = rows.clients[some], gain[some]
        known, posterior = state.known.rewarded(clients, gain, self.scale), state.posterior
        if not (rows.first and self.skip_first_update):
            posterior = self.estimator.learn(posterior, rows.X[some], gain / known.r_unit.value())
        return replace(state, posterior=posterior, known=known)

    def _time(self, state: State, outcome: RoundOutcome) -> State:
        """Keep the durations of the clients that arrived, and that of the slowest as the round's."""
        seconds = outcome.signals["duration"]
        slowest = float(max(seconds[np.isfinite(seconds)], default=np.nan))
        return replace(state, known=state.known.timed(outcome.clients, seconds, self.scale), round_tau=slowest)

    def _renew(self, state: State) -> State:
        """Return the state with the contexts of the next selection."""
        return replace(state, X=contexts.form(state.known.contexts(), self.kept, self.form))
