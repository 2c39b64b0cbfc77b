"""FedCor: clients whose loss changes correlate with those of all clients, by a Gaussian process (Tang et al. 2022).

Tang, Ning, Wang, Sun, Wang, Li, Chen, "FedCor: Correlation-Based Active Client Selection Strategy for Heterogeneous
Federated Learning", CVPR 2022, arXiv 2103.13822. Implemented from the paper and the authors' code.

    model:  dF(t) = F(w_{t+1}) - F(w_t) of all clients ~ N(mu, Sigma);  Sigma = X'X + .01^2 I, X [dim, K]
    mean:  mu_k = sum_e gamma^(t-e) dF_k(e) / sum_e gamma^(t-e)
    fit:  X = argmin -sum_e gamma^(t-e) log N(dF(e); mu, Sigma)
    selection, m times:  k* = argmax_k alpha_k sum_i p_i Sigma_ik / sqrt(Sigma_kk);  Sigma <- Sigma given k*
    discount:  alpha_k <- beta alpha_k for k in S;  alpha = 1 after each shadow round
    kernel=se:  Sigma_ij = f^2 exp(-||x_i - x_j||^2 / 2 l) + .01^2 [i = j], x_i columns of X; f is fitted too, from 1

Rounds 0 to W (warmup) are random. All clients are queried for F_k before each of them and before round W + 1, where X
is fitted first. Before round t with t > W + 1 and t - 1 a multiple of `interval` there is a shadow round: m random
clients train, all clients are queried about the resulting model, and that model is discarded. Its loss changes count as
those of round t, and X is fitted again. In T rounds all clients are queried W + 2 times, and twice more for each
multiple of `interval` in W + 1 .. T - 2.

Departures from the paper:
- The code fits by marginal likelihood, or by leaving out clients one by one, which scores a single client there. Only
  the former is implemented. Of its kernels the linear one and the squared exponential are.
- dF of a shadow round is dated t, the round before which it is made. The code dates it t - 1: it gives the other dF 1 /
  gamma times the relative weight, and forgets them one round later.
- The learning rate of a fit falls to 0 in its second half: a constant rate amplifies rounding (`bandit/gaussian.py`).
- The sum over i is over all clients, with p_i = n_i / sum n as in the code. The code averages models with equal
  weights; the shadow round here weighs updates by n.
- A client that is away, or whose loss is not finite or above 1e12, is missing from that round's dF.
- Failed clients are discounted like arrivals (the paper's never fail). A client that failed three times in a row is
  withheld for some rounds (`round/backoff.py`), or the clients of the largest scores could stall the run.
- A client with a variance below 1e-10 is chosen last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.selector.base import Selector, draw, find_answers, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

if TYPE_CHECKING:
    from fedcohort.bandit.gaussian import Kernel

CLIENT_NOISE_STD = 0.01  # standard deviation of the clients' independent noise
MIN_LOSS_VARIANCE = 1e-10
MAX_LOSS = 1e12  # nats


@dataclass(frozen=True)
class State:
    """State of FedCor that is kept between rounds.

    Attributes:
        X: feature vectors of the clients, which determine the covariance of their loss changes, [dim, n_clients];
            None before the first fit.
        f: scale of the covariance with kernel=se.
        p: share of all training samples that each client has, [n_clients].
        mu: mean of each client's loss changes, in nats, [n_clients].
        alpha: discount factor of each client's score, [n_clients].
        loss_changes: change of each client's loss in nats by round, [n_clients] each; NaN if unknown.
        loss: loss of the last global model that all clients were queried about, in nats, [n_clients]; NaN if unknown.
        last_query_round: last round in which clients were queried for their loss, -1 before the first.
    """

    X: Float64[np.ndarray, "d k"] | None
    f: float
    p: Values
    mu: Values
    alpha: Values
    loss_changes: dict[int, Values]
    loss: Values
    last_query_round: int


@dataclass(frozen=True)
class FedCor(Selector[State]):
    """FedCor, a client selector: a Gaussian process models how the clients' loss changes correlate.

    Attributes:
        warmup: last round (from 0) with a random cohort. Until round warmup + 1 all clients are queried for their loss.
        interval: rounds between two fits after the warm-up; for each fit a random cohort trains a model that is
            discarded.
        beta: factor of a client's score after each selection, in (0, 1].
        gamma: factor of a loss change's weight in the fit per round of age.
        memory: number of rounds after which a loss change is forgotten.
        dim: length of a client's feature vector.
        update_mean: whether the mean of the loss changes is fitted; otherwise it is 0.
        first_steps: steps of Adam in the fit at the end of the warm-up.
        steps: steps of Adam in each later fit.
        tie: which of equal scores wins: a "random" one, or the lowest "id".
        kernel: kernel of the Gaussian process, "linear" or "se" (squared exponential).
        length: scale of squared distances between features with kernel=se.
    """

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

    def memory_bytes(self, n_clients: int, n_params: int) -> float:
        """Return the bytes of two covariance matrices of `n_clients` clients' loss changes, whatever `n_params`."""
        return 16 * n_clients**2

    def init(self, population: Population) -> State:
        K, n = population.n_clients, population.signals["n_train"].astype(float)
        p = n / max(float(n.sum()), 1.0)
        return State(None, 1.0, p, np.zeros(K), np.ones(K), {}, np.full(K, np.nan), -1)

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        if ctx.round <= self.warmup + 1:
            return (Probe("loss", ctx.ready),)
        if not self.is_shadow_round(ctx.round):
            return ()
        trained_ids = draw(np.ones(ctx.n_clients), ctx.ready, ctx.cohort, ctx.rng)
        return Probe("loss", ctx.ready), Probe("shadow_loss", ctx.ready, {"trainers": tuple(trained_ids.tolist())})

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if not ctx.is_refill:
            state = self._store_losses(state, ctx.round, probes)
        if ctx.round <= self.warmup:
            return Selection(draw(np.ones(ctx.n_clients), ctx.available, ctx.cohort, ctx.rng)), state
        if state.X is None or ("shadow_loss" in probes and not ctx.is_refill):
            state = self._fit_gaussian_process(state, ctx)
        return self._choose_cohort(state, ctx), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        if outcome.round <= self.warmup:
            return None, state
        alpha = state.alpha.copy()
        alpha[outcome.clients] *= self.beta
        alpha[outcome.failed] *= self.beta
        return None, replace(state, alpha=alpha)

    def is_shadow_round(self, round: int) -> bool:
        """Return whether clients report in `round` the loss of a model that is trained for the fit and discarded."""
        return round - 1 > self.warmup and (round - 1) % self.interval == 0

    def _store_losses(self, state: State, round: int, probes: Mapping[str, ProbeResult]) -> State:
        """Return the state with the losses in `probes` of the global model, and of a shadow round's model if any.

        The losses of the round's global model complete the loss changes of the previous round.
        """
        if "loss" not in probes:
            return state
        current_losses = losses_by_client(find_answers(probes, "loss"), len(state.p))
        loss_changes, alpha = {e: dF for e, dF in state.loss_changes.items() if round - e <= self.memory}, state.alpha
        if round <= self.warmup + 1 and state.last_query_round == round - 1 >= 0:
            loss_changes[round - 1] = current_losses - state.loss
        if "shadow_loss" in probes:
            loss_changes[round] = losses_by_client(find_answers(probes, "shadow_loss"), len(state.p)) - current_losses
            alpha = np.ones_like(alpha)
        return replace(state, loss_changes=loss_changes, alpha=alpha, loss=current_losses, last_query_round=round)

    def _fit_gaussian_process(self, state: State, ctx: RoundContext) -> State:
        """Return the state with the Gaussian process fitted to the loss changes before the round of `ctx`."""
        from fedcohort.bandit import gaussian  # noqa: PLC0415 - imports torch

        X = ctx.rng.standard_normal((self.dim, ctx.n_clients)) / np.sqrt(self.dim) if state.X is None else state.X
        if not state.loss_changes:
            return replace(state, X=X)
        Y = np.stack(list(state.loss_changes.values()))
        age_weights = self.gamma ** (ctx.round - np.array(list(state.loss_changes), dtype=np.float64))
        mu = gaussian.weighted_mean(Y, age_weights) if self.update_mean else state.mu
        n_adam_steps = self.first_steps if state.X is None else self.steps
        observations = gaussian.Observations(Y, mu, age_weights)
        X, f = gaussian.fit_gaussian_process(self._make_client_kernel(), X, state.f, observations, n_adam_steps)
        return replace(state, X=X, f=f, mu=mu)

    def _make_client_kernel(self) -> "Kernel":
        from fedcohort.bandit import gaussian  # noqa: PLC0415 - imports torch

        if self.kernel == "linear":
            return gaussian.LinearKernel(CLIENT_NOISE_STD)
        return gaussian.SquaredExponentialKernel(CLIENT_NOISE_STD, self.length)

    def _choose_cohort(self, state: State, ctx: RoundContext) -> Selection:
        """Return the cohort of round `ctx`; its score terms are each client's discount and position in the cohort."""
        if state.X is None:
            raise ValueError("selector=fedcor has no scores yet: call `select` in all rounds of the warm-up before")
        sigma = self._make_client_kernel().covariance(state.X, state.f)
        cohort_order, scores_at_each_choice = self.choose_cohort_in_order(sigma, state.p, state.alpha, ctx)
        cohort_rank = np.full(ctx.n_clients, np.nan)
        cohort_rank[cohort_order] = np.arange(len(cohort_order))
        first_choice_scores = scores_at_each_choice[0] if scores_at_each_choice else np.full(ctx.n_clients, np.nan)
        return Selection(np.sort(cohort_order), first_choice_scores, {"discount": state.alpha, "place": cohort_rank})

    def choose_cohort_in_order(
        self, sigma: Float64[np.ndarray, "k k"], p: Values, alpha: Values, ctx: RoundContext
    ) -> tuple[Ids, list[Values]]:
        """Return the cohort's ids in the order of choice, and all clients' scores at each choice, [n_clients] each.

        Args:
            sigma: covariance of the clients' loss changes, [n_clients, n_clients].
            p: share of the training samples of each client, [n_clients].
            alpha: discount factor of each client's score, [n_clients].
            ctx: the round's context. A client whose loss change has a variance below 1e-10 scores -inf.
        """
        from fedcohort.bandit import gaussian  # noqa: PLC0415 - imports torch

        cohort_order, remaining_ids, scores_at_each_choice = np.empty(0, np.int64), ctx.available, list[Values]()
        for _ in range(min(ctx.cohort, len(remaining_ids))):
            variances = np.diag(sigma)
            has_varying_loss = variances >= MIN_LOSS_VARIANCE
            scores = np.where(
                has_varying_loss, alpha * (p @ sigma) / np.sqrt(np.where(has_varying_loss, variances, 1.0)), -np.inf
            )
            (k,) = top(scores, remaining_ids, 1, ctx.rng, self.tie)
            cohort_order = np.append(cohort_order, k)
            remaining_ids = remaining_ids[remaining_ids != k]
            scores_at_each_choice.append(scores)
            sigma = gaussian.condition_covariance(sigma, int(k)) if has_varying_loss[k] else sigma
        return cohort_order, scores_at_each_choice


def losses_by_client(loss_answers: ProbeResult, n_clients: int) -> Values:
    """Return each client's loss in `loss_answers`, in nats, [n_clients]; NaN without an answer below 1e12."""
    client_losses = loss_answers.dense(n_clients)
    return np.where(np.abs(client_losses) < MAX_LOSS, client_losses, np.nan)
