"""FLASH's state and contexts (FLASH Sec. II), with the baselines and scales that features are divided by."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort.bandit.contextual import BanditBelief
from fedcohort.bandit.ridge import ContextMatrix, find_valid_rows
from fedcohort.types import Ids, ProbeResult, Values

FEATURE_NAMES = ("train_ratio", "val_ratio", "duration", "prev_reward")

MIN_LOSS = 1e-8  # of a baseline that a ratio divides by
MIN_RELATIVE_VARIANCE = 1e-9  # of the largest variance: a direction that varies less is rounding


@dataclass(frozen=True)
class FeatureScale:
    """The scale of a feature: the mean absolute value of its non-zero observations so far, 1 before the first.

    Attributes:
        total: sum of the absolute values of the non-zero observations.
        count: number of non-zero observations.
    """

    total: float = 0.0
    count: int = 0

    def feature_scale(self) -> float:
        """Return the mean absolute value of the feature's non-zero observations so far; 1 before the first of them."""
        return self.total / self.count if self.count else 1.0

    def with_feature_values(self, feature_magnitudes: Values, scale_rule: str) -> "FeatureScale":
        """Return the scale of a feature after more observations; observations of zero are left out.

        Args:
            feature_magnitudes: absolute values of the new observations, [n].
            scale_rule: observations that set the scale: those of all rounds ("running"), only the first
                ("first_round"), or none ("none"), which leaves the scale at 1.
        """
        if scale_rule == "none" or (scale_rule == "first_round" and self.count):
            return self
        positive_magnitudes = feature_magnitudes[feature_magnitudes > 0]
        return FeatureScale(self.total + float(positive_magnitudes.sum()), self.count + len(positive_magnitudes))


INITIAL_FEATURE_SCALE = FeatureScale()


@dataclass(frozen=True)
class LossRatios:
    """Each client's latest loss as a ratio to its first one.

    Attributes:
        first: each client's first finite loss in nats, NaN before it, [n_clients].
        ratio: each client's latest loss divided by its first one, not finite if the latest is not, [n_clients]. The
            caller sets the value before a client's first answer: 1 for FLASH's contexts, NaN in `low_ratio.py`.
    """

    first: Values
    ratio: Values

    def with_loss_answers(self, loss_answers: ProbeResult) -> "LossRatios":
        """Return the loss ratios after new answers of some clients.

        Args:
            loss_answers: losses in nats of the clients that answered. A client's first finite loss divides its later
                ones.
        """
        first_losses, loss_ratios = self.first.copy(), self.ratio.copy()
        clients, losses = loss_answers.clients, loss_answers.values
        is_first_loss = np.isnan(first_losses[clients]) & np.isfinite(losses)
        first_losses[clients[is_first_loss]] = losses[is_first_loss]
        loss_ratios[clients] = losses / np.maximum(first_losses[clients], MIN_LOSS)
        return LossRatios(first_losses, loss_ratios)


@dataclass(frozen=True)
class ClientMeasurements:
    """The measurements of each client from which FLASH's contexts (feature vectors) are made.

    Attributes:
        train: first training losses, and ratios of the latest ones to them.
        val: first validation losses, and ratios of the latest ones to them.
        tau: latest duration of each client's job in seconds, NaN before the first, [n_clients].
        r: latest reward credited to each client, 0 before the first, [n_clients].
        tau_unit: scale that divides `tau` in the context, in seconds.
        r_unit: scale that divides `r` in the context.
    """

    train: LossRatios
    val: LossRatios
    tau: Values
    r: Values
    tau_unit: FeatureScale = INITIAL_FEATURE_SCALE
    r_unit: FeatureScale = INITIAL_FEATURE_SCALE

    @classmethod
    def initial_measurements(cls, n_clients: int) -> "ClientMeasurements":
        """Return the measurements of `n_clients` clients before round 0: loss ratios 1, no durations, rewards 0."""
        nan_by_client = np.full(n_clients, np.nan)
        initial_loss_ratios = LossRatios(nan_by_client, np.ones(n_clients))
        return cls(initial_loss_ratios, initial_loss_ratios, nan_by_client, np.zeros(n_clients))

    def with_durations(self, clients: Ids, job_seconds: Values, scale_rule: str) -> "ClientMeasurements":
        """Return the measurements with new durations of some clients.

        Args:
            clients: ids of the clients, [n].
            job_seconds: duration of the latest job of each of `clients` in seconds, [n]; NaN leaves the stored one
                unchanged.
            scale_rule: observations that set the unit of durations: those of all rounds ("running"), only the first
                ("first_round"), or none ("none"), with a unit of one second.
        """
        has_duration, durations_s = np.isfinite(job_seconds), self.tau.copy()
        durations_s[clients[has_duration]] = job_seconds[has_duration]
        return replace(
            self, tau=durations_s, tau_unit=self.tau_unit.with_feature_values(job_seconds[has_duration], scale_rule)
        )

    def with_rewards(self, clients: Ids, new_rewards: Values, scale_rule: str) -> "ClientMeasurements":
        """Return the measurements with new rewards of some clients.

        Args:
            clients: ids of the clients that are rewarded, [n].
            new_rewards: reward of each of `clients`, finite, [n].
            scale_rule: observations that set the unit of rewards: those of all rounds ("running"), only the first
                ("first_round"), or none ("none"), with a unit of 1.
        """
        client_rewards = self.r.copy()
        client_rewards[clients] = new_rewards
        return replace(self, r=client_rewards, r_unit=self.r_unit.with_feature_values(np.abs(new_rewards), scale_rule))

    def contexts(self) -> ContextMatrix:
        """Return the context (feature vector) of each client, [n_clients, 4], in the order of `FEATURE_NAMES`.

        A client without a duration gets the mean of the others' durations. A component that is not finite becomes NaN.
        """
        has_duration = np.isfinite(self.tau)
        mean_duration = self.tau[has_duration].mean() if has_duration.any() else 0.0
        scaled_durations = np.where(has_duration, self.tau, mean_duration) / self.tau_unit.feature_scale()
        X = np.column_stack([self.train.ratio, self.val.ratio, scaled_durations, self.r / self.r_unit.feature_scale()])
        return np.where(np.isfinite(X), X, np.nan)


