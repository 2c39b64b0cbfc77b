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
        clients: numbers of the clients that are observed, int64 [k].
        R: observations of these clients minus their mean mu, [n, k].
        weights: weight of each observation in the likelihood, [n].
    """

    clients: Tensor
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
            R = (self.Y - self.mu)[np.ix_(has_same_clients, observed_clients)]
            group_arrays = (np.flatnonzero(observed_clients), R, self.weights[has_same_clients])
            observation_groups.append(ObservationGroup(*map(torch.from_numpy, group_arrays)))
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
        noise_std: standard deviation of the independent noise.
    """

    noise_std: float

    fits_scale: ClassVar[bool] = False

    def covariance(self, X: FeatureMatrix, f: float) -> SquareMatrix:
        return np.asarray(X.T @ X + self.noise_std**2 * np.eye(X.shape[1]))

    def loss(self, features: Tensor, kernel_scale: Tensor, observation_groups: list[ObservationGroup]) -> Tensor:
        d, noise_var = features.shape[0], self.noise_std**2
        loss_sum = features.new_zeros(())
        for group in observation_groups:
            X, n = features[:, group.clients], len(group.clients)
            cholesky_factor, _ = torch.linalg.cholesky_ex(noise_var * torch.eye(d, dtype=X.dtype) + X @ X.T)
            whitened_residuals = torch.linalg.solve_triangular(cholesky_factor, X @ group.R.T, upper=False)
            residual_norms = ((group.R**2).sum(1) - (whitened_residuals**2).sum(0)) / noise_var
            log_det = 2 * cholesky_factor.diagonal().log().sum() + (n - d) * math.log(noise_var)
            loss_sum = loss_sum + 0.5 * (group.weights * (residual_norms + log_det + n * math.log(2 * math.pi))).sum()
        return loss_sum


@dataclass(frozen=True)
class SquaredExponentialKernel:
    """The kernel f^2 exp(-||x_i - x_j||^2 / (2 length)) + noise^2 [i = j] of feature vectors x_i with a scale f.

    Attributes:
        noise_std: standard deviation of the independent noise.
        length_scale: scale of squared distances between feature vectors.
    """

    noise_std: float
    length_scale: float

    fits_scale: ClassVar[bool] = True

    def covariance(self, X: FeatureMatrix, f: float) -> SquareMatrix:
        kernel_matrix = self._evaluate_kernel(torch.from_numpy(X), torch.tensor(f, dtype=torch.float64))
        return np.asarray(kernel_matrix.numpy() + self.noise_std**2 * np.eye(X.shape[1]))

    def loss(self, features: Tensor, kernel_scale: Tensor, observation_groups: list[ObservationGroup]) -> Tensor:
        loss_sum = features.new_zeros(())
        for group in observation_groups:
            X, n = features[:, group.clients], len(group.clients)
            noise_covariance = self.noise_std**2 * torch.eye(n, dtype=X.dtype)
            cholesky_factor, _ = torch.linalg.cholesky_ex(self._evaluate_kernel(X, kernel_scale) + noise_covariance)
            whitened_residuals = torch.linalg.solve_triangular(cholesky_factor, group.R.T, upper=False)
            residual_norms = (whitened_residuals**2).sum(0)
            log_det = 2 * cholesky_factor.diagonal().log().sum()
            loss_sum = loss_sum + 0.5 * (group.weights * (residual_norms + log_det + n * math.log(2 * math.pi))).sum()
        return loss_sum

    def _evaluate_kernel(self, features: Tensor, kernel_scale: Tensor) -> Tensor:
        squared_norms = (features**2).sum(0)
        squared_distances = (squared_norms[:, None] + squared_norms[None, :] - 2 * features.T @ features).clamp(min=0.0)
        return kernel_scale**2 * torch.exp(-0.5 * squared_distances / self.length_scale)


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
    return np.asarray(np.divide(weighted_sum, weight_sum, out=np.zeros(Y.shape[1]), where=weight_sum > 0))


def fit_gaussian_process(
    kernel: Kernel, X: FeatureMatrix, f: float, observations: Observations, n_adam_steps: int
) -> tuple[FeatureMatrix, float]:
    """Return the features X and scale f after Adam on the negative log-likelihood; unchanged if that is not finite.

    Args:
        kernel: covariance as a function of X and f.
        X: initial feature vector of each client, [d, k].
        f: initial scale of the kernel.
        observations: observations whose likelihood is maximised.
        n_adam_steps: number of steps.
    """
    observation_groups = observations.group_observations()
    if not observation_groups:
        return X, f
    features = torch.tensor(X, requires_grad=True)
    kernel_scale = torch.tensor(f, dtype=torch.float64, requires_grad=kernel.fits_scale)
    fitted_tensors = [features, kernel_scale] if kernel.fits_scale else [features]
    _minimise_with_adam(fitted_tensors, lambda: kernel.loss(features, kernel_scale, observation_groups), n_adam_steps)
    fitted_features, fitted_scale = features.detach().numpy().copy(), float(kernel_scale.detach())
    return (
        (fitted_features, fitted_scale)
        if np.isfinite(fitted_features).all() and math.isfinite(fitted_scale)
        else (X, f)
    )


def _minimise_with_adam(fitted_tensors: list[Tensor], compute_loss: Callable[[], Tensor], n_adam_steps: int) -> None:
    """Reduce `compute_loss()` by `n_adam_steps` steps of Adam on `fitted_tensors`, later ones with a falling rate."""
    optimizer = uncompiled_optimizer(torch.optim.Adam)(fitted_tensors, lr=FIRST_LEARNING_RATE)
    for adam_step in range(n_adam_steps):
        optimizer.param_groups[0]["lr"] = FIRST_LEARNING_RATE * min(1.0, 2 * (n_adam_steps - adam_step) / n_adam_steps)
        loss_gradients = torch.autograd.grad(compute_loss(), fitted_tensors)
        for fitted_tensor, loss_gradient in zip(fitted_tensors, loss_gradients, strict=True):
            fitted_tensor.grad = loss_gradient
        optimizer.step()
