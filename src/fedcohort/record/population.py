"""How clients differ before training: facts of the start-up table and of the partition's figure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.data.skew import skew_triplets
from fedcohort.record.observer import RunInfo
from fedcohort.types import Values

FALSE_POSITIVE_RATE = 0.001  # false positives: share of clients of a random partition that count as skewed
MIN_SKEWED_SHARE = 0.02  # share of skewed clients from which classes count as different
MIN_NONZERO_VARIANCE = 1e-9  # a smaller variance is rounding
MIN_VISIBLE_RATIO = 1.15  # ratio of the largest to the smallest value from which a difference is visible
MIN_NOISE_GAP = 0.02  # difference of noise rates from which clients count as different


@dataclass(frozen=True)
class ClientTrait:
    """A property in which clients may differ, such as label noise or speed, for figures and tables.

    Attributes:
        name: noun for the property in a title, such as "label noise".
        axis_label: label of an axis.
        client_values: value of each client, [n_clients]; 0 if unknown.
        has_spread: whether clients differ visibly in the property. For speed, their times per sample must also differ.
        uniform_text: text that replaces the figure if clients do not differ; "" for none.
    """

    name: str
    axis_label: str
    client_values: Values
    has_spread: bool
    uniform_text: str = ""


def list_traits(info: RunInfo) -> Sequence[ClientTrait]:
    """Return the properties of a run's clients in the order of their importance: noise, speed, class imbalance, size.

    Args:
        info: metadata of the run.
    """
    noise_percent = 100 * np.nan_to_num(info.noise_rate)
    noise_text = f"{noise_percent.mean():.0f} % label noise" if noise_percent.max() > 0 else ""
    input_noise = np.zeros(len(noise_percent)) if info.feature_noise is None else np.nan_to_num(info.feature_noise)
    local_job_seconds = np.nan_to_num(info.expected_s, posinf=0.0)
    seconds_per_sample = local_job_seconds / np.maximum(info.n_train, 1)
    speed_text = (
        f"a full job takes {np.median(seconds_per_sample):.2g} virtual s per sample" if local_job_seconds.any() else ""
    )
    class_imbalance = np.nan_to_num(skew_triplets(info.class_counts[:, :, None])[:, 0])
    has_skew = float(find_skewed_clients(info.class_counts).mean()) >= MIN_SKEWED_SHARE
    n_samples = info.class_counts.sum(axis=1).astype(float)
    min_samples, max_samples = int(n_samples.min()), int(n_samples.max())
    max_text = f" to {max_samples:,}" if min_samples < max_samples else ""
    size_text = f"{min_samples:,}{max_text} samples per client (training and validation)"
    is_noise_uneven = bool(np.ptp(noise_percent) >= 100 * MIN_NOISE_GAP)
    is_input_noise_uneven = bool(np.ptp(input_noise) > 0.01 * input_noise.max())
    is_speed_uneven = _do_clients_differ(local_job_seconds) and _do_clients_differ(seconds_per_sample)
    return [
        ClientTrait("label noise", "label noise, %\n(expected)", noise_percent, is_noise_uneven, noise_text),
        ClientTrait("input noise", "input noise", input_noise, is_input_noise_uneven),
        ClientTrait("speed", "a full job,\nvirtual s (expected)", local_job_seconds, is_speed_uneven, speed_text),
        ClientTrait("class imbalance", "class imbalance\n(0: even, 1: one class)", class_imbalance, has_skew),
        ClientTrait(
            "samples", "samples, training\nand validation", n_samples, _do_clients_differ(n_samples), size_text
        ),
    ]


def find_main_trait(info: RunInfo) -> ClientTrait | None:
    """Return the first property of `list_traits` in which clients differ, or None; figures sort clients by its value.

    Args:
        info: metadata of the run.
    """
    return next((trait for trait in list_traits(info) if trait.has_spread), None)


def _do_clients_differ(values: Values) -> bool:
    positive_values = values[values > 0]
    return len(positive_values) > 0 and (
        len(positive_values) < len(values) or positive_values.max() > MIN_VISIBLE_RATIO * positive_values.min()
    )


def class_shares(class_counts: np.ndarray) -> Float64[np.ndarray, "clients classes"]:
    """Return the share of each class in each client's samples; zeros for a client without samples.

    Args:
        class_counts: samples by client and class, int64 [clients, classes].
    """
    return np.asarray(class_counts / np.maximum(class_counts.sum(axis=1, keepdims=True), 1))


def find_skewed_clients(class_counts: np.ndarray) -> Bool[np.ndarray, "clients"]:
    """Return which clients' class counts differ significantly from the federation's.

    The test statistic is Pearson's X^2 of a client's n counts against the federation's shares p of C classes. Under the
    null its mean is C - 1, and its variance is (Haldane 1937):

        v = 2 (C - 1) + (sum_c 1 / p_c - C^2 - 2 C + 2) / n

    Rare classes make v much larger than that of a chi-square if clients are small. X^2 is therefore compared with the
    multiple of a chi-square that has the same mean and variance.

    Args:
        class_counts: samples by client and class, [clients, classes].
    """
    import torch  # noqa: PLC0415 - loaded in each run; the import of scipy.special would take half a second

    counts = class_counts[:, class_counts.sum(axis=0) > 0].astype(np.float64)
    degrees_of_freedom = counts.shape[1] - 1
    if degrees_of_freedom < 1:
        return np.zeros(len(class_counts), dtype=bool)
    expected_counts = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    test_statistic = ((counts - expected_counts) ** 2 / np.where(expected_counts > 0, expected_counts, 1.0)).sum(axis=1)
    C, n = counts.shape[1], np.maximum(counts.sum(axis=1), 1.0)
    statistic_variance = 2 * degrees_of_freedom + ((counts.sum() / counts.sum(axis=0)).sum() - C * C - 2 * C + 2) / n
    has_variance = (
        statistic_variance > MIN_NONZERO_VARIANCE
    )  # otherwise X^2 is constant: one sample, equally frequent classes
    v = np.where(has_variance, statistic_variance, 1.0)
    # P(chi-square with 2 a degrees of freedom > 2 x) is the regularised upper incomplete gamma function Q(a, x)
    shape, scaled_statistic = degrees_of_freedom**2 / v, degrees_of_freedom * test_statistic / v
    p_values = torch.special.gammaincc(torch.from_numpy(shape), torch.from_numpy(scaled_statistic)).numpy()
    return np.asarray(has_variance & (p_values < FALSE_POSITIVE_RATE))
