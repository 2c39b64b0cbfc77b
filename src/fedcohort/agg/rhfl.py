"""RHFL: models are aligned on a proxy, and weigh more where losses are low and decreasing (Fang and Ye 2022).

Fang, Ye, "Robust Federated Learning with Noisy and Heterogeneous Clients", CVPR 2022, DOI 10.1109/CVPR52688.2022.00983.
Implemented from the authors' code, here with one global model.

    L_i:  mean symmetric loss of w_t on T_i (signal `sce_loss`)
    F_i:  max(L_i^before - L_i, 0) / L_i, quality 1 / L times learning efficiency;  before: i's last participation
    W_i:  1 / (K - 1) + beta F_i / sum_j F_j, over the K clients that arrived
    omega:  softmax(W), the client confidence (CCR)
    omega with advised weights p:  omega_i = p_i e^W_i / sum_j p_j e^W_j
    alignment:  on each batch of the proxy every w_i descends sum_{j != i} omega_j KL(p_j || p_i), all p_j from before
    direction:  sum_i omega_i (w_i - w_t)

The sum in the alignment has the gradient of (1 - omega_i) KL(mixture of the others || p_i), so that K terms are
computed, not K^2. Clients train with the same loss: agg=rhfl sets objective=sce. L_i has the constants of the authors'
code whatever objective.a, b and A are. Without the alignment (agg=ccr, mode=weights_only) it is FedAvg under client
confidence, not RHFL.

Departures from the paper:
- The paper has no global model, and clients of different networks. The averaging is an addition.
- A client that arrives for the first time has F = 0.
- F is not negative, and where all are 0 the weights are equal. As printed, the worst client gains weight in a round in
  which all losses rise.
- L_i is computed, and networks are aligned, in eval mode; the code does both in training mode. Buffers are averaged by
  samples, as for every aggregator.
- A model that predicts the mixture to 1e-6 is not moved.
- A client whose loss or predictions are not finite has no weight; where no loss is finite, the round is a plain mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, EquallyWeighted, ServerModels
from fedcohort.agg.losses import read_valid_losses, spread_weights_to_clients
from fedcohort.component import ONE_CLASS_PER_SAMPLE, PROXY_INPUTS, RELATIVE_ADVICE, SAME_MODEL, Requirement
from fedcohort.maths.distil import distillation_step, draw_batches, trainable_parameters
from fedcohort.maths.optimizers import uncompiled_optimizer
from fedcohort.types import Population, Values

SAME_PARTICIPATION_REQUIREMENT = Requirement(
    lambda facts: facts.full_participation,
    "{option} compares a client's loss with that of its last participation: clients that are away for longer seem "
    "to learn faster, and gain weight (with {full_participation} all clients take part in every round)",
)


MIN_DIVISOR = 1e-12


@dataclass(frozen=True)
class State:
    """The state of RHFL that is kept between rounds.

    Attributes:
        last_losses: loss that each client reported last, in nats, [n_clients]; NaN before its first report.
    """

    last_losses: Values


@dataclass(frozen=True)
class Rhfl(EquallyWeighted[State]):
    """RHFL, an aggregator that aligns models on proxy inputs and weighs them by client confidence.

    Attributes:
        mode: "align_average" aligns the models on the proxy before the weighted mean; "weights_only" skips this.
        beta: factor, in the exponent of a client's weight, of its share F_i / sum_j F_j, in which F_i is the relative
            decrease of its loss; 0 ignores losses.
        lr: learning rate of the alignment's Adam.
        batch: samples of the proxy in a step.
        batches: steps of a round, None for one pass over the proxy.
        fresh_adam: whether each batch has a new Adam, as in the authors' code.
    """

    mode: str
    beta: float
    lr: float
    batch: int
    batches: int | None
    fresh_adam: bool

    needs: ClassVar[frozenset[str]] = frozenset({"sce_loss"})
    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.choice("mode", self.mode, "align_average", "weights_only")
        ranges.number("beta", self.beta, "[0, inf)")
        ranges.number("lr", self.lr, "(0, 1e30]")
        ranges.integer("batch", self.batch, "[1, inf)")
        ranges.integer("batches", self.batches, "[1, inf)", allow_null=True)
        ranges.flag("fresh_adam", self.fresh_adam)

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({SAME_PARTICIPATION_REQUIREMENT} if self.beta > 0 else ())

    @property
    def requirements(self) -> frozenset[Requirement]:
        proxy_requirements = {PROXY_INPUTS, ONE_CLASS_PER_SAMPLE, SAME_MODEL} if self.mode == "align_average" else set()
        return frozenset({RELATIVE_ADVICE, *proxy_requirements})

    def notices(self, agg_name: str) -> Sequence[str]:
        if self.mode != "weights_only" or agg_name != "rhfl":
            return ()
        notice = "agg.mode=weights_only is FedAvg weighted by RHFL's client confidence, not RHFL: use its name, agg=ccr"
        return (notice,)

    def init(self, population: Population, n_params: int) -> State:
        return State(np.full(population.n_clients, np.nan))

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        positions_with_loss, L = read_valid_losses(arrived, "sce_loss", None)
        if not len(positions_with_loss):
            return arrived.combine(arrived.weights), state
        client_ids, previous_losses = arrived.outcome.clients[positions_with_loss], state.last_losses.copy()
        weights = confidence_weights(previous_losses[client_ids], L, self.beta, arrived.weights[positions_with_loss])
        omega = spread_weights_to_clients(arrived, positions_with_loss, weights)
        previous_losses[client_ids] = L
        if self.mode == "weights_only" or len(positions_with_loss) == 1:
            return arrived.combine(omega), State(previous_losses)
        return self._align_client_models(arrived, omega), State(previous_losses)

    def _align_client_models(self, arrived: Arrived, omega: Values) -> Direction:
        """Return the server update to the weighted mean of the aligned models.

        Args:
            arrived: the round's updates.
            omega: weight of each client's model, [m].
        """
        positions_with_weight, server_models = np.flatnonzero(omega), arrived.required_server_models
        client_networks = [arrived.model_of(int(i)) for i in positions_with_weight]
        is_finite_model = self._distil_models(server_models, client_networks, omega[positions_with_weight])
        aligned_weights = np.zeros(len(omega))
        aligned_weights[positions_with_weight] = omega[positions_with_weight] * is_finite_model
        aligned_weights /= max(aligned_weights.sum(), MIN_DIVISOR)
        displacement = torch.zeros_like(arrived.mean)
        for i, network in zip(positions_with_weight, client_networks, strict=True):
            if aligned_weights[i]:
                displacement += aligned_weights[i] * server_models.update_of(network)
        return Direction(displacement, aligned_weights)

    def _distil_models(self, server_models: ServerModels, client_networks: list[nn.Module], omega: Values) -> Values:
        """Train each client's model towards the weighted prediction of the others on the proxy's inputs.

        Args:
            server_models: the networks on the server, with the proxy.
            client_networks: the models of K clients, which are changed.
            omega: weight of each model, [K].

        Returns:
            1 for each model, 0 if its predictions are not finite, [K].
        """
        parameters_by_client = [trainable_parameters(network) for network in client_networks]
        client_weights = torch.from_numpy(omega).to(parameters_by_client[0][0])  # inputs may be bytes, or tokens
        optimizers = [uncompiled_optimizer(torch.optim.Adam)(p, lr=self.lr) for p in parameters_by_client]
        n_proxy_inputs = len(server_models.proxy)
        n_batches = -(-n_proxy_inputs // self.batch) if self.batches is None else self.batches
        for batch_positions in draw_batches(server_models.rng("align"), n_proxy_inputs, self.batch, n_batches):
            proxy_batch = server_models.proxy[torch.from_numpy(batch_positions).to(server_models.proxy.device)]
            with torch.no_grad():
                client_probs = torch.stack([F.softmax(network.eval()(proxy_batch), 1) for network in client_networks])
            client_weights, target_probs, mixture_weights = mean_prediction_of_others(client_probs, client_weights)
            for i, network in enumerate(client_networks):
                if mixture_weights[i] <= 0:
                    continue
                if self.fresh_adam:
                    optimizers[i].state.clear()
                distillation_step(
                    optimizers[i], target_probs[i], network(proxy_batch), loss_weight=float(mixture_weights[i])
                )
        return (client_weights > 0).double().cpu().numpy()


def confidence_weights(previous_losses: Values, losses: Values, beta: float, p: Values) -> Values:
    """Return the weight of each client by RHFL's client confidence, [K]; the weights sum to 1.

    The confidence of a client is higher if its loss is lower and has decreased more.

    Args:
        previous_losses: loss of each client at its last participation, in nats, NaN if there is none, [K].
        losses: current loss of each client, in nats, [K].
        beta: factor, in the exponent of a client's weight, of its share F_i / sum_j F_j, in which F_i is the relative
            decrease of its loss; 0 returns the normalised `p`.
        p: weight of each client at equal confidence, positive, in any unit, [K].
    """
    K = len(losses)
    if K < 2:
        return np.ones(K)
    loss_improvements = np.where(np.isnan(previous_losses), 0.0, np.maximum(previous_losses - losses, 0.0))
    learning_efficiency = loss_improvements / np.maximum(losses, MIN_DIVISOR)
    sum_of_efficiencies = float(learning_efficiency.sum())
    # 1 / (K - 1) is the same for all: softmax drops it
    W = beta * learning_efficiency / sum_of_efficiencies if sum_of_efficiencies > MIN_DIVISOR else np.zeros(K)
    unnormalised_weights = p / p.max() * np.exp(W - W.max())  # equal weights are exactly 1 there
    omega: Values = unnormalised_weights / unnormalised_weights.sum()
    return omega


def mean_prediction_of_others(
    model_probs: Float[Tensor, "k b c"], omega: Float[Tensor, "k"]
) -> tuple[Float[Tensor, "k"], Float[Tensor, "k b c"], Float[Tensor, "k"]]:
    """Return, for each model, the weighted mean prediction of all other models (the mixture) and its weight.

        sum_{j != i} omega_j KL(p_j || p_i) = const + v_i KL(mixture_i || p_i), v_i = sum_{j != i} omega_j

    Args:
        model_probs: class probabilities that each model predicts for a batch.
        omega: weight of each model.

    Returns:
        The weights omega [k], 0 for models whose predictions are not finite; the mixture for each model, [k, b, c]; the
        weight v of each mixture, [k].
    """
    is_finite_model = torch.isfinite(model_probs).all(2).all(1)
    omega = torch.where(is_finite_model, omega, 0.0)
    model_probs = torch.where(is_finite_model[:, None, None], model_probs, 0.0)
    weighted_predictions = omega[:, None, None] * model_probs
    mixture_weights = omega.sum() - omega
    mixture_weight_divisors = mixture_weights.clamp(min=MIN_DIVISOR)[:, None, None]
    mixture_probs = (weighted_predictions.sum(0) - weighted_predictions) / mixture_weight_divisors
    # A difference from the sum loses the digits of the others where one model has most of the weight.
    other_weights = omega.index_fill(0, omega.argmax(), 0.0)
    if 0 < other_weights.sum() < omega.max():
        mixture_weights[omega.argmax()] = other_weights.sum()
        mixture_probs[omega.argmax()] = torch.tensordot(other_weights / other_weights.sum(), model_probs, 1)
    return omega, mixture_probs, torch.where(is_finite_model, mixture_weights, 0.0)
