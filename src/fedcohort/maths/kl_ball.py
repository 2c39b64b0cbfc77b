"""The tilted distribution that stays near the uniform one: the bandit step of FedMABA (Eq. 9 and 10).

    maximise:  <p, log q> + H(p) over p, subject to sum p = 1, KL(p || uniform) = log n - H(p) <= rho
    solution:  p_i = q_i^s / sum_j q_j^s, s = 1 / (1 + lambda)
    multiplier:  lambda >= 0, lambda (KL(p || uniform) - rho) = 0

d KL / d s = s Var_p(log q) >= 0, and KL <= s^2 r^2 / 8 with r = max log q - min log q (Popoviciu: Var <= r^2 / 4). If
the constraint is active, its root is therefore unique and in sqrt(8 rho) / r <= s < 1, where bisection finds log s.
"""

import numpy as np
from jaxtyping import Float64

LogWeightRows = Float64[np.ndarray, "*batch n"]
MultiplierColumn = Float64[np.ndarray, "*batch 1"]

BISECTION_STEPS = 64  # of an interval of log s of length 1500 or less, down to the spacing of floats


def tilt_within_kl_ball(log_q: LogWeightRows, rho: float) -> tuple[LogWeightRows, MultiplierColumn]:
    """Return the weights with the least KL(weights || q), [..., n], and a multiplier, [..., 1].

    The constraint is KL(weights || uniform) <= rho, and the multiplier is its Lagrange multiplier. With rho = 0 the
    weights are equal, and the multiplier is infinite unless all q are equal.

    Args:
        log_q: finite logarithms of the weights q up to a constant, [..., n].
        rho: largest divergence from equal weights, at least 0, in nats.
    """
    z = log_q - log_q.max(-1, keepdims=True)
    upper_log_s = np.zeros_like(z[..., :1])
    is_inside_ball = _kl_from_uniform(z, upper_log_s) <= rho
    with np.errstate(divide="ignore"):  # rho = 0
        lower_bound_log_s = np.log(np.sqrt(8 * rho) / np.where(is_inside_ball, 1.0, -z.min(-1, keepdims=True)))
    lower_log_s = np.where(is_inside_ball, 0.0, np.minimum(lower_bound_log_s, 0.0))
    for _ in range(BISECTION_STEPS):
        midpoint_log_s = (lower_log_s + upper_log_s) / 2
        is_midpoint_inside = _kl_from_uniform(z, midpoint_log_s) <= rho
        lower_log_s = np.where(is_midpoint_inside, midpoint_log_s, lower_log_s)
        upper_log_s = np.where(is_midpoint_inside, upper_log_s, midpoint_log_s)
    tilted_weights = np.exp(np.exp(lower_log_s) * z)
    with np.errstate(over="ignore"):
        return tilted_weights / tilted_weights.sum(-1, keepdims=True), np.expm1(-lower_log_s)


def _kl_from_uniform(z: LogWeightRows, log_s: MultiplierColumn) -> MultiplierColumn:
    """Return KL(p || uniform) in nats of p = softmax(s z), [..., 1], for `z` [..., n] with maximum 0.

    `log_s` is the logarithm of s, [..., 1].
    """
    s = np.exp(log_s)
    tilted_weights = np.exp(s * z)
    weight_sum = tilted_weights.sum(-1, keepdims=True)
    mean_log_weight = s * (tilted_weights * z).sum(-1, keepdims=True) / weight_sum
    return np.asarray(mean_log_weight - np.log(weight_sum) + np.log(z.shape[-1]))
