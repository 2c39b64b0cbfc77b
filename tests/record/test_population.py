"""Which clients are skewed, judged against what chance would do."""

import numpy as np
import pytest

from case_loop import for_all
from fedcohort import units
from fedcohort.record import population


@for_all("size", [20, 60, 2000])
@for_all("classes", [2, 10, 62])
def test_clients_with_random_samples_are_not_skewed(size: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(size, rng.dirichlet(np.full(classes, 20.0)), 500)
    assert population.find_skewed_clients(counts).mean() < 0.01


def test_clients_with_one_class_are_skewed() -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(60, np.full(10, 0.1), 100)
    counts[:30] = 0
    counts[np.arange(30), np.arange(30) % 10] = 60
    assert population.find_skewed_clients(counts).tolist() == [True] * 30 + [False] * 70


@pytest.mark.parametrize(("own_count", "skewed"), [(65, False), (67, True)])
def test_the_skew_threshold_is_the_chi_squared_quantile_of_a_table(own_count: int, skewed: bool) -> None:
    """A client's table against a quantile that stands in books.

    Two classes, half of the federation each: (own - 50)^2 / 50 + (50 - own)^2 / 50 against 10.828, chi-square's .001
    for one degree of freedom: 9.0 and 11.56.
    """
    counts = np.array([[own_count, 100 - own_count], [100_000 - own_count, 99_900 + own_count]])
    assert bool(population.find_skewed_clients(counts)[0]) == skewed


@pytest.mark.parametrize("counts", [np.array([[5], [9]]), np.array([[5, 0], [9, 0]])])
def test_a_single_class_is_never_skewed(counts: np.ndarray) -> None:
    assert not population.find_skewed_clients(counts).any()


def test_the_largest_shares_and_their_classes() -> None:
    counts = np.array([[1, 3, 0], [0, 0, 0]])
    assert population.class_shares(counts).tolist() == [[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]


@for_all(
    "text, expected",
    [
        (units.format_bytes(0), "0 B"),
        (units.format_bytes(999.6), "1 kB"),
        (units.format_bytes(1_234_567), "1.23 MB"),
        (units.format_bytes(float("nan")), "-"),
        (units.format_flops(3.2e12), "3.2 TFLOP"),
        (units.format_seconds(0.466), "0.466 s"),
        (units.format_seconds(1860), "31 min 0 s"),
        (units.format_seconds(15_500), "4 h 18 min"),
        (units.format_seconds(500_000), "5 d 19 h"),
        (units.format_percent(0.87312), "87.3 %"),
        (units.format_percent(float("nan")), "-"),
        (units.format_number(0.449312), "0.4493"),
    ],
)
def test_numbers_are_formatted_for_readers(text: str, expected: str) -> None:
    assert text == expected


def test_rare_classes_are_not_reported_as_skew() -> None:
    """Dealt by chance, 20 samples of 100 classes of which the rarest is a hundred times rarer than the most frequent.

    One rare sample is much of X^2: against chi-square itself one client in seven would count as skewed.
    """
    shares = 100 ** (-np.arange(100) / 99)
    counts = np.random.default_rng(0).multinomial(20, shares / shares.sum(), size=2000)
    assert population.find_skewed_clients(counts).mean() < 0.01
    one_class = np.diag(np.full(100, 20))
    assert population.find_skewed_clients(np.concatenate([counts, one_class]))[-100:].all()
    assert not population.find_skewed_clients(np.eye(10, dtype=np.int64)).any(), (
        "one sample of equal classes tells nothing"
    )