def select_features(X: ContextMatrix, feature_names: Sequence[str], feature_transform: str) -> ContextMatrix:
    """Return the columns of the named features, [n, d], in the order of `feature_names`; d + 1 columns if whitened.

    Args:
        X: contexts with all features in the order of `FEATURE_NAMES`, [n, 4].
        feature_names: features to keep.
        feature_transform: "raw" leaves the columns unchanged; "whitened" centres, decorrelates and scales them and adds
            a column of ones.
    """
    # contiguous is the memory order after a resume
    selected_contexts = np.ascontiguousarray(
        X[:, [FEATURE_NAMES.index(feature_name) for feature_name in feature_names]]
    )
    return whiten_contexts(selected_contexts) if feature_transform == "whitened" else selected_contexts


def whiten_contexts(X: ContextMatrix) -> ContextMatrix:
    """Return contexts X [n, d] with mean 0, covariance I over the finite rows, and an intercept of 1, [n, d + 1].

        (X - mean) C^-1/2 with the covariance C

    This transform changes each feature as little as possible; a feature without variation becomes 0. The two loss
    ratios are nearly collinear. Without an intercept, random coefficients would rank the clients along one line, in
    either direction. With contexts of size 1 the exploration width has the scale that its derivation assumes.
    """
    is_valid_row = find_valid_rows(X)
    whitened_contexts = np.full((len(X), X.shape[1] + 1), np.nan)
    if not is_valid_row.any():
        return whitened_contexts
    centred_contexts = X[is_valid_row] - X[is_valid_row].mean(axis=0)
    eigenvalues, eigenvectors = np.linalg.eigh(centred_contexts.T @ centred_contexts / len(centred_contexts))
    has_positive_variance = eigenvalues > MIN_RELATIVE_VARIANCE * max(eigenvalues.max(), MIN_LOSS)
    eigenvector_scales = np.where(has_positive_variance, 1 / np.sqrt(np.maximum(eigenvalues, MIN_LOSS**2)), 0.0)
    whitened_contexts[is_valid_row, :-1] = centred_contexts @ (eigenvectors * eigenvector_scales) @ eigenvectors.T
    whitened_contexts[is_valid_row, -1] = 1.0
    return whitened_contexts


@dataclass(frozen=True)
class PendingRewards:
    """Contexts (feature vectors) by which a cohort was chosen and whose rewards are not known yet.

    Attributes:
        clients: ids of the clients, [n].
        X: the context of each of `clients`, [n, d].
        is_first_round: whether `clients` are the cohort of round 0.
    """

    clients: Ids
    X: ContextMatrix
    is_first_round: bool


@dataclass(frozen=True)
class State:
    """State of FLASH that is kept between rounds.

    Attributes:
        posterior: the bandit's belief about the reward of a context.
        measurements: the measurements from which contexts are built.
        loss: each client's robust loss in the latest query, in nats, [n_clients]; NaN without a finite answer to it.
        latest_rewards: reward of each client for the latest change of loss, [n_clients]; NaN if it is not known.
        X: context of each client for the next selection, [n_clients, d].
        sent_X: context of each client when it was last selected, [n_clients, d].
        p: weight of each client in the mean loss (equal unless reward=global), [n_clients].
        round_tau: longest job among the arrivals of the last round, in seconds; NaN without an arrival.
        server_loss: the server's validation loss of the last model in nats, NaN unless reward=progress.
        pending: contexts whose rewards are not known yet; None if there are none.
    """

    posterior: BanditBelief
    measurements: ClientMeasurements
    loss: Values
    latest_rewards: Values
    X: ContextMatrix
    sent_X: ContextMatrix
    p: Values
    round_tau: float = float("nan")
    server_loss: float = float("nan")
    pending: PendingRewards | None = None


def replace_contexts(contexts: ContextMatrix, new_contexts: ContextMatrix, clients: Ids) -> ContextMatrix:
    """Return a copy of `contexts` with the rows of `clients` from `new_contexts`; both are [n_clients, d]."""
    merged_contexts = contexts.copy()
    merged_contexts[clients] = new_contexts[clients]
    return merged_contexts
