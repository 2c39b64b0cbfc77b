"""FLASH's rewards: the decrease of a loss from w_{t-1} to w_t, per second.

    client:    L_i(w_{t-1}) - L_i(w_t), the client's own loss, for clients that answered both times

    global:    sum p_i (L_i(w_{t-1}) - L_i(w_t)) / sum p_i over these clients, the same number for all
    progress:  (L(w_{t-1}) - L(w_t)) / |S_{t-1}|, the server's validation loss, for the clients that arrived

reward=progress (selector=flash_progress, not from the paper) rewards the improvement of the global model. It is signed:
a round that makes the model worse lowers the estimate of its cohort.

Shares are equal. Only the joint value of a cohort is observed, and by symmetry (as in Shapley's value) clients that it
does not distinguish get equal shares. The regression separates clients over rounds whose cohorts have different
contexts. Shares by aggregation weight would reward large clients whatever their updates do, and a selector does not
know these weights. Division by |S| keeps the first round, in which all clients train, on the scale of the others.
"""

from collections.abc import Mapping

import numpy as np

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.selector.contexts import PendingRewards
from fedcohort.types import Values

SIGNALS_BY_REWARD: Mapping[str, set[str]] = {"client": set(), "global": {"n_train"}, "progress": {"server_val_loss"}}
MATCHING_ROBUST_LOSS_REQUIREMENT = Requirement(
    lambda facts: (
        not (loss := facts.components.selector.robust_loss) or facts.components.objective.robust_loss in ({}, loss)
    ),
    "in the paper, {option} reads the loss that clients minimise, but its robust loss has other weights than "
    "{objective}: set selector.alpha, selector.beta and selector.A to objective.alpha, objective.beta and objective.A",
)


def check_reward_options(reward: str, credit_option: str, scale_option: str, bandit: str) -> None:
    """Raise `OptionError` for combinations of FLASH's options that are not defined.

    The parameters are the values of the options `reward`, `credit`, `scale` and `bandit` of
    `configs/selector/flash.yaml`.
    """
    if reward == "progress" and credit_option != "causal":
        raise ranges.range_error(
            "credit", "causal with reward=progress, a reward that the cohort shares", credit_option
        )
    if credit_option == "answered" and reward != "client":
        raise ranges.range_error("reward", "client with credit=answered, which learns from each client's loss", reward)
    if bandit == "calibrated" and scale_option == "none":
        allowed_text = (
            "running or first_round with bandit=calibrated, whose prior noise of 1 assumes rewards of mean size 1"
        )
        raise ranges.range_error("scale", allowed_text, scale_option)


def mean_loss_decrease(loss_decrease: Values, sample_shares: Values) -> Values:
    """Return the weighted mean of known loss decreases, the same for all clients, [n_clients]; NaN if none is known.

    Args:
        loss_decrease: decrease of each client's loss in nats, NaN if unknown, [n_clients].
        sample_shares: each client's share of all training samples, [n_clients].
    """
    is_known_decrease = np.isfinite(loss_decrease)
    known_share_sum, weighted_loss_decrease = sample_shares[is_known_decrease].sum(), np.nan
    if known_share_sum > 0:
        weighted_loss_decrease = sample_shares[is_known_decrease] @ loss_decrease[is_known_decrease] / known_share_sum
    return np.full_like(loss_decrease, weighted_loss_decrease)


def share_loss_decrease(loss_decrease: float, pending_rewards: PendingRewards | None, n_clients: int) -> Values:
    """Return the decrease of the server's loss divided equally among a cohort, [n_clients]; NaN for other clients.

    Args:
        loss_decrease: decrease of the server's loss in nats.
        pending_rewards: the cohort that is rewarded; None for no reward.
        n_clients: number of all clients.
    """
    reward_shares = np.full(n_clients, np.nan)
    if pending_rewards is not None and len(pending_rewards.clients):
        reward_shares[pending_rewards.clients] = loss_decrease / len(pending_rewards.clients)
    return reward_shares


def reward_per_second(loss_decrease: Values, duration_s: Values, loss_change_rule: str) -> Values:
    """Return each client's reward, its loss decrease per second, [n_clients]; NaN unless its duration is positive.

    Args:
        loss_decrease: decrease of each client's loss in nats, [n_clients].
        duration_s: duration that divides it, in seconds, [n_clients].
        loss_change_rule: "abs" counts an increase as a decrease of the same size, "signed" counts it as negative.
    """
    loss_change = np.abs(loss_decrease) if loss_change_rule == "abs" else loss_decrease
    rewards = np.full_like(loss_change, np.nan)
    np.divide(loss_change, duration_s, out=rewards, where=duration_s > 0)
    return rewards
