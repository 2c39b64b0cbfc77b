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

from fedcohort.maths.optimizers import uncompiled_optimizer

FeatureMatrix = Float64[np.ndarray, "d k"]
SquareMatrix = Float64[np.ndarray, "k k"]
ObservationMatrix = Float64[np.ndarray, "n k"]

FIRST_LEARNING_RATE = 1e-2  # Adam's learning rate at the first step of a fit


@dataclass(frozen=True)
class ObservationGroup:
    """Observations of a Gaussian process that lack the same clients, and thus share a covariance matrix.

    Attributes:
        columns: numbers of the clients that are observed, int64 [k].
        R: observations of these clients minus their mean mu, [n, k].
        weights: weight of each observation in the likelihood, [n].

    Returns:
        observations of these clients minus their means, [n, k].
    """

    columns: Tensor
    R: Tensor
    weights: Tensor


@dataclass(frozen=True)
class Observations:
    """Observations of a Gaussian process: each holds one number per client, NaN if it is not known.

    Attributes:
        Y: the observations, a row each and a column for each client, [n, k].
        mu: mean of each client's numbers, [k].
        weights: weight of each observation in the likelihood, [n].
    """

    Y: ObservationMatrix
    mu: Float64[np.ndarray, "k"]
    weights: Float64[np.ndarray, "n"]

    def group_observations(self) -> list[ObservationGroup]:
        """Return the observations in groups that lack the same clients; an observation of no client is left out."""
        is_observed: Bool[np.ndarray, "n k"] = ~np.isnan(self.Y)
        observation_groups = []
        for observed_clients in np.unique(is_observed[is_observed.any(1)], axis=0):
            has_same_clients = (is_observed == observed_clients).all(1)
            group_arrays = (
                np.flatnonzero(observed_clients),
                (self.Y - self.mu)[np.ix_(has_same_clients, observed_clients)],
                self.weights[has_same_clients],
            )
            observation_groups.append(ObservationGroup(*(torch.from_numpy(array) for array in group_arrays)))
        return observation_groups


class Kernel(Protocol):
    """The covariance of the clients' numbers, as a function of their feature vectors and a scale.

    Attributes:
        fits_scale: whether the scale is fitted as well as the feature vectors.
    """

    fits_scale: ClassVar[bool]

    def covariance(self, X: FeatureMatrix, f: float) -> SquareMatrix:
        """Return the covariance matrix of the clients' numbers, [k, k].

        Args:
            X: feature vector of each client, [d, k].
            f: scale of the kernel; the linear kernel ignores it.
        """
        ...

    def loss(self, features: Tensor, kernel_scale: Tensor, observation_groups: list[ObservationGroup]) -> Tensor:
        """Return the weighted negative log-likelihood of the observations in nats; missing numbers are left out.

        Args:
            features: feature vector of each client, float64 [d, k].
            kernel_scale: scale of the kernel, a scalar.
            observation_groups: observations, grouped by the clients that they contain.
        """
        ...


@dataclass(frozen=True)
class LinearKernel:
    """The kernel X'X + noise^2 I of the clients' feature vectors, the columns of X.

    Attributes:
        noise: standard deviation of the independent noise.
    """

    noise: float

    fits_scale: ClassVar[bool] = False

    def covariance(self, X: FeatureMatrix, f: float) -> SquareMatrix:
        sigma: SquareMatrix = X.T @ X + self.noise**2 * np.eye(X.shape[1])
        return sigma

    def loss(self, features: Tensor, kernel_scale: Tensor, observation_groups: list[ObservationGroup]) -> Tensor:
        d, s2 = features.shape[0], self.noise**2
        loss_sum = features.new_zeros(())
        for observed in observation_groups:
            X, n = features[:, observed.columns], len(observed.columns)
            C, _ = torch.linalg.cholesky_ex(s2 * torch.eye(d, dtype=X.dtype) + X @ X.T)
            whitened_residuals = torch.linalg.solve_triangular(C, X @ observed.R.T, upper=False)
            residuals = ((observed.R**2).sum(1) - (whitened_residuals**2).sum(0)) / s2
            log_det = 2 * C.diagonal().log().sum() + (n - d) * math.log(s2)
            loss_sum = loss_sum + 0.5 * (observed.weights * (residuals + log_det + n * math.log(2 * math.pi))).sum()
        return loss_sum


