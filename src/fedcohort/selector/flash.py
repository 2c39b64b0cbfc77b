"""FLASH: linear Thompson sampling over four features of each client (Chang et al. 2024).

Chang, Ahmed, Krishnamurthy, Guler, Swami, Oymak, Roy-Chowdhury, "FLASH: Federated Learning Across Simultaneous
Heterogeneities", arXiv 2402.08769, Sec. II, Algorithms 1 and 2.

    context:  x_t(i) = [L_i(w_t) / L_i(w_0), Lval_i(w_t) / Lval_i(w_0), tau_i, r_i]
    reward:  r_t(i) = |L_i(w_t) - L_i(w_{t-1})| / tau_{t-1}, tau the duration of the slowest arrival of the round
    posterior:  V = lam I + sum x x',  b = sum r x,  theta ~ N(V^-1 b, gamma_t^2 V^-1)
    S_0:  all available clients;  S_t:  the m with the largest x_t(i)' theta

L is the robust loss on a client's training set, Lval the cross-entropy on its validation set. context=lagged is
Algorithm 1: clients answer about w_t while S_t trains, and the answers choose S_{t+1}. With context=fresh they choose
S_t. Only the selection changes; experiment=flash also trains with L.

Departures from the paper (selector=flash_literal takes back those of credit and scale):
- credit=causal: r_t is the effect of S_{t-1}, so that it is regressed on the contexts that chose S_{t-1}. Algorithm 1
  credits it to S_t (credit=literal, with r_0 = 0).
- reward=client, in flash_literal too: L is each client's own, as in Sec. II-C and Eq. 3. Line 20 of Algorithm 1 has one
  number of a validation set, which does not distinguish clients. reward=global has one number (`rewards.py`).
- The ratios divide by a client's first answer, which is L(w_0) where it was available in round 0, not by L^1.
- scale=running: tau and r are divided by the running means of their sizes, as raw rewards are far below gamma_t.
- tau_i in the context is the client's own last duration, since the maximum is the same for all. The reward divides by
  the slowest arrival (reward_tau=round) or by the client's own (client). A longer query counts in neither.
- tau_i and r_i of a client that did not train are of its last round. Algorithm 1 measures all clients in each round.
- Missing values: a context is [1, 1, 0, 0] before the first measurement. A client never timed has the mean duration of
  the others, an absent one keeps its last values, one with an answer that is not finite scores -inf.
- Rows without both losses and a positive duration are left out. Three failures in a row withhold a client for some
  rounds (`round/backoff.py`).

Not from the paper: selector=flash_whitened, flash_progress, flash_calibrated and flash_answered. `features` (Fig. 4c-d)
lowers d in gamma_t unless gamma_dim=fixed4. bandit=neural and bandit=restless ignore gamma_t, and stand in for
references [5] (Cao et al. 2022, text not available) and [4] (Yemini et al. 2021).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.bandit import contextual, ridge
from fedcohort.component import Requirement
from fedcohort.selector import contexts, rewards
from fedcohort.selector.base import Selector, find_answers, first_round_notice, top
from fedcohort.selector.contexts import FEATURE_NAMES, ClientMeasurements, PendingRewards, State
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class Flash(Selector[State]):
    """FLASH, a contextual-bandit client selector. `configs/selector/flash.yaml` explains each choice of an option.

    Attributes:
        context: when clients are queried: in the previous round ("lagged"), or before the selection ("fresh").
        credit: clients that are credited with a change of loss: the cohort that caused it ("causal"), the next cohort
            ("literal"), or all that answered ("answered").
        reward: loss that the reward is computed from: each client's, the mean over clients ("global"), or the server's
            ("progress").
        change: whether an increase of the loss counts like a decrease ("abs"), or against the client ("signed").
        reward_tau: duration that a change of loss is divided by, of the "round" or of the "client".
        scale: rounds whose means divide durations and rewards: all so far ("running"), the "first_round", or "none".
        skip_first_update: whether the equal contexts of round 0 are left out of the regression.
        gamma_scale: factor of the exploration width.
        delta: confidence parameter of the exploration width, in (0, 1).
        lam: ridge penalty of the regression.
        alpha, beta, A: in the robust loss, weights of pseudo-labels and of reverse cross-entropy, and value of log 0.
        features: names of the context's features.
        form: contexts unchanged ("raw"), or centred, decorrelated and scaled, with an intercept ("whitened").
        gamma_dim: dimension in the exploration width: the number of features ("kept"), or 4 ("fixed4").
        bandit: name of the estimator of the reward.
        pairs: pairs of hidden units of bandit=neural.
        fit_steps, fit_lr: steps of Adam per round and learning rate of bandit=neural.
        states: hidden states of bandit=restless.
        explore: factor of the logarithm in the number of random cohorts of bandit=restless.
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
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({rewards.MATCHING_ROBUST_LOSS_REQUIREMENT})

    def __post_init__(self) -> None:
        ranges.choice("context", self.context, "lagged", "fresh")
        ranges.choice("credit", self.credit, "causal", "literal", "answered")
        ranges.choice("reward", self.reward, "client", "global", "progress")
        rewards.check_reward_options(self.reward, self.credit, self.scale, self.bandit)
        ranges.choice("change", self.change, "abs", "signed")
        ranges.choice("reward_tau", self.reward_tau, "round", "client")
        ranges.choice("scale", self.scale, "running", "first_round", "none")
        ranges.flag("skip_first_update", self.skip_first_update)
        ranges.number("delta", self.delta, "(0, 1)")
        ranges.number("A", self.A, "(-inf, 0)")
        ranges.words("features", self.features, *FEATURE_NAMES)
        ranges.choice("form", self.form, "raw", "whitened")
        ranges.choice("gamma_dim", self.gamma_dim, "kept", "fixed4")
        ranges.choice("bandit", self.bandit, "thompson", "linucb", "neural", "restless", "calibrated")
        ranges.integer("pairs", self.pairs, "[1, 1000]")
        ranges.integer("fit_steps", self.fit_steps, "[1, inf)")
        ranges.integer("states", self.states, "[2, 100]")
        for option_name in ("gamma_scale", "alpha", "beta", "explore"):
            ranges.number(option_name, getattr(self, option_name), "[0, inf)")
        for option_name in ("lam", "fit_lr"):
            ranges.number(option_name, getattr(self, option_name), "(0, inf)")

    @property
    def needs(self) -> frozenset[str]:
        val_signals = {"val_loss"} if "val_ratio" in self.features else set()
        robust_signals = {"robust_loss"} if self.reward != "progress" or "train_ratio" in self.features else set()
        return frozenset({"duration"} | robust_signals | val_signals | rewards.SIGNALS_BY_REWARD[self.reward])

    @property
    def robust_loss(self) -> Mapping[str, float]:
        return {"alpha": self.alpha, "beta": self.beta, "A": self.A} if "robust_loss" in self.needs else {}

    def notices(self, selector_name: str) -> Sequence[str]:
        notice = f"selector={selector_name} approximates a paper whose text was not available: report it as such"
        return (first_round_notice(selector_name), *((notice,) if self.bandit in ("neural", "restless") else ()))

    @property
    def used_features(self) -> tuple[str, ...]:
        """Return the names of the context's features in use, in the order of `FEATURE_NAMES`."""
        return tuple(feature_name for feature_name in FEATURE_NAMES if feature_name in self.features)

    @property
    def reward_bandit(self) -> contextual.Bandit[Any]:
        bandits: dict[str, contextual.Bandit[Any]] = {
            "thompson": contextual.Thompson(self.lam),
            "linucb": contextual.LinUCB(self.lam),
            "neural": contextual.NeuralBandit(self.lam, self.gamma_scale, self.pairs, self.fit_steps, self.fit_lr),
            "restless": contextual.RestlessBandit(self.lam, self.states, self.explore),
            "calibrated": contextual.CalibratedThompson(self.lam, self.gamma_scale),
        }
        return bandits[self.bandit]

    def init(self, population: Population) -> State:
        K = population.n_clients
        n = population.signals["n_train"].astype(float) if self.reward == "global" else np.ones(K)
        measurements, nan_by_client = ClientMeasurements.initial_measurements(K), np.full(K, np.nan)
        X, p = contexts.select_features(measurements.contexts(), self.used_features, self.form), n / max(n.sum(), 1.0)
        return State(self.reward_bandit.prior(X.shape[1], None), measurements, nan_by_client, nan_by_client, X, X, p)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        options_by_signal: dict[str, Mapping[str, float]] = {"robust_loss": self.robust_loss, "val_loss": {}}
        signals = options_by_signal.keys() & self.needs
        return [Probe(s, ctx.ready, options_by_signal[s], self.context == "lagged") for s in sorted(signals)]

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if self.reward == "progress" and not ctx.is_refill:  # the server's loss of w_t is known before any query
            server_loss = float(ctx.signals["server_val_loss"])
            loss_decrease = rewards.share_loss_decrease(state.server_loss - server_loss, state.pending, len(state.loss))
            state = self._renew_contexts(self._learn_rewards(replace(state, server_loss=server_loss), loss_decrease))
        if self.context == "fresh" and probes and not ctx.is_refill:  # no probes where no client is available
            state = self._store_loss_answers(state, probes)
        if ctx.round == 0:
            state = replace(state, posterior=self.reward_bandit.prior(state.X.shape[1], ctx.rng))
            return Selection(ctx.available, uncapped=True), replace(state, sent_X=state.X)
        # Alg. 1 draws S_{t+1} with gamma_t.
        d = len(FEATURE_NAMES if self.gamma_dim == "fixed4" else self.used_features)
        gamma = self.gamma_scale * ridge.exploration_width(ctx.round - 1, ctx.n_clients, d, self.lam, self.delta)
        predicted_rewards, posterior = self.reward_bandit.score(state.posterior, state.X, gamma, ctx.round, ctx.rng)
        scores = np.where(np.isfinite(predicted_rewards.score), predicted_rewards.score, -np.inf)
        clients = top(scores, ctx.available, ctx.cohort, ctx.rng)
        sent_X = contexts.replace_contexts(state.sent_X, state.X, clients)
        state = replace(state, sent_X=sent_X, posterior=self.reward_bandit.record_cohort(posterior, state.X[clients]))
        score_terms = {"exploit": predicted_rewards.expected_reward, "explore": predicted_rewards.exploration_term}
        return Selection(clients, scores, score_terms, reward=state.latest_rewards), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        arrived_ids, is_first_round, used_contexts = outcome.clients, outcome.round == 0, state.sent_X
        current_contexts = state.X
        if self.context == "lagged":
            state = self._store_loss_answers(state, outcome.probes)
        if self.credit == "literal":  # x_t contains tau_{t-1} and r_{t-1}, so it is used as it was measured
            client_rewards = np.zeros(len(arrived_ids)) if is_first_round else state.latest_rewards[arrived_ids]
            pending_rewards = PendingRewards(arrived_ids, state.X[arrived_ids], is_first_round)
            return None, self._store_durations(self._store_rewards(state, pending_rewards, client_rewards), outcome)
        rewarded_ids = arrived_ids
        if self.credit == "answered":  # all clients, whose answers are of this round
            rewarded_ids, used_contexts = np.arange(len(current_contexts)), current_contexts
        state = replace(state, pending=PendingRewards(rewarded_ids, used_contexts[rewarded_ids], is_first_round))
        return None, self._renew_contexts(self._store_durations(state, outcome))

    def trace(self, state: State) -> Mapping[str, tuple[float, float]]:
        coefficient_moments = zip(self.used_features, *self.reward_bandit.coefficients(state.posterior), strict=False)
        return {n: (float(mean_coefficient), float(coef_sd)) for n, mean_coefficient, coef_sd in coefficient_moments}

    def _store_loss_answers(self, state: State, probes: Mapping[str, ProbeResult]) -> State:
        """Return the state with the losses in `probes`, the answers by signal, and with new rewards and contexts."""
        robust_answers, val_answers = find_answers(probes, "robust_loss"), find_answers(probes, "val_loss")
        robust_losses = robust_answers.dense(len(state.loss))
        robust_losses[~np.isfinite(robust_losses)] = np.nan
        loss_decrease = state.loss - robust_losses
        train_ratios, val_ratios = state.measurements.train.with_loss_answers(robust_answers), state.measurements.val
        measurements = replace(state.measurements, train=train_ratios, val=val_ratios.with_loss_answers(val_answers))
        state = replace(state, measurements=measurements, loss=robust_losses)
        if self.reward == "global":
            loss_decrease = rewards.mean_loss_decrease(loss_decrease, state.p)
        return self._renew_contexts(state if self.reward == "progress" else self._learn_rewards(state, loss_decrease))

    def _learn_rewards(self, state: State, loss_decrease: Values) -> State:
        """Return the state after learning the rewards of its pending contexts: `loss_decrease`, in nats, per second."""
        tau = state.measurements.tau if self.reward_tau == "client" else np.full(len(state.loss), state.round_tau)
        latest_rewards = rewards.reward_per_second(loss_decrease, tau, self.change)
        state, pending = replace(state, latest_rewards=latest_rewards, pending=None), state.pending
        return state if pending is None else self._store_rewards(state, pending, latest_rewards[pending.clients])

    def _store_rewards(self, state: State, pending_rewards: PendingRewards, latest_rewards: Values) -> State:
        """Return the state after the bandit learns from `latest_rewards` [n] of the n contexts in `pending_rewards`."""
        has_finite_reward = np.isfinite(latest_rewards)
        clients, latest_rewards = pending_rewards.clients[has_finite_reward], latest_rewards[has_finite_reward]
        measurements, posterior = state.measurements.with_rewards(clients, latest_rewards, self.scale), state.posterior
        if not (pending_rewards.is_first_round and self.skip_first_update):
            scaled_rewards = latest_rewards / measurements.r_unit.feature_scale()
            posterior = self.reward_bandit.learn(posterior, pending_rewards.X[has_finite_reward], scaled_rewards)
        return replace(state, posterior=posterior, measurements=measurements)

    def _store_durations(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state with the job durations of round `outcome`; the longest one is the duration of the round."""
        durations_s = outcome.signals["duration"]
        round_s = float(max(durations_s[np.isfinite(durations_s)], default=np.nan))
        measurements = state.measurements.with_durations(outcome.clients, durations_s, self.scale)
        return replace(state, measurements=measurements, round_tau=round_s)

    def _renew_contexts(self, state: State) -> State:
        """Return the state with contexts for the next selection, computed from the current measurements."""
        return replace(state, X=contexts.select_features(state.measurements.contexts(), self.used_features, self.form))
