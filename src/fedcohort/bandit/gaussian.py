"""Gaussian processes over clients with a linear or a squared-exponential kernel, and their conditional covariances.

    model:  y ~ N(mu, Sigma), a number for each of K clients;  X [d, K] has a feature vector for each client
    linear:  Sigma = X'X + s^2 I
    squared exponential:  Sigma_ij = f^2 exp(-||x_i - x_j||^2 / 2 l) + s^2 [i = j]
    given y_k:  Sigma <- Sigma - Sigma_{:k} Sigma_{k:} / Sigma_kk

The linear likelihood needs d x d matrices only (Woodbury), so that a step of its fit costs K d^2 and not K^3:

    A:  s^2 I + X X', positive definite for every X
    r' Sigma^-1 r:  (r'r - r'X' A^-1 X r) / s^2
    ln det Sigma:  ln det A + (K - d) ln s^2

The learning rate of a fit falls linearly to 0 in its second half. A fit at a constant rate that starts where the last
one ended amplifies rounding: after five fits, 1e-7 in the losses was 20 % of the spread of FedCor's scores. It is 6e-5
with the decreasing rate.

The module imports torch, so that a selector imports it inside the functions that fit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from fedcohort.maths.optimizers import uncompiled

Features = Float64[np.ndarray, "d k"]
Square = Float64[np.ndarray, "k k"]
Rows = Float64[np.ndarray, "n k"]

LEARNING_RATE = 1e-2  # Adam's learning rate at the first step of a fit


@dataclass(frozen=True)
class ObservationGroup:
    """Observations of the Gaussian process that lack the same clients, and share a covariance matrix.

    Attributes:
        columns: the clients that are observed, [k].
        R: the observations of these clients minus mu, [n, k].
        weights: weights of the observations, [n].
    """

    columns: Tensor
    R: Tensor
    weights: Tensor


@dataclass(frozen=True)
class Observations:
    """Observations of one number y_k per client, NaN if a client's number is not known.

    Attributes:
        Y: a draw in each row, [n, k].
        mu: the mean of y, [k].
        weights: weight of each draw in the likelihood, [n].
    """

    Y: Rows
    mu: Float64[np.ndarray, "k"]
    weights: Float64[np.ndarray, "n"]

    def groups(self) -> list[ObservationGroup]:
        """Group the observations by the clients that they lack; an observation without any client is left out."""
        finite: Bool[np.ndarray, "n k"] = ~np.isnan(self.Y)
        groups = []
        for mask in np.unique(finite[finite.any(1)], axis=0):
            rows = (finite == mask).all(1)
            arrays = np.flatnonzero(mask), (self.Y - self.mu)[np.ix_(rows, mask)], self.weights[rows]
            groups.append(ObservationGroup(*(torch.from_numpy(array) for array in arrays)))
        return groups


class Kernel(Protocol):
    """The covariance of y as a function of the features X and a scale f.

    Attributes:
        scaled: whether f is fitted.
    """

    scaled: ClassVar[bool]

    def covariance(self, X: Features, f: float) -> Square:
        """Return the covariance matrix Sigma of the clients' values, [K, K].

        Args:
            X: feature vector of each client, [d, K].
            f: scale of the kernel; the linear kernel ignores it.
        """
        ...

    def loss(self, features: Tensor, scale: Tensor, groups: list[ObservationGroup]) -> Tensor:
        """Return -sum_e weights_e log N(Y_e; mu, Sigma) in nats; missing numbers are marginalised out."""
        ...


@dataclass(frozen=True)
class Linear:
    """The linear kernel Sigma = X'X + s^2 I of the clients' feature vectors X.

    Attributes:
        noise: s, standard deviation of the independent noise.
    """

    noise: float

    scaled: ClassVar[bool] = False

    def covariance(self, X: Features, f: float) -> Square:
        sigma: Square = X.T @ X + self.noise**2 * np.eye(X.shape[1])
        return sigma

    def loss(self, features: Tensor, scale: Tensor, groups: list[ObservationGroup]) -> Tensor:
        d, s2 = features.shape[0], self.noise**2
        total = features.new_zeros(())
        for group in groups:
            X, n = features[:, group.columns], len(group.columns)
            C, _ = torch.linalg.cholesky_ex(s2 * torch.eye(d, dtype=X.dtype) + X @ X.T)
            inner = torch.linalg.solve_triangular(C, X @ group.R.T, upper=False)
            square = ((group.R**2).sum(1) - (inner**2).sum(0)) / s2
            log_det = 2 * C.diagonal().log().sum() + (n - d) * math.log(s2)
            total = total + 0.5 * (group.weights * (square + log_det + n * math.log(2 * math.pi))).sum()
        return total


@dataclass(frozen=True)
class SquaredExponential:
    """Sigma_ij = f^2 exp(-||x_i - x_j||^2 / 2 l) + s^2 [i = j]; a step of its fit costs K^3.

    Attributes:
        noise: s, standard deviation of the independent noise.
        length: l, of squared distances.
    """

    noise: float
    length: float

    scaled: ClassVar[bool] = True

    def covariance(self, X: Features, f: float) -> Square:
        kernel = self._kernel(torch.from_numpy(X), torch.tensor(f, dtype=torch.float64))
        sigma: Square = kernel.numpy() + self.noise**2 * np.eye(X.shape[1])
        return sigma

    def loss(self, features: Tensor, scale: Tensor, groups: list[ObservationGroup]) -> Tensor:
        total = features.new_zeros(())
        for group in groups:
            X, n = features[:, group.columns], len(group.columns)
            C, _ = torch.linalg.cholesky_ex(self._kernel(X, scale) + self.noise**2 * torch.eye(n, dtype=X.dtype))
            inner = torch.linalg.solve_triangular(C, group.R.T, upper=False)
            log_det = 2 * C.diagonal().log().sum()
            total = total + 0.5 * (group.weights * ((inner**2).sum(0) + log_det + n * math.log(2 * math.pi))).sum()
        return total

    def _kernel(self, features: Tensor, scale: Tensor) -> Tensor:
        square = (features**2).sum(0)
        distance = (square[:, None] + square[None, :] - 2 * features.T @ features).clamp(min=0.0)
        return scale**2 * torch.exp(-0.5 * distance / self.length)


def condition_covariance(sigma: Square, k: int) -> Square:
    """Return the covariance of all clients given the value of client k; its row and column are exactly zero."""
    out: Square = sigma - np.outer(sigma[:, k], sigma[k]) / sigma[k, k]
    out[k] = 0.0
    out[:, k] = 0.0
    return out


def weighted_mean(Y: Rows, weights: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "k"]:
    """Return the weighted mean of each column over the rows where it is not NaN, [k]; 0 for a column of NaN."""
    finite = ~np.isnan(Y)
    total, weight = weights @ np.where(finite, Y, 0.0), weights @ finite
    mean = np.divide(total, weight, out=np.zeros(Y.shape[1]), where=weight > 0)
    return np.asarray(mean)


def fit_features(kernel: Kernel, X: Features, f: float, data: Observations, steps: int) -> tuple[Features, float]:
    """Return X and f after `steps` steps of Adam on the kernel's loss.

    Both are unchanged where there are no observations, or where the result is not finite.
    """
    groups = data.groups()
    if not groups:
        return X, f
    features, scale, variables = _optimised_tensors(kernel, X, f)
    _minimise(variables, lambda: kernel.loss(features, scale, groups), steps)
    fitted_X, fitted_f = features.detach().numpy().copy(), float(scale.detach())
    return (fitted_X, fitted_f) if np.isfinite(fitted_X).all() and math.isfinite(fitted_f) else (X, f)


def loss_and_gradients(kernel: Kernel, X: Features, f: float, data: Observations) -> tuple[float, Features, float]:
    """Return the kernel's loss in nats and its gradient in X and in f, which is 0 if f is not fitted."""
    features, scale, variables = _optimised_tensors(kernel, X, f)
    loss = kernel.loss(features, scale, data.groups())
    gradients = torch.autograd.grad(loss, variables)
    return float(loss.detach()), gradients[0].numpy(), float(gradients[1]) if kernel.scaled else 0.0


def _optimised_tensors(kernel: Kernel, X: Features, f: float) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return the features X and the scale f as tensors, and the list of those tensors that a fit changes."""
    features = torch.tensor(X, requires_grad=True)
    scale = torch.tensor(f, dtype=torch.float64, requires_grad=kernel.scaled)
    return features, scale, [features, scale] if kernel.scaled else [features]


def _minimise(variables: list[Tensor], loss: Callable[[], Tensor], steps: int) -> None:
    """Take `steps` steps of Adam on `loss`, in place; the learning rate falls linearly to 0 in the second half."""
    optimizer = uncompiled(torch.optim.Adam)(variables, lr=LEARNING_RATE)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * min(1.0, 2 * (steps - step) / steps)
        for variable, slope in zip(variables, torch.autograd.grad(loss(), variables), strict=True):
            variable.grad = slope
        optimizer.step()
