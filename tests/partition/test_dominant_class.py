import re

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.partition.base import SamplePool
from fedcohort.partition.dominant_class import NO_CLASS, DominantClass, SplitPlan, spread_evenly
from fedcohort.partition.tables import equal_sizes

C = 10


def split(
    fraction: float, share: float, clients: int, labels: np.ndarray, n_classes: int = C, seed: int = 0
) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return list(DominantClass(fraction, share).split(SamplePool(labels, n_classes), clients, rng))


def class_counts(parts: list[np.ndarray], labels: np.ndarray, n_classes: int = C) -> np.ndarray:
    return np.stack([np.bincount(labels[part], minlength=n_classes) for part in parts])


def make_balanced_labels(n: int) -> np.ndarray:
    return np.random.default_rng(5).permutation(np.arange(n) % C)


@for_all("clients", [10, 20, 50, 73])
@for_all("fraction, share", [(0.3, 0.8), (0.1, 0.95), (0.5, 0.6)])
def test_exactly_the_fraction_of_the_clients_has_exactly_the_share(clients: int, fraction: float, share: float) -> None:
    labels = make_balanced_labels(6013)
    parts = split(fraction, share, clients, labels)
    sizes = np.array([len(part) for part in parts])
    counts = class_counts(parts, labels)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(6013))
    assert sizes.max() - sizes.min() <= 1
    skewed = counts.max(1) > 0.4 * sizes
    assert skewed.sum() == round(fraction * clients)
    np.testing.assert_array_equal(counts.max(1)[skewed], np.rint(share * sizes[skewed]))


def test_flash_setting_on_balanced_classes() -> None:
    """K = 50, 60,000 samples: 15 skewed clients of 1200 with 960 of their class and 240 / 9 = 26.7 of each other."""
    labels = make_balanced_labels(60_000)
    counts = class_counts(split(0.3, 0.8, 50, labels), labels)
    skewed = counts.max(1) == 960
    assert skewed.sum() == 15
    other_counts = np.sort(counts[skewed], 1)[:, :-1]
    assert set(np.unique(other_counts)) == {26, 27}
    # Dominant classes go round: with 15 clients and 10 classes, five classes twice.
    assert sorted(np.bincount(counts[skewed].argmax(1), minlength=10)) == [1] * 5 + [2] * 5
    # Uniform clients all have the proportions of what is left, to within one sample of each class.
    plain = counts[~skewed]
    assert (plain.max(0) - plain.min(0)).max() <= 1
    np.testing.assert_allclose(plain.mean(0), (6000 - counts[skewed].sum(0)) / 35)


def test_the_skewed_clients_are_drawn_at_random() -> None:
    labels, n_skewed = make_balanced_labels(1000), np.zeros(10)
    for seed in range(400):
        n_skewed += class_counts(split(0.3, 0.8, 10, labels, seed=seed), labels).max(1) == 80
    assert n_skewed.sum() == 3 * 400
    assert np.abs(n_skewed - 120).max() < 4.5 * np.sqrt(400 * 0.3 * 0.7)


def test_fractions_of_zero_and_one_are_possible() -> None:
    labels = make_balanced_labels(2000)
    counts = class_counts(split(0.0, 0.8, 20, labels), labels)
    np.testing.assert_array_equal(counts, np.full((20, C), 10))
    counts = class_counts(split(1.0, 1.0, 20, labels), labels)
    np.testing.assert_array_equal(np.sort(counts, 1)[:, -2:], np.tile([0, 100], (20, 1)))


def test_every_feasible_option_is_met() -> None:
    """Unequal pools, all clients skewed, few classes: a partition that the counts allow is always found."""
    rng = np.random.default_rng(0)
    n_feasible = n_infeasible = 0
    for _ in range(600):
        C, K = int(rng.integers(1, 5)), int(rng.integers(1, 8))
        pools = rng.integers(0, 40, C)
        sizes = equal_sizes(int(pools.sum()), K)
        plan = SplitPlan(sizes, pools, rng.permutation(K), rng.permutation(C))
        share, n_skewed = float(rng.uniform(0.01, 1)), int(rng.integers(0, K + 1))
        dominant = plan.choose_dominant_classes(n_skewed, share)
        if dominant is None:
            n_infeasible += 1
            continue
        n_feasible += 1
        counts = plan.draw_count_table(dominant, share, rng)
        skewed = np.flatnonzero(dominant != NO_CLASS)
        assert len(skewed) == n_skewed
        np.testing.assert_array_equal(counts.sum(1)[skewed], sizes[skewed])
        np.testing.assert_array_equal(counts[skewed, dominant[skewed]], np.rint(share * sizes[skewed]))
        assert (counts.sum(0) <= pools).all()
        assert (counts >= 0).all()
    assert n_feasible > 200
    assert n_infeasible > 50


@pytest.mark.parametrize(
    ("fraction", "share", "clients", "pools"),
    [
        (1.0, 1.0, 10, [120, 80] * 5),  # a class of 80 can't fill a client of 100
        (0.8, 0.8, 15, [100] * 10),  # two clients of a class need 108 of its 100 samples
        (1.0, 0.1, 4, [40, 360]),  # three clients may have no more than 10 of the 360 each
    ],
)
def test_an_infeasible_option_is_rejected_with_a_feasible_value(
    fraction: float, share: float, clients: int, pools: list[int]
) -> None:
    labels = np.repeat(np.arange(len(pools)), pools)
    with pytest.raises(OptionError, match="feasible: ") as caught:
        split(fraction, share, clients, labels, len(pools))
    given_values = {name: float(value) for name, value in re.findall(r"(fraction|share)=([\d.e-]+)", str(caught.value))}
    feasible = dict(re.findall(r"(fraction|share)=([\d.e-]+)", str(caught.value).split("feasible: ")[1]))
    assert set(given_values) == set(feasible) == {"fraction", "share"}
    split(float(feasible["fraction"]), share, clients, labels, len(pools))
    split(fraction, float(feasible["share"]), clients, labels, len(pools))
    with pytest.raises(OptionError):  # one skewed client more than the message offers
        split(float(feasible["fraction"]) + 1 / clients, share, clients, labels, len(pools))


def test_an_exhausted_class_is_skipped() -> None:
    """Class 0 has no samples for a dominant share, so that classes 1 and 2 dominate all."""
    labels = np.repeat([0, 1, 2], [6, 297, 297])
    counts = class_counts(split(1.0, 0.9, 6, labels, 3), labels, 3)
    np.testing.assert_array_equal(np.sort(counts.argmax(1)), [1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(counts.max(1), np.full(6, 90))


@pytest.mark.parametrize(
    ("total", "low", "high", "expected"),
    [
        (6, [0, 0, 0], [9, 9, 9], [2, 2, 2]),
        (6, [0, 0, 0], [1, 9, 9], [1, 3, 2]),
        (6, [4, 0, 0], [9, 9, 9], [4, 1, 1]),
        (7, [0, 0, 0], [0, 3, 9], [0, 3, 4]),
    ],
)
def test_client_sizes_are_nearly_equal(total: int, low: list[int], high: list[int], expected: list[int]) -> None:
    tie = np.array([0.9, 0.1, 0.5])
    assert spread_evenly(total, np.array(low), np.array(high), tie).tolist() == expected