@dataclass(frozen=True)
class SquaredExponentialKernel:
    """The kernel f^2 exp(-||x_i - x_j||^2 / (2 length)) + noise^2 [i = j] of feature vectors x_i with a scale f.

    Attributes:
        noise: standard deviation of the independent noise.
        length: scale of squared distances between feature vectors.
    """

    noise: float
    length: float

    fits_scale: ClassVar[bool] = True

    def covariance(self, X: FeatureMatrix, f: float) -> SquareMatrix:
        kernel_matrix = self._kernel(torch.from_numpy(X), torch.tensor(f, dtype=torch.float64))
        sigma: SquareMatrix = kernel_matrix.numpy() + self.noise**2 * np.eye(X.shape[1])
        return sigma

    def loss(self, features: Tensor, kernel_scale: Tensor, observation_groups: list[ObservationGroup]) -> Tensor:
        loss_sum = features.new_zeros(())
        for group in observation_groups:
            X, n = features[:, group.columns], len(group.columns)
            C, _ = torch.linalg.cholesky_ex(self._kernel(X, kernel_scale) + self.noise**2 * torch.eye(n, dtype=X.dtype))
            whitened_residuals = torch.linalg.solve_triangular(C, group.R.T, upper=False)
            log_det = 2 * C.diagonal().log().sum()
            loss_sum = (
                loss_sum
                + 0.5 * (group.weights * ((whitened_residuals**2).sum(0) + log_det + n * math.log(2 * math.pi))).sum()
            )
        return loss_sum

    def _kernel(self, features: Tensor, kernel_scale: Tensor) -> Tensor:
        squared_norms = (features**2).sum(0)
        squared_distances = (squared_norms[:, None] + squared_norms[None, :] - 2 * features.T @ features).clamp(min=0.0)
        return kernel_scale**2 * torch.exp(-0.5 * squared_distances / self.length)


def condition_covariance(sigma: SquareMatrix, k: int) -> SquareMatrix:
    """Return the covariance `sigma` [k, k] given the value of client `k`, whose row and column become exactly 0."""
    conditional_covariance: SquareMatrix = sigma - np.outer(sigma[:, k], sigma[k]) / sigma[k, k]
    conditional_covariance[k] = 0.0
    conditional_covariance[:, k] = 0.0
    return conditional_covariance


def weighted_mean(Y: ObservationMatrix, weights: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "k"]:
    """Return the mean of each column of Y [n, k] with row `weights` [n], without NaN, [k]; 0 for a column of NaN."""
    is_observed = ~np.isnan(Y)
    weighted_sum, weight_sum = weights @ np.where(is_observed, Y, 0.0), weights @ is_observed
    column_means = np.divide(weighted_sum, weight_sum, out=np.zeros(Y.shape[1]), where=weight_sum > 0)
    return np.asarray(column_means)


def fit_features(
    kernel: Kernel, X: FeatureMatrix, f: float, observations: Observations, n_steps: int
) -> tuple[FeatureMatrix, float]:
    """Return the features X and scale f after Adam on the negative log-likelihood; unchanged if that is not finite.

    Args:
        kernel: covariance as a function of X and f.
        X: initial feature vector of each client, [d, k].
        f: initial scale of the kernel.
        observations: observations whose likelihood is maximised.
        n_steps: number of steps.
    """
    observation_groups = observations.group_observations()
    if not observation_groups:
        return X, f
    features, kernel_scale, fitted_tensors = _optimised_tensors(kernel, X, f)
    _minimise_with_adam(fitted_tensors, lambda: kernel.loss(features, kernel_scale, observation_groups), n_steps)
    fitted_X, fitted_f = features.detach().numpy().copy(), float(kernel_scale.detach())
    return (fitted_X, fitted_f) if np.isfinite(fitted_X).all() and math.isfinite(fitted_f) else (X, f)


def loss_and_gradients(
    kernel: Kernel, X: FeatureMatrix, f: float, observations: Observations
) -> tuple[float, FeatureMatrix, float]:
    """Return the negative log-likelihood in nats, its gradient in X, [d, k], and in f (0 if f is not fitted).

    The parameters are those of `fit_features`.
    """
    features, kernel_scale, fitted_tensors = _optimised_tensors(kernel, X, f)
    kernel_loss = kernel.loss(features, kernel_scale, observations.group_observations())
    gradients = torch.autograd.grad(kernel_loss, fitted_tensors)
    return float(kernel_loss.detach()), gradients[0].numpy(), float(gradients[1]) if kernel.fits_scale else 0.0


def _optimised_tensors(kernel: Kernel, X: FeatureMatrix, f: float) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return the features X [d, k] and the scale f as tensors, and a list of those that a fit of `kernel` changes."""
    features = torch.tensor(X, requires_grad=True)
    kernel_scale = torch.tensor(f, dtype=torch.float64, requires_grad=kernel.fits_scale)
    return features, kernel_scale, [features, kernel_scale] if kernel.fits_scale else [features]


def _minimise_with_adam(fitted_tensors: list[Tensor], loss: Callable[[], Tensor], n_steps: int) -> None:
    """Change `fitted_tensors` by `n_steps` steps of Adam that reduce `loss()`; the learning rate falls at the end."""
    optimizer = uncompiled_optimizer(torch.optim.Adam)(fitted_tensors, lr=FIRST_LEARNING_RATE)
    for step_number in range(n_steps):
        optimizer.param_groups[0]["lr"] = FIRST_LEARNING_RATE * min(1.0, 2 * (n_steps - step_number) / n_steps)
        for fitted_tensor, gradient in zip(fitted_tensors, torch.autograd.grad(loss(), fitted_tensors), strict=True):
            fitted_tensor.grad = gradient
        optimizer.step()
