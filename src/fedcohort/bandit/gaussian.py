"""A Gaussian process over clients with a linear or a squared-exponential kernel, and what is left once some are known.

    y ~ N(mu, Sigma),   Sigma = X'X + s^2 I,   X [d, K]: a feature vector for each client
    known k:  Sigma <- Sigma - Sigma_{:k} Sigma_{k:} / Sigma_kk
    log N(y; mu, Sigma) with d x d matrices only: A = s^2 I + X X',
        r' Sigma^-1 r = (r'r - r'X' A^-1 X r) / s^2,   ln det Sigma = ln det A + (K - d) ln s^2        (Woodbury)

A is positive definite whatever X is, and a step of the fit costs K d^2, not K^3. Squared exponential, the smooth ones:

    Sigma_ij = f^2 exp(-||x_i - x_j||^2 / 2 l) + s^2 [i = j],   f learnt with X, a step costs K^3

The learning rate of a fit falls linearly to 0 in its second half. At a constant rate, fits that start where the last
one ended amplify rounding: after five of them, 1e-7 in the losses was 20 % of the spread of FedCor's scores, now 6e-5.

It imports torch, so a selector imports it where it fits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

Features = Float64[np.ndarray, "d k"]
Square = Float64[np.ndarray, "k k"]
Rows = Float64[np.ndarray, "n k"]

RATE = 1e-2  # Adam's learning rate at the first step of a fit


def covariance(X: Features, noise: float) -> Square:
    """Sigma, for a standard deviation of `noise`."""
    sigma: Square = X.T @ X + noise**2 * np.eye(X.shape[1])
    return sigma


def condition(sigma: Square, k: int) -> Square:
    """Return the covariance of all clients once the value of k is known; row and column k are exactly zero."""
    out: Square = sigma - np.outer(sigma[:, k], sigma[k]) / sigma[k, k]
    out[k] = 0.0
    out[:, k] = 0.0
    return out


def weighted_mean(Y: Rows, weights: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "k"]:
    """Average each column over the rows where it is not NaN, [k]; 0 where there is none."""
    known = ~np.isnan(Y)
    total, weight = weights @ np.where(known, Y, 0.0), weights @ known
    mean = np.divide(total, weight, out=np.zeros(Y.shape[1]), where=weight > 0)
    return np.asarray(mean)


def loss_and_slope(
    X: Features, Y: Rows, mu: Float64[np.ndarray, "k"], weights: Float64[np.ndarray, "n"], noise: float
) -> tuple[float, Features]:
    """-sum_e weights_e log N(Y_e; mu, Sigma), in nats, and its gradient in X; NaN in Y is marginalised out."""
    features = torch.tensor(X, requires_grad=True)
    loss = _loss(features, _groups(Y, mu, weights), noise)
    (slope,) = torch.autograd.grad(loss, features)
    return float(loss.detach()), slope.numpy()


def fit(
    X: Features,
    Y: Rows,
    mu: Float64[np.ndarray, "k"],
    weights: Float64[np.ndarray, "n"],
    noise: float,
    steps: int,
) -> Features:
    """X after `steps` steps of Adam on `loss_and_slope`; X itself where there are no data or the end is not finite."""
    groups = _groups(Y, mu, weights)
    if not groups:
        return X
    features = torch.tensor(X, requires_grad=True)
    _minimise([features], lambda: _loss(features, groups, noise), steps)
    out: Features = features.detach().numpy().copy()
    return out if np.isfinite(out).all() else X


@dataclass(frozen=True)
class Group:
    """Rows that lack the same clients.

    Attributes:
        columns: those they have.
        R: what is left of them without the mean.
    """

    columns: Tensor
    R: Tensor
    weights: Tensor


def _groups(Y: Rows, mu: Float64[np.ndarray, "k"], weights: Float64[np.ndarray, "n"]) -> list[Group]:
    known: Bool[np.ndarray, "n k"] = ~np.isnan(Y)
    masks = np.unique(known[known.any(1)], axis=0)
    found = []
    for mask in masks:
        rows = (known == mask).all(1)
        columns, R = np.flatnonzero(mask), (Y - mu)[np.ix_(rows, mask)]
        found.append(Group(torch.from_numpy(columns), torch.from_numpy(R), torch.from_numpy(weights[rows])))
    return found


def _loss(features: Tensor, groups: list[Group], noise: float) -> Tensor:
    d, s2 = features.shape[0], noise**2
    total = features.new_zeros(())
    for group in groups:
        X, n = features[:, group.columns], len(group.columns)
        C, _ = torch.linalg.cholesky_ex(s2 * torch.eye(d, dtype=X.dtype) + X @ X.T)
        inner = torch.linalg.solve_triangular(C, X @ group.R.T, upper=False)
        square = ((group.R**2).sum(1) - (inner**2).sum(0)) / s2
        log_det = 2 * C.diagonal().log().sum() + (n - d) * math.log(s2)
        total = total + 0.5 * (group.weights * (square + log_det + n * math.log(2 * math.pi))).sum()
    return total


def smooth_covariance(X: Features, f: float, length: float, noise: float) -> Square:
    """Sigma of the squared-exponential kernel; length: l, of squared distances."""
    kernel = _smooth(torch.from_numpy(X), torch.tensor(f, dtype=torch.float64), length)
    sigma: Square = kernel.numpy() + noise**2 * np.eye(X.shape[1])
    return sigma


def smooth_loss_and_slope(
    X: Features,
    f: float,
    Y: Rows,
    mu: Float64[np.ndarray, "k"],
    weights: Float64[np.ndarray, "n"],
    noise: float,
    length: float,
) -> tuple[float, Features, float]:
    """Return what `loss_and_slope` does, with the slopes in X and in f."""
    features = torch.tensor(X, requires_grad=True)
    scale = torch.tensor(f, dtype=torch.float64, requires_grad=True)
    loss = _smooth_loss(features, scale, _groups(Y, mu, weights), noise, length)
    in_X, in_f = torch.autograd.grad(loss, [features, scale])
    return float(loss.detach()), in_X.numpy(), float(in_f)


def fit_smooth(
    X: Features,
    f: float,
    Y: Rows,
    mu: Float64[np.ndarray, "k"],
    weights: Float64[np.ndarray, "n"],
    noise: float,
    length: float,
    steps: int,
) -> tuple[Features, float]:
    """Fit X and f together, as `fit` does X."""
    groups = _groups(Y, mu, weights)
    if not groups:
        return X, f
    features = torch.tensor(X, requires_grad=True)
    scale = torch.tensor(f, dtype=torch.float64, requires_grad=True)
    _minimise([features, scale], lambda: _smooth_loss(features, scale, groups, noise, length), steps)
    out, end = features.detach().numpy().copy(), float(scale.detach())
    return (out, end) if np.isfinite(out).all() and math.isfinite(end) else (X, f)


def _minimise(variables: list[Tensor], loss: Callable[[], Tensor], steps: int) -> None:
    """Take `steps` steps of Adam on `loss`, in place; the learning rate falls linearly to 0 in the second half."""
    optimizer = torch.optim.Adam(variables, lr=RATE)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, 2 * (steps - step) / steps)
        for variable, slope in zip(variables, torch.autograd.grad(loss(), variables), strict=True):
            variable.grad = slope
        optimizer.step()


def _smooth(features: Tensor, scale: Tensor, length: float) -> Tensor:
    square = (features**2).sum(0)
    distance = (square[:, None] + square[None, :] - 2 * features.T @ features).clamp(min=0.0)
    return scale**2 * torch.exp(-0.5 * distance / length)


def _smooth_loss(features: Tensor, scale: Tensor, groups: list[Group], noise: float, length: float) -> Tensor:
    total = features.new_zeros(())
    for group in groups:
        X, n = features[:, group.columns], len(group.columns)
        C, _ = torch.linalg.cholesky_ex(_smooth(X, scale, length) + noise**2 * torch.eye(n, dtype=X.dtype))
        inner = torch.linalg.solve_triangular(C, group.R.T, upper=False)
        log_det = 2 * C.diagonal().log().sum()
        total = total + 0.5 * (group.weights * ((inner**2).sum(0) + log_det + n * math.log(2 * math.pi))).sum()
    return total
