"""The triplet of a count matrix by hand, its symmetries, and the six metrics of a federation."""

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.data.skew import skew_metrics, skew_triplet

# H(.9, .1) = .325083 nats: 1 - .325083 / ln 2 = .531004.
# [[40,10],[10,40]]: both margins even, I = 2 ln 2 - H(.4,.1,.1,.4) = .192745, SC = 2 I / (2 ln 2) = .278072.
# 4 classes x 2: H(Y) = 2 ln 2, H(A) = ln 2, I = ln 2: SC = 2/3; with ln |A| below H(Y), CI would be -1.
CASES = [
    ([[40, 10], [10, 40]], (0, 0, 0.278072)),
    ([[45, 5], [45, 5]], (0, 0.531004, 0)),
    ([[45, 45], [5, 5]], (0.531004, 0, 0)),
    ([[50, 0], [0, 50]], (0, 0, 1)),
    ([[25, 25], [25, 25]], (0, 0, 0)),
    ([[100, 0], [0, 0]], (1, 1, 0)),
    ([[60, 10], [10, 20]], (0.118709, 0.118709, 0.217444)),
    ([[10, 0], [0, 10], [10, 0], [0, 10]], (0, 0, 0.666667)),
    ([[7], [7]], (0, 0, 0)),
]


@for_all("N, expected", CASES)
def test_the_triplet_by_hand(N: list[list[int]], expected: tuple[float, ...]) -> None:
    assert skew_triplet(np.array(N)).tolist() == pytest.approx(expected, abs=1e-6)


@for_all("N", [N for N, _ in CASES])
def test_the_triplet_is_invariant_to_order_and_scale(N: list[list[int]]) -> None:
    M = np.array(N)
    for variant in (M[:, ::-1], M[::-1], 7 * M):
        np.testing.assert_allclose(skew_triplet(variant), skew_triplet(M), atol=1e-12)


def test_swapping_classes_and_attributes_swaps_their_imbalances() -> None:
    N = np.array([[60, 10], [5, 25]])
    np.testing.assert_allclose(skew_triplet(N.T), skew_triplet(N)[[1, 0, 2]], atol=1e-12)


def test_the_triplet_is_in_the_unit_interval() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        value = skew_triplet(rng.integers(0, 4, (rng.integers(1, 5), rng.integers(1, 4))) + (rng.random() < 0.9))
        assert np.isnan(value).all() or ((value >= 0) & (value <= 1)).all()


def test_without_samples_there_is_no_triplet() -> None:
    assert np.isnan(skew_triplet(np.zeros((2, 2)))).all()


def test_clients_can_be_skewed_where_the_federation_is_not() -> None:
    """Two clients, each with SC = 1 the other way round: together every group has 50 samples."""
    counts = np.array([[[50, 0], [0, 50]], [[0, 50], [50, 0]]])
    metrics_by_name = skew_metrics(counts)
    assert metrics_by_name == pytest.approx(
        {"global_ci": 0, "global_ai": 0, "global_sc": 0, "client_ci": 0, "client_ai": 0, "client_sc": 1}
    )


def test_client_metrics_are_means_over_clients_not_over_samples() -> None:
    """(0, .531004, 0) of 1000 samples and (0, 0, 1) of 100; the client without samples doesn't count."""
    counts = np.array([[[450, 50], [450, 50]], [[50, 0], [0, 50]], [[0, 0], [0, 0]]])
    metrics_by_name = skew_metrics(counts)
    assert [metrics_by_name[f"client_{name}"] for name in ("ci", "ai", "sc")] == pytest.approx(
        [0, 0.265502, 0.5], abs=1e-6
    )
    assert [metrics_by_name[f"global_{name}"] for name in ("ci", "ai", "sc")] == pytest.approx(
        skew_triplet(counts.sum(0)).tolist()
    )
